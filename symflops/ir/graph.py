"""The graph of a model (:mod:`symflops.ir.nodes`), and the work and parameters derived from it under a regime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sympy import Expr, Integer, Symbol

from symflops.formula.truth import Truth
from symflops.ir.contraction import Contraction
from symflops.ir.nodes import Node, Operator, Parameter, Stream, Value, walk
from symflops.ir.patterns import Path
from symflops.ir.regime import Regime

if TYPE_CHECKING:
    import networkx

    from symflops.ir.spec import Spec


@dataclass(frozen=True, slots=True)
class Length:
    """A batch variable: its symbol, its index set, and the stream and axis whose length it is."""

    symbol: Symbol
    items: str
    stream: str
    axis: str


@dataclass(frozen=True, slots=True)
class Limit:
    """A condition on the lengths of an item of an index set, or of a batch (``once``).

    ``text`` describes the lengths that the class accepts, with ``values`` for ``{0}``, ``{1}``, ...
    """

    items: str
    condition: Truth
    text: str
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A built model: its operators and values, with sizes, streams and lengths.

    ``definitions`` are the derived sizes, in order; ``fixed`` are the sizes whose values the structure depends on. ``inputs``
    are names, values, and the condition under which each exists. ``chosen`` maps the index of a loop to the selectors of a
    regime's patterns that choose its iterations; ``listed`` does so for unrolled iterations: module list, index, selectors.
    ``lists`` are the module lists at whose index a selector has an effect. ``returned`` are the values that unrolled
    iterations pass on, even if nothing reads them. ``left_out`` are the sizes of parts that the regime does not run.
    ``fits`` are formulas of sizes that must be 0, each with the message for a violation. ``limits`` are conditions on
    lengths, ``expected`` are conditions on sizes under which the work is an expectation.
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
    left_out: tuple[str, ...] = ()
    lists: tuple[Path, ...] = ()
    fits: tuple[tuple[Expr, str], ...] = ()
    limits: tuple[Limit, ...] = ()
    expected: tuple[tuple[Truth, str], ...] = ()

    @property
    def name(self) -> str:
        """The name of the spec."""
        return self.spec.name

    def operators(self) -> Iterator[Operator]:
        """Every operator once, in execution order, bodies of loops included."""
        yield from walk(self.body)

    def to_networkx(self) -> networkx.DiGraph:
        """The networkx graph: operators, inputs and outputs; edges go from a value's maker to its readers."""
        from symflops.ir.network import network

        return network(self.name, self.values, self.body, self.inputs, self.outputs)

    def __repr__(self) -> str:
        return f"Graph('{self.name}', operators={sum(1 for _ in self.operators())})"


NONE = Integer(0)
DEAD_END = "dead end"


@dataclass(frozen=True, slots=True)
class Gradient:
    """The gradient of one operand: the number of times it is computed per step, and the reason if never."""

    operand: str
    kind: str
    count: Expr
    reason: str

    @property
    def is_dead(self) -> bool:
        """Whether the gradient is needed, but the loss does not depend on its operator."""
        return self.reason.startswith(DEAD_END)


@dataclass(frozen=True, slots=True)
class Work:
    """One contraction in one step, with the number of forward, gradient and recomputed runs."""

    operator: Operator
    contraction: Contraction
    forward: Expr
    gradients: tuple[Gradient, ...]
    recomputed: Expr = NONE


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """A parameter with its copies over repeats, the condition of its existence, and whether it trains.

    ``within`` are the classes of iterations counted in this entry, by the index of their loop; None means every use.
    """

    parameter: Parameter
    copies: Expr
    exists: Truth
    trains: bool
    within: tuple[tuple[Symbol, Truth], ...] | None = None


@dataclass(frozen=True, slots=True)
class Derivation:
    """Work of both passes of a graph under a regime, and its parameters.

    ``decodes`` are the lengths generated token by token.
    ``rules`` distinguish the regime from a step in which everything trains, each with the operator kinds that it affects
    (:mod:`symflops.derive.regime_checks`).
    """

    graph: Graph
    regime: Regime
    work: tuple[Work, ...]
    parameters: tuple[ParameterCount, ...]
    decodes: frozenset[Symbol] = frozenset()
    rules: tuple[tuple[str, frozenset[str]], ...] = ()

    def __repr__(self) -> str:
        return f"Derivation('{self.graph.name}', regime='{self.regime.name}', contractions={len(self.work)})"
