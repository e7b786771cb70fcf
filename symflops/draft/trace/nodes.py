"""A tape: the values of a run, each with what it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

Value = int | None
CONTRACTIONS = ("matmul", "conv", "solve")


@dataclass(slots=True)
class Node:
    """One value: an input, a parameter, a look-up in one, a contraction, or a join of other values.

    ``operands`` are the values that it depends on, None for a constant; the two sides of a contraction come first, then what
    is added to its result. ``data`` are the inputs that constants were made of. ``sizes`` are the index sizes of a contraction:
    batch, rows, inner, columns of a product; batch, channels out, channels in, groups, kernel and output (input of a transposed
    one) of a convolution. ``shapes`` are those of the operands and of the result, the result's last.
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
        """Multiply-adds of the forward pass; a solution of a system is not counted by anyone."""
        return 0 if self.kind == "solve" else self.times * prod(self.sizes) if self.kind in CONTRACTIONS else 0


@dataclass(slots=True)
class Tape:
    """All nodes of a run in the order in which they came, and the values that the loss sums."""

    nodes: list[Node]
    outputs: tuple[int, ...]
    parameters: dict[str, tuple[int, ...]]
    frozen: frozenset[str]

    def readers(self) -> dict[int, list[int]]:
        """For each value the nodes that read it."""
        found: dict[int, list[int]] = {node.id: [] for node in self.nodes}
        for node in self.nodes:
            for value in node.operands:
                if value is not None and node.id not in found[value][-1:]:
                    found[value].append(node.id)
        return found
