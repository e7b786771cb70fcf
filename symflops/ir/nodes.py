"""Nodes of a graph: operators with their contractions, loops that carry values, and choices between values.

Regions are in static single assignment form: each value is made once, by an operator, a loop or a choice. A loop has one body
whatever its count. Iterations are unrolled only if they differ by more than a formula can express.
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
    """One run of rows per item: axis name -> length."""

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
    """Rows that vary with the batch: an index set, and for each of its items some parts one after another.

    ``groups`` holds how many parts each operand of the last concatenation had, ``table`` whether this is the one row of a
    parameter whose shape has more.
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
        """In words, for messages."""
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
        """The place where it was made, as a label of a finding: ``'q' <what> here``."""
        return (Label(self.span, f"'{self.name}' {what} here"),) if self.span else ()

    @property
    def wide(self) -> tuple[Label, ...]:
        """The place where it was made, with its width."""
        return self.seen(f"has width {said(self.width)}" if self.width is not None else "carries indices and has no width")

    @property
    def long(self) -> tuple[Label, ...]:
        """The place where it was made, with its rows."""
        return self.seen(f"has rows {self.stream}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tensor that an operator reads: its path, its shape, and when it exists.

    ``trainable`` is False for a parameter that the real model never trains; a parameter of an ``adapter`` always trains.
    ``lists`` are the indices of its path that range over a module list not created by a repeat (e.g. experts), each with its
    length. ``stacked`` is False for the parameter of a module that all experts of a group call: it has no dimension for them.
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
        """Elements of one copy."""
        return Mul(*self.shape)


@dataclass(frozen=True, slots=True)
class Need:
    """A length that an operator makes of the length ``of``, and that must be at least ``least``: 1, or 0 if it may be empty.

    If ``implied``, ``of`` is at least 1 if the length is. If ``keeps``, the converse is true, too.
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
    ``saves`` is what autograd saves of it for the backward pass: its ``operands``, its ``result``, ``nothing``, or its
    ``factors``, each for the gradient of the other one. ``visits`` are the calls that run it from outside of its parent module.
    ``role`` and ``regions`` are what conventions count it under, as the spec says it; ``inferred`` and ``shown`` are the
    role and the regions that it leaves open (:mod:`symflops.build.roles`). ``needs`` are the lengths without which it does not
    run, ``fits`` are numbers of the sizes that must be 0, each with what it means if it is not. ``bare`` is True if its weight
    is a parameter of the parent, or of a module that is not called: no adapter runs beside it. ``turns`` are the modules around
    it that run a second time or more, each with a number of that call. ``forces`` says when the class makes its results need a
    gradient.
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
        """The modules that run while it does, outermost first."""
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
    """A body that runs ``count`` times, for ``index`` from 0; ``offset`` is the index of the first iteration in paths.

    ``classes`` are the bodies of iterations that differ by more than a run of indices (every sixth layer, the layers of a
    list). Each has a bracket over the index; the brackets exclude each other. A plain loop has one class, without a bracket.
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

    ``results`` are the values outside of the group, for the values ``made`` inside. All of them need a gradient if one of
    ``inputs`` does, and all of ``made`` is live if one of ``results`` is. ``members`` are the operators of the group.
    """

    inputs: tuple[int, ...]
    made: tuple[int, ...]
    results: tuple[int, ...]
    members: frozenset[int]


@dataclass(frozen=True, slots=True)
class Push:
    """A value that joins a sequence, in a loop. ``size`` is the size that would let the loop be written out."""

    sequence: str
    value: int
    size: str
    guard: Truth = YES
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pop:
    """A value that leaves a sequence, in a loop: which one is the same to both analyses, which demand that all are alike."""

    sequence: str
    result: int
    size: str
    guard: Truth = YES
    span: Span | None = field(default=None, compare=False, repr=False)


Node = Operator | Select | Loop | Checkpoint | Push | Pop


def walk(nodes: tuple[Node, ...]) -> Iterator[Operator]:
    """The operators of a region, including the bodies of loops."""
    for node in nodes:
        if isinstance(node, Operator):
            yield node
        elif isinstance(node, Loop):
            for _, body in node.classes:
                yield from walk(body)


def with_operators(nodes: tuple[Node, ...], change: Callable[[Operator], Iterable[Node]]) -> tuple[Node, ...]:
    """A region with the nodes of ``change`` in place of each operator, also in the bodies of loops."""
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
