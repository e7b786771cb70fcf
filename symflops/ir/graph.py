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
    """A batch variable: the length of one axis of a stream, which a batch gives for each item.

    Attributes:
        symbol: The symbol in formulas.
        items: The index set of the items.
        stream: The name of the stream.
        axis: The name of the axis.
    """

    symbol: Symbol
    items: str
    stream: str
    axis: str


@dataclass(frozen=True, slots=True)
class Limit:
    """A condition of a spec on lengths; the class refuses batches that violate it.

    Attributes:
        items: The index set for each of whose items the condition holds; ``once`` for a condition on the whole batch.
        condition: The condition.
        text: The lengths that the class accepts, in words.
        values: Formulas whose values replace ``{0}``, ``{1}``, ... in ``text``.
    """

    items: str
    condition: Truth
    text: str
    values: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A built model: its operators and values, with sizes, streams and lengths.

    Attributes:
        spec: The spec it was built from.
        values: The values by id.
        body: The nodes in execution order.
        inputs: For each argument with a stream: name, value id, and the condition under which the model has it.
        outputs: For each output: name and value id.
        sizes: For each size of the spec: letter and expression.
        definitions: For each derived size, in order: symbol and formula.
        streams: The declared streams by name.
        lengths: The batch variables.
        fixed: The sizes whose values this structure depends on, with these values.
        chosen: For the index of a loop: the numbers and slices in patterns of the regime that select its iterations.
        listed: The same for unrolled iterations: path of the module list, index, numbers and slices that select it.
        returned: Ids of values that unrolled iterations pass on, even if no operator reads them.
        left_out: Letters of sizes that belong to parts that the regime does not run.
        lists: Paths of module lists whose index a number or slice in a pattern can select.
        fits: Formulas of sizes that must be 0, each with the message if it is not.
        limits: The conditions on lengths.
        expected: Conditions on sizes under which the work is an expectation, each with a text that says of what.
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
        """Iterate over all operators in execution order, those of a loop's body once."""
        return walk(self.body, Operator)

    def to_networkx(self) -> networkx.DiGraph:
        """The graph as a networkx graph, with an edge from the maker of each value to each of its readers.

        Nodes are the operators, inputs and outputs.
        """
        from symflops.ir.network import network

        return network(self.name, self.values, self.body, self.inputs, self.outputs)

    def __repr__(self) -> str:
        return f"Graph('{self.name}', operators={sum(1 for _ in self.operators())})"


NONE = Integer(0)
DEAD_END = "dead end"


@dataclass(frozen=True, slots=True)
class Gradient:
    """The gradient of one operand of a contraction.

    Attributes:
        operand: The label of the operand.
        kind: Whether it is the gradient of a weight or of an input.
        count: How often it is computed per step, as an expression; 0 if never.
        reason: Why it is not computed, or only sometimes; empty if always.
    """

    operand: str
    kind: str
    count: Expr
    reason: str

    @property
    def is_dead(self) -> bool:
        """Whether the operand needs a gradient, but none arrives: the loss does not depend on its operator."""
        return self.reason.startswith(DEAD_END)


@dataclass(frozen=True, slots=True)
class Work:
    """One contraction of an operator with its run counts in one step.

    Attributes:
        operator: The operator.
        contraction: The contraction.
        forward: Runs in forward passes.
        gradients: The gradient of each operand.
        recomputed: Runs in the backward pass that repeat forward work.
    """

    operator: Operator
    contraction: Contraction
    forward: Expr
    gradients: tuple[Gradient, ...]
    recomputed: Expr = NONE


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """A parameter with the number of its copies, and whether it trains.

    Attributes:
        parameter: The parameter.
        copies: Number of copies over the iterations of loops and over lists of modules.
        exists: The condition under which the model has it.
        trains: Whether it trains under the regime.
        within: For loops with several bodies, those whose copies this entry counts: (index, condition); None: all.
    """

    parameter: Parameter
    copies: Expr
    exists: Truth
    trains: bool
    within: tuple[tuple[Symbol, Truth], ...] | None = None


@dataclass(frozen=True, slots=True)
class Derivation:
    """The work of a step and the parameters of a graph, under a regime.

    Attributes:
        graph: The graph.
        regime: The regime.
        work: Every contraction with its run counts.
        parameters: Every parameter, adapters included.
        decodes: Symbols of the lengths that are generated token by token.
        rules: What the regime changes against a step in which everything trains (:mod:`symflops.derive.regime_checks`): name of
            the rule, and the operator kinds it affects.
        kept: What is kept for further tokens after the calls of the regime: (kind, index set, elements per item).
    """

    graph: Graph
    regime: Regime
    work: tuple[Work, ...]
    parameters: tuple[ParameterCount, ...]
    decodes: frozenset[Symbol] = frozenset()
    rules: tuple[tuple[str, frozenset[str]], ...] = ()
    kept: tuple[tuple[str, str, Expr], ...] = ()

    def __repr__(self) -> str:
        return f"Derivation('{self.graph.name}', regime='{self.regime.name}', contractions={len(self.work)})"
