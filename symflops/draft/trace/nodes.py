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
        id: Its position on the tape.
        kind: ``input``, ``parameter``, ``embedding``, ``matmul``, ``conv``, ``solve`` or ``join``.
        path: The path of the module that ran the operator; the name of a parameter or input.
        operands: Ids of the nodes that it reads, None for a constant. A contraction's two factors come first, then the
            values added to its result.
        shapes: The shapes of the operands, then that of the result.
        sizes: The index sizes of a contraction: batch, rows, inner, columns of a product; batch, channels out, channels in,
            kernel and output (input of a transposed one) of a convolution.
        word: The name of the operator; the dtype of an input.
        data: For each operand, the names of the inputs that it was computed from.
        options: Stride, padding and other options of a convolution.
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
    """A recorded run of a module.

    Attributes:
        nodes: All nodes in execution order.
        outputs: The ids of the nodes that the loss sums.
        parameters: Parameter -> shape.
        frozen: The parameters that require no gradient.
        by_value: Pairs (operator, device) for operators whose output shape or result depends on the values of a tensor on
            this device.
        tied: Alias of a shared parameter -> its first name.
    """

    nodes: list[Node]
    outputs: tuple[int, ...]
    parameters: dict[str, tuple[int, ...]]
    frozen: frozenset[str]
    by_value: frozenset[tuple[str, str]] = frozenset()
    tied: Mapping[str, str] = field(default_factory=dict)

    def readers(self) -> dict[int, list[int]]:
        """Id of a node -> ids of the nodes that read its value, in execution order."""
        found: dict[int, list[int]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for value in node.operands:
                if value is not None and node.id not in found[value][-1:]:
                    found[value].append(node.id)
        return found
