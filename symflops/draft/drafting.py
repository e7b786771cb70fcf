"""Drafts a spec: tape and gate, what moves, samples, formulas, the text, and its proof against the real module."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from symflops.api import Model
from symflops.draft import gate
from symflops.draft.blocks import patterns_in
from symflops.draft.document import printed
from symflops.draft.family import INDEX, Family
from symflops.draft.graph import Grapher
from symflops.draft.levels import levelled
from symflops.draft.patience import TooLongError, within
from symflops.draft.prove import Proof, Prover, model_of
from symflops.draft.sampling import Laboratory
from symflops.draft.subject import Subject, class_of, summed
from symflops.draft.symbols import Names, fitter_of, names_of
from symflops.draft.tape import record
from symflops.draft.vary import Moves, Variable, well_formed
from symflops.ground.diagnostics import SymflopsError
from symflops.library import roots, specs_in
from symflops.witness.defaults import signature_of
from symflops.witness.tensors import needed

HOLD_OUTS = 5
ATTEMPTS = 120
PATIENCE = 180.0
SHARES = (0.8, 0.5, 0.3)


class GateError(SymflopsError):
    """The tape of a module does not say what PyTorch's counter says: it cannot be drafted."""

    exit_code = 1


@dataclass
class Draft:
    """The text of a spec, and what is known of it."""

    subject: Subject
    text: str = ""
    moves: Moves = field(default_factory=Moves)
    structural: list[Variable] = field(default_factory=list)
    samples: int = 0
    runs: int = 0
    unsolved: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    gate: list[gate.Finding] = field(default_factory=list)
    proofs: list[Proof] = field(default_factory=list)
    decide: list[str] = field(default_factory=list)
    seconds: float = 0.0
    processor: float = 0.0
    given_up: str = ""

    @property
    def varied(self) -> list[str]:
        """What moved, in the words of the config and the inputs."""
        kept = [variable for variable in self.moves.variables if variable not in self.structural]
        return [" with ".join(slot.label for slot in variable.slots) for variable in kept]

    @property
    def stuck(self) -> list[str]:
        """What could not be moved without being refused, or without another structure."""
        structural = [variable.lead for variable in self.structural if variable.lead not in self.moves.filled]
        return [slot.label for slot in (*self.moves.stuck, *structural)]

    @property
    def exact(self) -> bool:
        """Whether the draft is proven: enough hold-outs, all equal, nothing unsolved, and something that varied."""
        drawn = sum(not proof.published for proof in self.proofs)
        proven = drawn >= HOLD_OUTS and all(proof.exact for proof in self.proofs)
        return proven and not self.unsolved and not self.given_up and bool(self.varied) and all(one.equal for one in self.gate)


def draft(
    subject: Subject,
    timeout: float = 120.0,
    tell: Callable[[str], None] = lambda _: None,
    published: Sequence[Subject] = (),
    keep: Callable[[Draft], None] = lambda _: None,
) -> Draft:
    """Draft a subject; ``published`` are further ones of the same class that it must be exact for.

    ``keep`` is called with what is known whenever there is more of it.

    Raises:
        SymflopsError: the module does not run.
        GateError: its tape and PyTorch's counter differ.
    """
    started, processor = time.monotonic(), time.process_time()
    tell("taping")
    subject = levelled(subject, published)
    found = Draft(subject)
    passed(found)
    keep(found)
    laboratory = Laboratory(subject, started + 0.6 * timeout, tell, patience=timeout / 20)
    found.moves = laboratory.moves()
    if laboratory.late():
        found.given_up = "time was up while numbers were moved"
    keep(found)
    random = Random(0)
    laboratory.deadline = max(laboratory.deadline, time.monotonic() + 0.2 * timeout)
    family, found.structural = laboratory.family(found.moves, random)
    found.samples = len(family.samples)
    if laboratory.unfinished:
        found.given_up = "time was up while samples were drawn"
    batch = batch_variable(found.moves)
    names = names_of(family, found.moves.variables, batch)
    tell("fitting")
    found.runs = laboratory.runs
    try:
        found.text, writer, model = text_of(subject, family, names)
    except Exception as error:  # a mistake of ours must not lose what is known
        found.given_up = f"the graph could not be written: {type(error).__name__}: {error}"
    else:
        found.unsolved = [(one.place, one.values) for one in writer.unsolved]
        keep(found)
        laboratory.deadline = max(started + timeout, time.monotonic() + 0.2 * timeout)
        proven(found, model, laboratory, names, family, batch, published)
    found.decide += decisions(found, family)
    found.seconds = time.monotonic() - started
    found.processor = time.process_time() - processor
    return found


def passed(found: Draft) -> None:
    """The gate."""
    try:
        with within(PATIENCE):
            model = found.subject.build()
            arguments = found.subject.arguments()
            needed("torch").manual_seed(0)
            tape = record(model, arguments, summed)
            needed("torch").manual_seed(0)
            found.gate = gate.check(model, arguments, summed, tape)
    except SymflopsError:
        raise
    except TooLongError as error:
        raise SymflopsError(f"{found.subject.reference} does not run: no answer within {PATIENCE:.0f} s") from error
    except Exception as error:
        raise SymflopsError(f"{found.subject.reference} does not run: {type(error).__name__}: {error}") from error
    for one in found.gate:
        if not one.equal:
            node = gate.culprit(tape, one)
            where = f"; look at '{node.word}' in '{node.path}'" if node else ""
            told = f"{one.measured:,} FLOPs counted, {one.taped:,} by the tape"
            raise GateError(f"{found.subject.reference} cannot be drafted: {one.name}: {told}{where}")


