"""The graph of a model: its inputs, outputs, sizes and lengths around a region of nodes (:mod:`symflops.model.nodes`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sympy import Expr, Symbol

from symflops.algebra.truth import Truth
from symflops.model.nodes import Node, Operator, Stream, Value, walk
from symflops.model.path import Path

if TYPE_CHECKING:
    import networkx

    from symflops.model.spec import Spec


@dataclass(frozen=True, slots=True)
class Length:
    """A batch variable: its symbol, the index set whose items have it, and the streams and axes that it measures."""

    symbol: Symbol
    items: str
    stream: str
    axis: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A built model. ``definitions`` are the derived sizes, in order; ``fixed`` the sizes that the structure took as known.

    ``inputs`` are names, values, and when they are there; ``chosen`` says which selectors of a regime's patterns choose the
    iterations at an index, ``listed`` the same of iterations that are written out: module list, index, selectors. ``returned``
    are the values that those hand on, read or not.
    """

    spec: Spec
    values: tuple[Value, ...]
    body: tuple[Node, ...]
    inputs: tuple[tuple[str, int, Truth], ...]
    outputs: tuple[tuple[str, int], ...]
    sizes: tuple[tuple[str, Expr], ...]
    definitions: tuple[tuple[Symbol, Expr], ...]
    streams: tuple[tuple[str, Stream], ...]
    lengths: tuple[Length, ...]
    fixed: tuple[tuple[str, object], ...] = ()
    chosen: tuple[tuple[Expr, frozenset[str]], ...] = ()
    listed: tuple[tuple[Path, int, frozenset[str]], ...] = ()
    returned: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        """The name of the spec."""
        return self.spec.name

    def operators(self) -> Iterator[Operator]:
        """Every operator once, in execution order, the bodies of loops where the loops stand."""
        yield from walk(self.body)

    def to_networkx(self) -> networkx.DiGraph:
        """The graph as networkx draws and walks it: a node per operator, input and output, an edge per value that flows."""
        from symflops.model.network import network

        return network(self)
