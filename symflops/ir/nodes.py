"""Nodes of a graph: operators with their contractions, loops that carry values, and choices between values.

Regions are in static single assignment form: each value is made once, by an operator, a loop or a choice. A loop has one body
for any count. Iterations are unrolled only if they differ by more than a formula can express.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sympy import Expr, Mul, Symbol

from symflops.formula.truth import NO, YES, Truth
from symflops.formula.words import said
from symflops.ir.contraction import Contraction
from symflops.ir.index_sets import ONCE, SAMPLES
from symflops.ir.patterns import Path, Visit, prefixes, running
from symflops.support.findings import Label, Span


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a stream: a grid of rows along ``axes``, (name, length) pairs."""

    axes: tuple[tuple[str, Expr], ...]

    @property
    def rows(self) -> Expr:
        """Number of rows of this part per item."""
        return Mul(*(length for _, length in self.axes))

    def get(self, axis: str) -> Expr | None:
        """The length of the axis named ``axis``; None if this part has no such axis."""
        return dict(self.axes).get(axis)


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows that vary with the batch: each item of an index set has the rows of ``parts``, concatenated.

    ``groups`` has one number per operand of the concatenation that made the stream: how many parts that operand had. ``table``
    is True for a parameter that is read as one row, although its shape has more rows.
    """

    items: str
    parts: tuple[Part, ...]
    groups: tuple[int, ...] = field(default=(), compare=False)
    table: bool = field(default=False, compare=False)

    @property
    def rows(self) -> Expr:
        """Number of rows per item of the index set."""
        return sum((part.rows for part in self.parts[1:]), self.parts[0].rows)

    def __str__(self) -> str:
        """The rows per item as text for messages, such as ``t * h per sample``."""
        parts = [" * ".join(said(length) for _, length in part.axes) or "1" for part in self.parts]
        over = {SAMPLES: "per sample", ONCE: "once"}.get(self.items, f"per item of {self.items}")
        return f"{' + '.join(parts)} {over}"

    def alike(self, other: Stream, equal: Callable[[Expr, Expr], bool]) -> bool:
        """Whether this and ``other`` have the same index set and, as ``equal`` compares them, equally many rows per item."""
        return self == other or (self.items == other.items and equal(self.rows, other.rows))


@dataclass(frozen=True, slots=True)
class Value:
    """One value of the graph.

    ``width`` is the number of elements of a row; None for indices, which only an embedding may read. ``span`` is the place in
    the spec that makes the value.
    """

    id: int
    name: str
    stream: Stream
    width: Expr | None
    span: Span | None = field(default=None, compare=False, repr=False)

    def seen(self, what: str) -> tuple[Label, ...]:
        """A label ``'<name>' <what> here`` at the place that makes the value; empty if that place is unknown."""
        return (Label(self.span, f"'{self.name}' {what} here"),) if self.span else ()

    @property
    def wide(self) -> tuple[Label, ...]:
        """A label with the width of the value at the place that makes it; empty if that place is unknown."""
        return self.seen(f"has width {said(self.width)}" if self.width is not None else "carries indices and has no width")

    @property
    def long(self) -> tuple[Label, ...]:
        """A label with the rows of the value at the place that makes it; empty if that place is unknown."""
        return self.seen(f"has rows {self.stream}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter tensor that an operator reads.

    Attributes:
        path: Its name in the model, with loop indices as expressions.
        shape: The shape of one copy.
        exists: The condition under which the model has it.
        trainable: False if the real model never trains it.
        span: The place in the spec.
        adapter: Whether it belongs to an adapter, and so always trains.
        lists: Indices in its path that do not belong to a repeat, such as that of an expert, each with the number of values.
        stacked: False if all experts of a group share its module, so that experts add no dimension to it.
    """

    path: Path
    shape: tuple[Expr, ...]
    exists: Truth = YES
    trainable: bool = True
    span: Span | None = field(default=None, compare=False, repr=False)
    adapter: bool = False
    lists: tuple[tuple[Symbol, Expr], ...] = ()
    stacked: bool = True

    @property
    def count(self) -> Expr:
        """Number of elements of one copy, the product of its shape."""
        return Mul(*self.shape)