def batch_variable(moves: Moves) -> Variable | None:
    """The variable that is the number of items."""
    firsts = (
        one for one in moves.variables if one.lead.kind == "dimension" and one.lead.key[-1] == 0 and len(one.lead.key) < 5
    )
    return next(firsts, None)


def text_of(subject: Subject, family: Family, names: Names) -> tuple[str, Grapher, Model | None]:
    """The text of a draft, and what symflops reads of it: with attention as an operator where that is accepted."""
    library = next(iter(specs_in(roots()[0])), None)
    blocks = library.blocks() if library else lambda _: None
    for attention, grids in ((True, True), (True, False), (False, False)):
        writer = Grapher(family, names, fitter_of(names, family), attention, grids)
        writer.patterns = patterns_in(library.root) if library and attention else []
        text = printed(subject.name, reference_of(subject), family, names, writer, class_defaults(subject))
        try:
            model = model_of(text, blocks)
            model.graph(family.samples[0].config)
            return text, writer, model
        except SymflopsError:
            continue
    return text, writer, None


def reference_of(subject: Subject) -> str:
    """The class as a spec names it; nothing for a class that live verification does not import."""
    return f"{subject.package}.{subject.name}" if subject.package in ("transformers", "diffusers") else ""


def class_defaults(subject: Subject) -> Mapping[str, Any]:
    """What the class, or its config class, has for every field that nobody gives."""
    kind = class_of(subject.reference)
    return signature_of(getattr(kind, "config_class", None) or kind)


def proven(
    found: Draft,
    model: Model | None,
    laboratory: Laboratory,
    names: Names,
    family: Family,
    batch: Variable | None,
    published: Sequence[Subject],
) -> None:
    """Hold the draft against configurations that the fit never saw."""
    if model is None:
        try:
            model_of(found.text, lambda _: None).graph(family.samples[0].config)
        except SymflopsError as error:
            found.proofs.append(Proof("reading it back", 1, [" ".join(str(error).split())[:400]]))
        return
    prover = Prover(model, found.text, 1)
    random = Random(12345)
    free = [variable for variable in found.moves.variables if variable not in found.structural]
    seen = [sample.state for sample in family.samples]
    for attempt in range(ATTEMPTS if free else 0):
        if len(found.proofs) >= HOLD_OUTS or laboratory.late():
            break
        laboratory.tell(f"proving {len(found.proofs)}/{HOLD_OUTS}")
        state = well_formed(free, random, SHARES[attempt % 3], family.samples[0].state, laboratory.most)
        if state is None or state in seen or laboratory.taped(state) is None:
            continue
        seen.append(state)
        lengths = {name: state.get(slot, slot.value) for name, slot in names.lengths.items()}
        items = state.get(batch.lead, batch.lead.value) if batch else 1
        told = ", ".join(f"{slot.label}={value}" for slot, value in state.items() if value != slot.value)
        found.proofs.append(held(prover, told, laboratory.at(state), lengths, items))
        if len(found.proofs) > 2 and not any(proof.exact for proof in found.proofs):
            break
    for number, one in enumerate(published):
        other = parameter_groups(one)
        if other is not None and other != {INDEX.sub("*", name) for name in family.samples[0].plan.parameters}:
            found.decide.append(f"published config {number + 1} has other parameters: it is another variant")
            continue
        lengths = {name: dimension(one.inputs, slot.key, slot.value) for name, slot in names.lengths.items()}
        items = dimension(one.inputs, batch.lead.key, batch.lead.value) if batch else 1
        found.proofs.append(replace(held(prover, f"published {number + 1}", one, lengths, items), published=True))


def held(prover: Prover, told: str, subject: Subject, lengths: Mapping[str, int], items: int) -> Proof:
    """The proof at one configuration, which does not hold where it does not come to an end."""
    try:
        with within(PATIENCE):
            return prover.prove(told, subject, lengths, items)
    except TooLongError:
        return Proof(told, 1, [f"no answer within {PATIENCE:.0f} s"])


def parameter_groups(subject: Subject) -> set[str] | None:
    """The names of the parameters of a subject, without indices; None where it cannot be built."""
    try:
        return {INDEX.sub("*", name) for name, _ in subject.build().named_parameters()}
    except Exception:  # what it raises is told by its proof
        return None


def dimension(inputs: Any, key: Sequence[Any], default: int) -> int:
    """A dimension of described inputs."""
    value: Any = inputs
    for part in key:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return default
    return int(value)


def decisions(found: Draft, family: Family) -> list[str]:
    """What a person still decides."""
    told = ["which pairs of attention are useful (masks and windows): the draft counts all that is executed"]
    config = found.subject.config
    fractions = [name for name, value in config.items() if isinstance(value, float)]
    switches = [name for name, value in family.samples[0].config.items() if isinstance(value, bool) and name in config]
    words = [name for name, value in config.items() if isinstance(value, str)]
    for what, names in (("fractions", fractions), ("switches", switches), ("words", words)):
        if names:
            told.append(f"{what} of the config, which are as given: {', '.join(sorted(names))}")
    if family.structural:
        told.append(f"{family.structural} samples had another structure: a variant, or a condition in the graph")
    for variable in [] if found.given_up else found.structural:
        told.append(f"{variable.lead.label} changes the structure")
    return told
