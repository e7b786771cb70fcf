"""Places repeats: one body per segment of iterations, never one per iteration.

A condition on the index cuts a repeat where its truth changes. Cut points are expressions whose order may be unknown (``k`` and
``L - 1``), so every order is provided for: the segments of all of them stand one after another, with counts such as
``max(0, min(L, k) - ...)`` that are zero for the orders that do not happen. A condition that is no run of indices (every sixth
layer, the layers of a list) makes classes of iterations inside a segment instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

from sympy import Expr, Integer, Symbol, expand

from symflops.algebra.evaluate import Choice, Setting, Structural
from symflops.algebra.functions import AtLeast, Contains, Equal, Excess, Least, Most, size_symbol
from symflops.algebra.truth import NO, YES, Truth, all_of
from symflops.ground.diagnostics import Diagnostic, SpecError
from symflops.model.graph import Carry, Loop, Node, Path
from symflops.model.spec import Repeat
from symflops.stages.frames import ABSENT, Binding, Frame

if TYPE_CHECKING:
    from symflops.stages.place import Builder

MAX_CUTS = 4
MAX_SELECTORS = 3
MAX_UNROLLED = 512


class Undecided(Exception):
    """A condition on a loop index is not the same for all iterations of the segment being built."""

    def __init__(self, index: Symbol, cut: Expr | None, selector: Expr | None) -> None:
        super().__init__(str(index))
        self.index = index
        self.cut = cut
        self.selector = selector


def is_index(symbol: Symbol) -> bool:
    """Whether ``symbol`` is the index of a repeat."""
    return "@" in symbol.name


def place(builder: Builder, entry: Repeat, frame: Frame) -> None:
    """Place a repeat in the region of ``frame``."""
    for name in (entry.index, entry.item):
        if name is not None and (name.text in frame.names or name.text in builder.streams.lengths):
            message = f"index '{name}' hides a name of the same spelling"
            raise SpecError([Diagnostic("index-hides", message, name.span, "choose another letter")])
    count = _count(builder, entry, frame)
    start = builder.value(entry.start, frame) if entry.start else Integer(0)
    if isinstance(count, tuple):
        return _unroll(builder, entry, frame, count, start)
    if not isinstance(count, Expr):
        span = entry.count.span if entry.count else entry.span
        raise SpecError([Diagnostic("bad-repeat", "a repeat needs a number, a list or an axis", span)])
    mark = builder.mark()
    try:
        return _Segments(builder, entry, frame, count, start).place()
    except Structural as structural:
        if not (count.is_Integer and start.is_Integer and _about_index(structural, entry)):
            raise
        builder.reset(mark)
        return _unroll(builder, entry, frame, (None,) * int(count), start)


def _about_index(structural: Structural, entry: Repeat) -> bool:
    return entry.index is not None and structural.size in ("", entry.index.text)


def _count(builder: Builder, entry: Repeat, frame: Frame) -> Any:
    if entry.axis is None:
        assert entry.count is not None
        value = builder.value(entry.count, frame)
        if isinstance(value, Setting) and value.kind == "list":
            message = f"the list '{value.name}' decides how often this repeats"
            raise Structural(value.name, Diagnostic("structural-size", message, entry.count.span))
        return value.expr if isinstance(value, Truth) else value
    for _, stream in builder.streams.declared.items():
        for part in stream.parts:
            length = part.get(entry.axis.text)
            if length is not None:
                return length
    raise SpecError([Diagnostic("unknown-axis", f"no stream has an axis '{entry.axis}'", entry.axis.span)])


def _base(builder: Builder, entry: Repeat, frame: Frame, index: Expr) -> Path:
    path = builder.path(entry.path, frame)
    if entry.shared or entry.path.text == "_":
        return path
    return path.extend((index if not index.is_Integer else str(index),))


def _unroll(builder: Builder, entry: Repeat, frame: Frame, items: tuple[Any, ...], start: Expr) -> None:
    """Iterations one by one, where the structure itself changes from one to the next."""
    if len(items) > MAX_UNROLLED:
        raise SpecError([Diagnostic("bad-repeat", f"a list of {len(items)} iterations is too long", entry.span)])
    builder.sharing += entry.shared
    for number, item in enumerate(items):
        index = start + number
        names = dict(frame.names)
        if entry.index is not None:
            names[entry.index.text] = index
        if entry.item is not None:
            names[entry.item.text] = item
        inner = frame.inside(path=_base(builder, entry, frame, index), names=names, values=dict(frame.values))
        builder.entries(entry.body, inner)
        for name in frame.values:
            frame.values[name] = inner.values[name]
    builder.sharing -= entry.shared


@dataclass(frozen=True, slots=True)
class _Segment:
    """Iterations ``low`` to ``high`` in which every cut has one truth."""

    low: Expr
    high: Expr
    truths: dict[Expr, bool]

    @property
    def count(self) -> Expr:
        return span(self.low, self.high)


def span(low: Expr, high: Expr) -> Expr:
    """``max(0, high - low)``, said simply."""
    if isinstance(low, Excess):
        rest = high - low.args[0]
        if rest.is_Integer and rest > 0 and high.is_nonnegative:
            return AtLeast(high, Integer(1)) if rest == 1 else Least(high, rest)
    return Excess(expand(high - low))


class _Segments:
    """Builds the segments of one repeat, cutting further whenever a condition turns out to need it."""

    def __init__(self, builder: Builder, entry: Repeat, frame: Frame, count: Expr, start: Expr) -> None:
        self.builder, self.entry, self.frame = builder, entry, frame
        self.start, self.end = start, start + count
        self.cuts: list[Expr] = []
        self.selectors: list[Expr] = []
        self.canonical = size_symbol(f"{entry.index or 'i'}@")

    def place(self) -> None:
        mark = self.builder.mark()
        before = dict(self.frame.values)
        nodes = len(self.frame.nodes)
        while True:
            try:
                for segment in self.segments():
                    if segment.count != 0:
                        self.segment(segment)
                return
            except Undecided as found:
                if found.index.name.split("@")[0] + "@" != self.canonical.name or found.index not in self.mine:
                    raise
                self.builder.reset(mark)
                del self.frame.nodes[nodes:]
                self.frame.values.clear()
                self.frame.values.update(before)
                self.refine(found)

    mine: frozenset[Symbol] = frozenset()

    def refine(self, found: Undecided) -> None:
        if found.cut is not None:
            self.cuts.append(found.cut)
        elif found.selector is not None:
            self.selectors.append(found.selector.xreplace({found.index: self.canonical}))
        if len(self.cuts) > MAX_CUTS or len(self.selectors) > MAX_SELECTORS:
            message = "too many different conditions on the index of one repeat"
            hint = "write the runs of equal layers as repeats of their own, with 'start'"
            raise SpecError([Diagnostic("bad-repeat", message, self.entry.span, hint)])

    def segments(self) -> Iterator[_Segment]:
        """Every combination of truths that some order of the cuts allows, in the order in which they can follow each other."""
        for truths in sorted(product((False, True), repeat=len(self.cuts)), key=lambda truths: (sum(truths), truths)):
            pairs = dict(zip(self.cuts, truths, strict=True))
            if any(pairs[a] and not pairs[b] and (a - b).is_nonnegative for a in self.cuts for b in self.cuts):
                continue
            low = reduce(Most, [cut for cut in self.cuts if pairs[cut]], self.start)
            high = reduce(Least, [cut for cut in self.cuts if not pairs[cut]], self.end)
            yield _Segment(low, high, pairs)

    def segment(self, segment: _Segment) -> None:
        """One loop: its classes, and the values that it carries."""
        builder, frame, entry = self.builder, self.frame, self.entry
        index = size_symbol(f"{entry.index or 'i'}@{builder.number()}")
        self.mine = self.mine | {index}
        from symflops.stages.place import assigned

        names = [name for name in sorted(assigned(entry.body)) if frame.values.get(name, ABSENT).value is not None]
        results = {}
        classes, carries = [], []
        changed: set[str] = set()
        for assignment in product((True, False), repeat=len(self.selectors)):
            selected = dict(zip(self.selectors, assignment, strict=True))
            truth = all_of(Truth.of(atom) if value else ~Truth.of(atom) for atom, value in selected.items())
            truth = _renamed(truth, self.canonical, index)
            nodes, carry, moved = self.body(segment, index, selected, names, results)
            changed |= moved
            if truth is not NO:
                classes.append((truth, nodes))
                carries.append(carry)
        path = builder.path(entry.path, frame)
        frame.nodes.append(
            Loop(
                builder.number(), path, index, segment.count, tuple(classes), tuple(carries), segment.low, entry.shared,
                entry.path.text, entry.span,
            )
        )  # fmt: skip
        for name in sorted(changed):
            frame.values[name] = Binding(results[name], frame.values[name].present)

    def body(
        self, segment: _Segment, index: Symbol, selected: dict[Expr, bool], names: list[str], results: dict[str, Any]
    ) -> tuple[tuple[Node, ...], tuple[Carry, ...], set[str]]:
        builder, frame, entry = self.builder, self.frame, self.entry
        inner_names = dict(frame.names)
        if entry.index is not None:
            inner_names[entry.index.text] = index
        decider = _Decider(self, segment, index, selected, frame)
        inner = frame.inside(
            path=_base(builder, entry, frame, index), names=inner_names, values=dict(frame.values), nodes=[], decide=decider.decide
        )
        arguments = {}
        for name in names:
            outer = frame.values[name]
            assert outer.value is not None
            value = builder.new_value(name, outer.value.stream, outer.value.width, outer.value.span)
            arguments[name] = value
            inner.values[name] = Binding(value, outer.present)
        builder.entries(entry.body, inner)
        carries, moved = [], set()
        for name in names:
            outer, final = frame.values[name], inner.values[name]
            assert outer.value is not None
            if final.value is None:
                final = Binding(arguments[name])
            assert final.value is not None
            if final.value.id != arguments[name].id:
                self.check_carried(name, outer.value, final.value)
                moved.add(name)
            if name not in results:
                results[name] = builder.new_value(name, outer.value.stream, outer.value.width, outer.value.span)
            carries.append(Carry(outer.value.id, arguments[name].id, final.value.id, results[name].id))
        return tuple(inner.nodes), tuple(carries), moved

    def check_carried(self, name: str, before: Any, after: Any) -> None:
        equal = self.builder.definitions.equal
        same = before.stream.alike(after.stream) and (
            before.width is after.width or (None not in (before.width, after.width) and equal(before.width, after.width))
        )
        if not same:
            message = f"'{name}' enters the repeat with width {before.width} and leaves it with width {after.width}"
            if before.width == after.width:
                message = f"'{name}' leaves the repeat with other rows than it enters"
            hint = "a name that exists outside is carried from one iteration to the next: bind another name if it is not"
            self.builder.report.error("carried-mismatch", message, after.span, hint)


class _Decider:
    """Decides the conditions on one loop's index, or says where the loop must be cut."""

    def __init__(self, segments: _Segments, segment: _Segment, index: Symbol, selected: dict[Expr, bool], frame: Frame) -> None:
        self.segments, self.segment, self.index, self.selected = segments, segment, index, selected
        self.outer = frame.decide

    def decide(self, value: Any) -> Any:
        """``value`` without conditions on the index."""
        return self.outer(self.resolve(value))

    def resolve(self, value: Any) -> Any:
        if isinstance(value, Truth):
            return self.truth(value)
        if isinstance(value, Expr):
            atoms = [atom for atom in value.atoms(AtLeast, Equal, Contains) if self.index in atom.free_symbols]
            return value.xreplace({atom: Integer(self.atom(atom)) for atom in sorted(atoms, key=str)}) if atoms else value
        if isinstance(value, Choice):
            cases = [(self.truth(truth), self.resolve(item)) for truth, item in value.cases]
            known = [item for truth, item in cases if truth is YES]
            return known[0] if known else Choice(tuple(case for case in cases if case[0] is not NO))
        if isinstance(value, tuple):
            return tuple(self.resolve(item) for item in value)
        return value

    def truth(self, truth: Truth) -> Truth:
        if not any(self.index in atom.free_symbols for product_ in truth.terms for atom in product_):
            return truth
        total = NO
        for product_, factor in sorted(truth.terms.items(), key=lambda term: str(sorted(map(str, term[0])))):
            rest = frozenset(atom for atom in product_ if self.index not in atom.free_symbols)
            if all(self.atom(atom) for atom in sorted(product_ - rest, key=str)):
                total = total.plus(Truth({rest: 1}), factor)
        return total

    def atom(self, atom: Expr) -> bool:
        """The truth of one bracket in this segment."""
        canonical = atom.xreplace({self.index: self.segments.canonical})
        if canonical in self.selected:
            return self.selected[canonical]
        if isinstance(atom, (AtLeast, Equal)):
            difference = expand(atom.args[0] - atom.args[1]) if not atom.args[1].is_Symbol or atom.args[1].is_integer else None
            slope = difference.coeff(self.index, 1) if difference is not None else None
            if difference is not None and slope in (1, -1):
                rest = expand(difference - slope * self.index)
                if self.index not in rest.free_symbols:
                    return self.run(atom, slope, rest)
        raise Undecided(self.index, None, atom)

    def run(self, atom: Expr, slope: Expr, rest: Expr) -> bool:
        """A bracket that holds for a run of indices."""
        if isinstance(atom, AtLeast):
            return self.past(-rest) if slope == 1 else not self.past(rest + 1)
        point = -rest if slope == 1 else rest
        return self.past(point) and not self.past(point + 1)

    def past(self, point: Expr) -> bool:
        """Whether the index is at least ``point``."""
        if point in self.segment.truths:
            return self.segment.truths[point]
        if (self.segments.start - point).is_nonnegative:
            return True
        if (point - self.segments.end).is_nonnegative:
            return False
        for known, truth in self.segment.truths.items():
            if truth and (known - point).is_nonnegative:
                return True
            if not truth and (point - known).is_nonnegative:
                return False
        raise Undecided(self.index, point, None)


def _renamed(truth: Truth, old: Symbol, new: Symbol) -> Truth:
    return Truth({frozenset(atom.xreplace({old: new}) for atom in product_): factor for product_, factor in truth.terms.items()}) if truth not in (YES, NO) else truth
