"""The tape of a run: a graph of values and their operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

Value = int | None
COUNTED = ("matmul", "conv")


@dataclass(slots=True)
class Node:
    """One value of the graph: an input, a parameter, an embedding lookup, a contraction, or a join.

    Attributes:
        operands: Ids of the nodes that it reads, None for a constant. A contraction's two factors come first, then the
            values added to its result.
        shapes: The shapes of the operands, then that of the result.
        sizes: The index sizes of a contraction: batch, rows, inner, columns of a product; batch, channels out, channels in,
            kernel and output (input of a transposed one) of a convolution.
        data: For each operand, the inputs that it was computed from.
        quiet: Whether it ran without gradients.
        times: Number of executions.
    """

    id: int
    kind: str
    path: str
    operands: tuple[Value, ...]
    shapes: tuple[tuple[int, ...], ...] = ()
    sizes: tuple[int, ...] = ()
    word: str = ""
    data: tuple[tuple[str, ...], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    quiet: bool = False
    times: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self.shapes[-1] if self.shapes else ()

    @property
    def work(self) -> int:
        """Multiply-adds of the node's forward pass; 0 for a linear solve, which no FLOP counter counts."""
        return self.times * prod(self.sizes) if self.kind in COUNTED else 0


@dataclass(slots=True)
class Tape:
    """All nodes of a run in execution order, the ids that the loss sums, and the parameters' shapes.

    ``tied`` maps each alias of a shared parameter to its first name.
    ``by_value`` names the operators whose output shape or result depends on tensor values, each with the tensor's device.
    """

    nodes: list[Node]
    outputs: tuple[int, ...]
    parameters: dict[str, tuple[int, ...]]
    frozen: frozenset[str]
    by_value: frozenset[tuple[str, str]] = frozenset()
    tied: Mapping[str, str] = field(default_factory=dict)

    def readers(self) -> dict[int, list[int]]:
        """Id of a node -> ids of the nodes that read its value."""
        found: dict[int, list[int]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for value in node.operands:
                if value is not None and node.id not in found[value][-1:]:
                    found[value].append(node.id)
        return found