@dataclass(frozen=True, slots=True)
class Need:
    """A lower bound without which an operator cannot run: ``length >= least``, where ``least`` is 0 or 1.

    ``length`` is a length of the result, ``of`` the length of the operand from which it is computed. With ``implied``,
    ``length`` is at least 1 only if ``of`` is; with ``keeps``, exactly if ``of`` is.
    """

    length: Expr
    of: Expr
    least: int = 1
    implied: bool = False
    keeps: bool = False


CHOICE = "expert_choice"
"""The axis of rows that a router sends to experts: its length is the number of experts per row."""
OF_OTHERS = "keys and values of other tokens"
"""Kind of what attention keeps of another sequence, such as an encoder's."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows that an operator keeps for later calls of the model, per item: ``rows`` of ``width`` elements.

    Attributes:
        kind: ``keys and values``, ``latent``, ``convolution``, ``state``, or :data:`OF_OTHERS`.
        stream: The stream of the tokens of one call that it is made of.
        rows: Number of rows after the call.
        width: Elements of a row.
    """

    kind: str
    stream: Stream
    rows: Expr
    width: Expr


@dataclass(frozen=True, slots=True)
class Operator:
    """One step of the forward pass.

    Attributes:
        id: Its number in the graph.
        kind: Its kind, such as ``linear``.
        path: Its module path.
        operands: Ids of the values that it reads.
        results: Ids of the values that it makes.
        parameters: The parameters that it reads.
        contractions: Its contractions.
        guard: The condition under which it exists.
        saves: What autograd saves for its backward pass: ``operands``, ``result``, ``nothing``, or ``factors`` (two operands,
            each for the gradient of the other).
        flows: Whether gradients pass through it.
        role: Its role in the spec; empty if none.
        caption: Text about its sizes for pages.
        span: The place in the spec.
        visits: Calls of modules around it from outside their parent modules.
        regions: Its regions in the spec.
        needs: Lower bounds of lengths without which it cannot run.
        inferred: The role inferred from its path, if the spec has none (:mod:`symflops.build.roles`).
        shown: The regions inferred from its path.
        fits: Formulas of sizes that must be 0, each with the message if it is not.
        bare: Whether its weight belongs to a module that is not called, so that adapters do not apply to it.
        turns: Modules around it that are called again, each with a number that identifies the call.
        forces: The condition under which the class makes its results require a gradient.
        fields: The values of its fields in the spec, by name.
        named: The ids of its operands, by field.
        enters: Whether its operands need a gradient that comes from outside of the model.
        keeps: What it keeps for later calls.
    """

    id: int
    kind: str
    path: Path
    operands: tuple[int, ...]
    results: tuple[int, ...]
    parameters: tuple[Parameter, ...] = ()
    contractions: tuple[Contraction, ...] = ()
    guard: Truth = YES
    saves: str = "operands"
    flows: bool = True
    role: str = ""
    caption: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)
    visits: tuple[Visit, ...] = ()
    regions: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    inferred: str = ""
    shown: tuple[str, ...] = ()
    fits: tuple[tuple[Expr, str], ...] = ()
    bare: bool = False
    turns: tuple[tuple[Path, int], ...] = ()
    forces: Truth = NO
    fields: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    named: Mapping[str, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)
    enters: bool = False
    keeps: tuple[Kept, ...] = ()

    @property
    def modules(self) -> tuple[Path, ...]:
        """Paths of the modules that are running when this operator runs, outermost first."""
        return tuple(running(self.path, self.visits))


@dataclass(frozen=True, slots=True)
class Select:
    """A choice between values, by id: ``result`` is ``then`` if ``condition`` holds, else ``otherwise``."""

    result: int
    condition: Truth
    then: int
    otherwise: int


