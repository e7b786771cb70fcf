"""The check before anything symbolic: both passes of a tape against PyTorch's counter, for any choice of what trains."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

from symflops.draft.trace.tape import Node, Tape, answering
from symflops.witness.counting import counter, plain_attention
from symflops.witness.tensors import needed

SHARES = (0.02, 0.1, 0.4, 0.8)


@dataclass(frozen=True, slots=True)
class Finding:
    """One pass of one choice of what trains: FLOPs as the counter sees them, and by the tape."""

    name: str
    measured: int
    taped: int
    trained: frozenset[str]

    @property
    def equal(self) -> bool:
        """Whether both agree."""
        return self.measured == self.taped


def forward(tape: Tape) -> int:
    """FLOPs of the forward pass."""
    return 2 * sum(node.work for node in tape.nodes)


def backward(tape: Tape, trained: Collection[str]) -> int:
    """FLOPs of the backward pass where the parameters ``trained`` train."""
    return sum(backward_by_node(tape, trained).values())


def backward_by_node(tape: Tape, trained: Collection[str]) -> Mapping[int, int]:
    """FLOPs of the backward pass of every contraction."""
    need = [False] * len(tape.nodes)
    for node in tape.nodes:
        own = node.kind == "parameter" and node.path in trained
        need[node.id] = own or (not node.quiet and any(need[value] for value in node.operands if value is not None))
    live = [False] * len(tape.nodes)
    for output in tape.outputs:
        live[output] = need[output]
    found: dict[int, int] = {}
    for node in reversed(tape.nodes):
        if not live[node.id] or not need[node.id]:
            continue
        for value in node.operands:
            if value is not None and need[value]:
                live[value] = True
        sides = [value is not None and need[value] for value in node.operands[:2]]
        if node.kind == "solve":  # only the gradient of the matrix is a product that is counted
            found[node.id] = 2 * prod(node.sizes) * sides[0]
        elif node.work:
            found[node.id] = 2 * node.work * sum(sides)
    return found


def check(model: Any, arguments: Mapping[str, Any], summed: Any, tape: Tape, seed: int = 0) -> list[Finding]:
    """Both passes when all trains, and the backward pass of four random choices."""
    names = [name for name in tape.parameters if name not in tape.frozen]
    random = Random(seed)
    choices = [("full", frozenset(names))]
    choices += [
        (f"{share:.0%} of the parameters", frozenset(name for name in names if random.random() < share)) for share in SHARES
    ]
    found: list[Finding] = []
    for name, trained in choices:
        ahead, back = measured(model, arguments, summed, trained)
        if name == "full":
            found.append(Finding("forward", ahead, forward(tape), trained))
        found.append(Finding(f"backward, {name}", back, backward(tape, trained), trained))
    return found


def measured(model: Any, arguments: Mapping[str, Any], summed: Any, trained: Collection[str]) -> tuple[int, int]:
    """FLOPs of both passes as PyTorch's counter sees them."""
    torch = needed("torch")
    before = {name: tensor.requires_grad for name, tensor in model.named_parameters()}
    try:
        for name, tensor in model.named_parameters():
            tensor.requires_grad_(name in trained)
        with torch.enable_grad(), plain_attention(), answering(), counter(False) as ahead:
            kept = [tensor for tensor in summed(model(**arguments)) if tensor.requires_grad]
        with plain_attention(), counter(False) as back:
            if kept:
                torch.autograd.backward([tensor.sum() for tensor in kept])
    finally:
        model.zero_grad(set_to_none=True)
        for name, tensor in model.named_parameters():
            tensor.requires_grad_(before[name])
    return int(ahead.get_total_flops()), int(back.get_total_flops())


def culprit(tape: Tape, finding: Finding) -> Node | None:
    """The operator to look at first where a pass differs: the one whose work is the difference, else the largest."""
    work = (
        backward_by_node(tape, finding.trained)
        if finding.name != "forward"
        else {n.id: 2 * n.work for n in tape.nodes if n.work}
    )
    gap = abs(finding.measured - finding.taped)
    exact = [number for number, flops in work.items() if flops == gap or 2 * tape.nodes[number].work == gap]
    if exact:
        return tape.nodes[exact[0]]
    return tape.nodes[max(work, key=lambda number: work[number])] if work else None
