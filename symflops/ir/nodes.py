"""Nodes of a graph: operators with their contractions, loops that carry values, and choices between values.

Regions are in static single assignment form: each value is made once, by an operator, a loop or a choice. A loop has one body
for any count. Iterations are unrolled only if they differ by more than a formula can express.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from sympy import Expr, Mul, Symbol

from symflops.formula.polynomial import Polynomial
from symflops.formula.truth import NO, YES, Truth
from symflops.formula.words import said
from symflops.ir.contraction import Contraction
from symflops.ir.index_sets import ONCE, SAMPLES
from symflops.ir.patterns import Path, Visit, running
from symflops.support.findings import Label, Span


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a stream, with rows in a grid of axes: (axis name, length) pairs."""

    axes: tuple[tuple[str, Expr], ...]

    @property
    def rows(self) -> Expr:
        """Rows of this part per item."""
        return Mul(*(length for _, length in self.axes))

    def get(self, axis: str) -> Expr | None:
        """The length of ``axis``, or None."""
        return dict(self.axes).get(axis)


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows that vary with the batch: each item of an index set has the rows of ``parts``, concatenated.

    ``groups`` are the numbers of parts that each operand of the last concatenation had. ``table`` marks the single row of a
    parameter whose shape has more rows.
    """

    items: str
    parts: tuple[Part, ...]
    groups: tuple[int, ...] = field(default=(), compare=False)
    table: bool = field(default=False, compare=False)

    @property
    def rows(self) -> Expr:
        """Rows per item of the index set."""
        return sum((part.rows for part in self.parts[1:]), self.parts[0].rows)

    def __str__(self) -> str:
        """Rows per item as a message prints them."""
        parts = [" * ".join(said(length) for _, length in part.axes) or "1" for part in self.parts]
        over = {SAMPLES: "per sample", ONCE: "once"}.get(self.items, f"per item of {self.items}")
        return f"{' + '.join(parts)} {over}"

    def alike(self, other: Stream) -> bool:
        """Whether both have the same index set and the same number of rows per item."""
        return self == other or (self.items == other.items and Polynomial.of(self.rows) == Polynomial.of(other.rows))


@dataclass(frozen=True, slots=True)
class Value:
    """One value of the graph; ``width`` is None for a value of indices, which only an embedding may read."""

    id: int
    name: str
    stream: Stream
    width: Expr | None
    span: Span | None = field(default=None, compare=False, repr=False)

    def seen(self, what: str) -> tuple[Label, ...]:
        """A label for a finding at the place that makes the value: ``'q' <what> here``."""
        return (Label(self.span, f"'{self.name}' {what} here"),) if self.span else ()

    @property
    def wide(self) -> tuple[Label, ...]:
        """A label for a finding at the place that makes the value, with its width."""
        return self.seen(f"has width {said(self.width)}" if self.width is not None else "carries indices and has no width")

    @property
    def long(self) -> tuple[Label, ...]:
        """A label for a finding at the place that makes the value, with its rows."""
        return self.seen(f"has rows {self.stream}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter tensor that an operator reads: its path, its shape, and the condition of its existence.

    ``trainable`` is False for a parameter that the real model never trains; a parameter of an ``adapter`` always trains.
    ``lists`` are the indices of its path that range over a module list not created by a repeat (e.g. experts), each with its
    length. ``stacked`` is False for a parameter of a module that all experts of a group share: it has no expert dimension.
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
        """Number of elements of one copy."""
        return Mul(*self.shape)


@dataclass(frozen=True, slots=True)
class Need:
    """A bound on an operator's output: ``length``, computed from ``of``, is at least ``least`` (0 or 1).

    With ``implied``, ``length >= 1`` implies ``of >= 1``. With ``keeps``, the converse also holds.
    """

    length: Expr
    of: Expr
    least: int = 1
    implied: bool = False
    keeps: bool = False


@dataclass(frozen=True, slots=True)
class Operator:
    """One step of the forward pass.

    ``operands`` and ``results`` are value ids. ``guard`` says when it exists, ``flows`` whether gradients pass through it.
    ``saves`` names the tensors that autograd saves for the backward pass: the ``operands``, the ``result``, ``nothing``, or
    the ``factors``, each for the gradient of the other. ``visits`` are the calls that run it from outside its parent module.
    ``role`` and ``regions`` are those of the spec, by which conventions count the work; ``inferred`` and ``shown`` are the
    role and regions that symflops infers if the spec has none (:mod:`symflops.build.roles`). ``needs`` are bounds on lengths
    without which it cannot run, ``fits`` are formulas of sizes that must be 0, each with the message for a violation.
    ``bare`` is True if its weight belongs to the parent, or to a module that is not called: adapters do not apply to it.
    ``turns`` are the enclosing modules that run more than once, each with the number of the call. ``forces`` is the condition
    under which the class makes the results require a gradient.
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

    @property
    def modules(self) -> tuple[Path, ...]:
        """The modules on the call stack of this operator, outermost first."""
        return tuple(running(self.path, self.visits))


@dataclass(frozen=True, slots=True)
class Select:
    """A choice: ``result`` is ``then`` if ``condition`` holds, else ``otherwise``."""

    result: int
    condition: Truth
    then: int
    otherwise: int


@dataclass(frozen=True, slots=True)
class Carry:
    """A value carried from one iteration to the next.

    ``initial`` enters the first iteration, ``argument`` is its name inside the body, ``final`` is what the body returns, and
    ``result`` is the value after the loop.
    """

    initial: int
    argument: int
    final: int
    result: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A body that runs ``count`` times, ``index`` from 0; ``offset`` is the first index in module paths.

    ``classes`` are the different bodies of iterations (every sixth layer, the layers of a list), each with a bracket over the
    index; the brackets exclude each other. A plain loop has one class, without a bracket.
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


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The end of a group that is one autograd function (a reentrant checkpoint).

    ``results`` are the values outside the group, one for each value ``made`` inside. All ``results`` need a gradient if any of
    ``inputs`` does, and all of ``made`` are live if any of ``results`` is. ``members`` are the operators of the group.
    """

    inputs: tuple[int, ...]
    made: tuple[int, ...]
    results: tuple[int, ...]
    members: frozenset[int]


@dataclass(frozen=True, slots=True)
class Push:
    """Appends a value to a sequence inside a loop; ``size`` must be known to unroll the loop."""

    sequence: str
    value: int
    size: str
    guard: Truth = YES
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pop:
    """Removes a value from a sequence inside a loop; values must be alike, so order does not matter."""

    sequence: str
    result: int
    size: str
    guard: Truth = YES
    span: Span | None = field(default=None, compare=False, repr=False)


Node = Operator | Select | Loop | Checkpoint | Push | Pop


def walk(nodes: tuple[Node, ...]) -> Iterator[Operator]:
    """Operators of a region in execution order, including the bodies of loops."""
    for node in nodes:
        if isinstance(node, Operator):
            yield node
        elif isinstance(node, Loop):
            for _, body in node.classes:
                yield from walk(body)


def with_operators(nodes: tuple[Node, ...], change: Callable[[Operator], Iterable[Node]]) -> tuple[Node, ...]:
    """Replace each operator of a region by the nodes of ``change(operator)``, also in the bodies of loops."""
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