@dataclass(frozen=True, slots=True)
class Carry:
    """A value that one iteration of a loop passes to the next; all fields are value ids.

    Attributes:
        initial: The value before the loop, which the first iteration reads.
        argument: What an iteration reads, as the body names it.
        final: What the body passes to the next iteration.
        result: The value after the loop.
    """

    initial: int
    argument: int
    final: int
    result: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A repeat in the graph.

    Attributes:
        id: Its number in the graph.
        path: The path of the module list.
        index: The symbol of the iteration, from 0.
        count: The number of iterations.
        classes: Its different bodies, each with a condition on the index; no two hold for one index.
        carries: For each body: the values passed to the next iteration.
        offset: The index in module paths of the first iteration.
        shared: Whether all iterations run the same module.
        label: What pages call it.
        span: The place in the spec.
        visits: Calls of modules around it from outside their parent modules.
        turns: Modules around it that are called again, each with a number that identifies the call.
    """

    id: int
    path: Path
    index: Symbol
    count: Expr
    classes: tuple[tuple[Truth, tuple[Node, ...]], ...]
    carries: tuple[tuple[Carry, ...], ...]
    offset: Expr
    shared: bool = False
    label: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)
    visits: tuple[Visit, ...] = ()
    turns: tuple[tuple[Path, int], ...] = ()

    @property
    def modules(self) -> tuple[Path, ...]:
        """Paths of the modules that are running when the loop runs, and that of its module list, outermost first."""
        return tuple(running(self.path, self.visits))


Call = tuple[Path, tuple[int, ...]]
"""A call of a module: its path, and the numbers of the repeated calls around it."""


def call_of(node: Operator | Loop, module: Path) -> Call:
    """Identify the call of ``module``, which is running when ``node`` runs: equal for all nodes of one call."""
    around = set(prefixes(module))
    return module, tuple(number for path, number in node.turns if path in around or not path.parts)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The end of a group of operators that runs as one autograd function (a reentrant checkpoint).

    All ``results`` need a gradient if any of ``inputs`` does; gradients reach all of ``made`` if they reach any of ``results``.

    Attributes:
        inputs: Ids of the values that enter the group.
        made: Ids of the group's results as its operators make them.
        results: Ids of the same results as operators outside read them.
        members: Ids of the operators of the group.
    """

    inputs: tuple[int, ...]
    made: tuple[int, ...]
    results: tuple[int, ...]
    members: frozenset[int]


@dataclass(frozen=True, slots=True)
class Push:
    """Adds a value to a stack inside a loop.

    Attributes:
        sequence: The name of the stack.
        value: The id of the value.
        size: The letter of the size that must be known to unroll the loop.
        guard: The condition under which this happens.
        span: The place in the spec.
    """

    sequence: str
    value: int
    size: str
    guard: Truth = YES
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pop:
    """Takes a value from a stack inside a loop; all values on the stack are alike, so any of them will do.

    Attributes:
        sequence: The name of the stack.
        result: The id of the value taken.
        size: The letter of the size that must be known to unroll the loop.
        guard: The condition under which this happens.
        span: The place in the spec.
    """

    sequence: str
    result: int
    size: str
    guard: Truth = YES
    span: Span | None = field(default=None, compare=False, repr=False)


Node = Operator | Select | Loop | Checkpoint | Push | Pop


N = TypeVar("N", bound=Node)


def walk(nodes: tuple[Node, ...], kind: type[N]) -> Iterator[N]:
    """Yield the nodes of the type ``kind`` in execution order, also from the bodies of loops; a loop before its bodies."""
    for node in nodes:
        if isinstance(node, kind):
            yield node
        if isinstance(node, Loop):
            for _, body in node.classes:
                yield from walk(body, kind)


def with_operators(nodes: tuple[Node, ...], change: Callable[[Operator], Iterable[Node]]) -> tuple[Node, ...]:
    """``nodes`` with each operator replaced by the nodes ``change(operator)``, in the bodies of loops too."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Operator):
            found.extend(change(node))
        elif isinstance(node, Loop):
            classes = tuple((truth, with_operators(body, change)) for truth, body in node.classes)
            found.append(replace(node, classes=classes))
        else:
            found.append(node)
    return tuple(found)
