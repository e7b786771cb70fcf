"""The tape of a run: its values, each with the values that it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

Value = int | None
COUNTED = ("matmul", "conv")


@dataclass(slots=True)
class Node:
    """One value: an input, a parameter, a look-up in a parameter, a contraction, or a join of other values.

    Attributes:
        operands: The values that it depends on, None for a constant. The two sides of a contraction come first, then what is
            added to its result.
        shapes: The shapes of the operands, then that of the result.
        sizes: The index sizes of a contraction: batch, rows, inner, columns of a product; batch, channels out, channels in,
            kernel and output (input of a transposed one) of a convolution.
        data: For each operand, the inputs that it was computed from.
        quiet: Whether it ran without gradients.
        times: How often it ran.
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
        """Multiply-adds of the forward pass; no counter counts the solution of a linear system."""
        return self.times * prod(self.sizes) if self.kind in COUNTED else 0


@dataclass(slots=True)
class Tape:
    """All nodes of a run in their order, the values that the loss sums, and the shapes of parameters.

    ``tied`` are the further names of parameters that have several, each with the first one.
    ``by_value`` names the operators whose shape or answer depends on the values of a tensor, each with the tensor's device.
    """

    nodes: list[Node]
    outputs: tuple[int, ...]
    parameters: dict[str, tuple[int, ...]]
    frozen: frozenset[str]
    by_value: frozenset[tuple[str, str]] = frozenset()
    tied: Mapping[str, str] = field(default_factory=dict)

    def readers(self) -> dict[int, list[int]]:
        """For each value, the nodes that read it."""
        found: dict[int, list[int]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for value in node.operands:
                if value is not None and node.id not in found[value][-1:]:
                    found[value].append(node.id)
        return found
