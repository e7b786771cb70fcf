"""Checks a tape's FLOPs against PyTorch's counter, for several sets of trained parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

from symflops.draft.trace.steps import Node, Subject, Tape
from symflops.draft.trace.tape import guessing_values, taped
from symflops.support.errors import SymflopsError
from symflops.verify.limits import MOST_SECONDS, TooLongError, within
from symflops.verify.running import EVERY, both_passes, light_counter, needed

SHARES = (0.02, 0.1, 0.4, 0.8)


@dataclass(frozen=True, slots=True)
class Finding:
    """FLOPs of one pass, by PyTorch's counter and by the tape.

    Attributes:
        name: The pass, and which parameters are trained.
        measured: FLOPs by PyTorch's counter.
        taped: FLOPs by the tape.
        trained: The names of the trained parameters.
    """

    name: str
    measured: int
    taped: int
    trained: frozenset[str]

    @property
    def equal(self) -> bool:
        """Whether PyTorch's counter and the tape give the same FLOPs."""
        return self.measured == self.taped


class GateError(SymflopsError):
    """Raised if a module's tape differs from PyTorch's counter: the module cannot be drafted."""

    exit_code = 1


def findings_of(subject: Subject) -> list[Finding]:
    """Trace a subject and check the FLOPs of both passes; one finding per pass and set of parameters.

    Raises:
        SymflopsError: The module does not run, or not in time.
        GateError: A pass differs from PyTorch's counter.
    """
    try:
        with within(MOST_SECONDS):
            model, arguments, tape = taped(subject)
            needed("torch").manual_seed(0)
            findings = check(model, arguments, tape)
    except SymflopsError:
        raise
    except TooLongError as error:
        late = f"no answer within {MOST_SECONDS:.0f} s of processor time"
        raise SymflopsError(f"{subject.reference} does not run: {late}") from error
    except Exception as error:
        raise SymflopsError(f"{subject.reference} does not run: {type(error).__name__}: {error}") from error
    wrong = next((one for one in findings if not one.equal), None)
    if wrong is not None:
        node = culprit(tape, wrong)
        where = f"; look at '{node.word}' in '{node.path}'" if node else ""
        counts = f"{wrong.measured:,} FLOPs counted, {wrong.taped:,} by the tape"
        raise GateError(f"{subject.reference} cannot be drafted: {wrong.name}: {counts}{where}")
    return findings


def backward(tape: Tape, trained: Collection[str]) -> int:
    """Backward FLOPs, by the tape, if the parameters ``trained`` are trained."""
    return sum(backward_by_node(tape, trained).values())


def backward_by_node(tape: Tape, trained: Collection[str]) -> Mapping[int, int]:
    """Node id -> backward FLOPs, for the contractions that autograd reaches if ``trained`` are trained."""
    need = needing_gradients(tape, trained)
    live: set[int | None] = {output for output in tape.outputs if output in need}
    found: dict[int, int] = {}
    for node in reversed(tape.nodes):
        if node.id not in live:
            continue
        live |= need.intersection(node.operands)
        sides = [value in need for value in node.operands[:2]]
        if node.kind == "solve":  # PyTorch counts only the product for the matrix's gradient
            found[node.id] = 2 * prod(node.sizes) * sides[0]
        elif node.work:
            found[node.id] = 2 * node.work * sum(sides)
    return found


def needing_gradients(tape: Tape, trained: Collection[str]) -> set[int | None]:
    """Ids of the nodes that need a gradient: ``trained`` parameters and all that is computed from them."""
    need: set[int | None] = set()
    for node in tape.nodes:
        own = node.kind == "parameter" and node.path in trained
        if own or (not node.quiet and not need.isdisjoint(node.operands)):
            need.add(node.id)
    return need


def check(model: Any, arguments: Mapping[str, Any], tape: Tape, seed: int = 0) -> list[Finding]:
    """Findings for both passes of full training, and for the backward pass of four random trained sets.

    Args:
        model: The module.
        arguments: The arguments of its call.
        tape: The tape of the forward pass.
        seed: Seeds the random choice of trained parameters.
    """
    names = [name for name in tape.parameters if name not in tape.frozen]
    random = Random(seed)
    every = frozenset(names)
    choices = {f"{share:.0%} of the parameters": frozenset(one for one in names if random.random() < share) for share in SHARES}
    ahead, back = measured(model, arguments, every)
    return [
        Finding("forward", ahead, 2 * sum(node.work for node in tape.nodes), every),
        Finding("backward, full", back, backward(tape, every), every),
        *(
            Finding(f"backward, {name}", measured(model, arguments, trained)[1], backward(tape, trained), trained)
            for name, trained in choices.items()
        ),
    ]


def measured(model: Any, arguments: Mapping[str, Any], trained: Collection[str]) -> tuple[int, int]:
    """(Forward, backward) FLOPs by PyTorch's counter if only ``trained`` parameters require gradients."""
    before = {name: tensor.requires_grad for name, tensor in model.named_parameters()}
    try:
        for name, tensor in model.named_parameters():
            tensor.requires_grad_(name in trained)
        with needed("torch").enable_grad(), guessing_values():
            ahead, back = both_passes(model, arguments, EVERY, light_counter)
    finally:
        for name, tensor in model.named_parameters():
            tensor.requires_grad_(before[name])
    return ahead.total, back.total


def culprit(tape: Tape, finding: Finding) -> Node | None:
    """Contraction that may explain a difference: one with as many FLOPs, else the largest; None without any."""
    ahead = {node.id: 2 * node.work for node in tape.nodes if node.work}
    work = ahead if finding.name == "forward" else backward_by_node(tape, finding.trained)
    gap = abs(finding.measured - finding.taped)
    exact = (number for number, flops in work.items() if gap in (flops, 2 * tape.nodes[number].work))
    chosen = next(exact, max(work, key=lambda number: work[number], default=None))
    return None if chosen is None else tape.nodes[chosen]
