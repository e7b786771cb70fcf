"""Places repeats: one body per segment of iterations, never one per iteration.

A condition on the index cuts a repeat where its truth changes. The order of cut points (``k`` and ``L - 1``) may be unknown, so
every order is provided for: the segments of all of them stand one after another, with counts (``max(0, min(L, k) - ...)``) that
are zero for the orders that do not happen. A condition that is no run of indices makes classes of iterations in a segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import product
from math import lcm
from typing import TYPE_CHECKING, Any

from sympy import Expr, Integer, Symbol

from symflops.algebra.domain import Choice, Setting, sizes_behind
from symflops.algebra.functions import AtLeast, FloorDiv, Least, Modulo, Most, is_index, size_symbol
from symflops.algebra.truth import NO, Truth, all_of
from symflops.algebra.unknown_size import UnknownSizeError
from symflops.build.index_conditions import Decider, Segment, Undecided, renamed
from symflops.build.limits import MAX_UNROLLED
from symflops.build.scopes import ABSENT, Binding, Frame
from symflops.build.selected_iterations import Chooser
from symflops.build.unroll import base, module_lists, write_out
from symflops.diagnostics.findings import Diagnostic, SpecError
from symflops.frontend.bound_names import assigned
from symflops.model.nodes import Carry, Loop, Node
from symflops.model.spec import Repeat

if TYPE_CHECKING:
    from symflops.build.builder import Builder

MAX_CUTS = 8
MAX_SELECTORS = 3
MAX_PERIOD = 16


class _Unroll(Exception):
    """The iterations follow no pattern that a formula could count, and their number is known."""


def place(builder: Builder, entry: Repeat, frame: Frame) -> None:
    """Place a repeat in the region of ``frame``."""
    for name in (entry.index, entry.item):
        if name is not None and (name.text in frame.names or name.text in builder.streams.lengths):
            message = f"index '{name}' hides a name of the same spelling"
            raise SpecError([Diagnostic("index-hides", message, name.span, "choose another letter")])
    count = _count(builder, entry, frame)
    start = builder.value(entry.start, frame) if entry.start else Integer(0)
    if isinstance(count, tuple):
        return write_out(builder, entry, frame, count, start)
    if not isinstance(count, Expr) or not count.is_integer:
        span = entry.count.span if entry.count else entry.span
        told = f"'repeat' is {count}, which need not be a whole number" if isinstance(count, Expr) else "this is no number"
        hint = "a repeat is of a whole number, a list or an axis; // rounds down"
        raise SpecError([Diagnostic("bad-repeat", told, span, hint)])
    mark = builder.mark(frame)
    try:
        return _Segments(builder, entry, frame, count, start).place()
    except (UnknownSizeError, _Unroll) as reason:
        if not (count.is_Integer and start.is_Integer) or (
            isinstance(reason, UnknownSizeError) and not _about_index(reason, entry)
        ):
            raise _about_count(reason, count) from None
        builder.reset(mark, frame)
        return write_out(builder, entry, frame, (None,) * min(int(count), MAX_UNROLLED + 1), start)


def _about_count(reason: Exception, count: Expr) -> Exception:
    """What to say where iterations must be written out and their number is not known: which size would tell it."""
    letters = sorted(symbol.name for symbol in count.free_symbols if not is_index(symbol.name))
    if isinstance(reason, UnknownSizeError) and not reason.size and letters:
        return UnknownSizeError(letters[0], reason.diagnostic)
    return reason


def _about_index(structural: UnknownSizeError, entry: Repeat) -> bool:
    return not structural.size or (entry.index is not None and structural.size == entry.index.text)


def _count(builder: Builder, entry: Repeat, frame: Frame) -> Any:
    if entry.axis is None:
        assert entry.count is not None
        value = builder.value(entry.count, frame)
        if isinstance(value, Choice) or (isinstance(value, Setting) and value.kind == "list"):
            message = f"the list '{entry.count.text}' decides how often this repeats"
            size = [*sizes_behind(value), ""][0]
            hint = f"give '{size}' a default, or name variants" if size else "its sizes must be known"
            raise UnknownSizeError(size, Diagnostic("structural-size", message, entry.count.span, hint))
        value = value.symbol if isinstance(value, Setting) and value.kind == "item" else value
        return value.expr if isinstance(value, Truth) else value
    value = None if entry.of is None else builder.look_up(entry.of, frame, False).value
    streams = builder.streams.declared.values() if value is None else [value.stream]
    found = (part.get(entry.axis.text) for stream in streams for part in stream.parts)
    length = next((length for length in found if length is not None), None)
    if length is None:
        holder = "no stream has" if value is None else f"'{value.name}' has not"
        raise SpecError([Diagnostic("unknown-axis", f"{holder} an axis '{entry.axis}'", entry.axis.span)])
    return length


class _Segments:
    """Builds the segments of one repeat, cutting further whenever a condition turns out to need it."""

    def __init__(self, builder: Builder, entry: Repeat, frame: Frame, count: Expr, start: Expr) -> None:
        self.builder, self.entry, self.frame = builder, entry, frame
        self.start, self.end = start, start + count
        self.chooser = Chooser(builder.patterns, module_lists(builder, entry, frame), self.start, self.end)
        self.cuts: list[Expr] = self.chooser.cuts()
        self.selectors: list[Expr] = []
        self.canonical = size_symbol(f"{entry.index or 'i'}@")

    def place(self) -> None:
        mark = self.builder.mark(self.frame)
        while True:
            try:
                for segment in self.segments():
                    if segment.count != 0:
                        self.segment(segment)
                return
            except Undecided as found:
                if found.index.name.split("@")[0] + "@" != self.canonical.name or found.index not in self.mine:
                    raise
                self.builder.reset(mark, self.frame)
                self.refine(found)

    mine: frozenset[Symbol] = frozenset()

    def refine(self, found: Undecided) -> None:
        condition = found.selector if found.cut is None else found.cut
        others = condition.free_symbols - {found.index} if condition is not None else set()
        if any(is_index(symbol.name) for symbol in others):
            message = "a condition compares the indices of two repeats"
            raise UnknownSizeError("", Diagnostic("structural-size", message, self.entry.span, "their counts must be known"))
        if found.cut is not None:
            self.cuts.append(found.cut)
        elif found.selector is not None:
            if (self.end - self.start).is_Integer and self.start.is_Integer:
                raise _Unroll
            self.selectors.append(found.selector.xreplace({found.index: self.canonical}))
        if len(self.cuts) > MAX_CUTS or len(self.selectors) > MAX_SELECTORS:
            message = "too many different conditions on the index of one repeat"
            hint = "write the runs of equal layers as repeats of their own, with 'start'"
            raise SpecError([Diagnostic("bad-repeat", message, self.entry.span, hint)])

    def segments(self) -> Iterator[Segment]:
        """Every combination of truths that some order of the cuts allows, in the order in which they can follow each other."""
        for truths in sorted(product((False, True), repeat=len(self.cuts)), key=lambda truths: (sum(truths), truths)):
            pairs = dict(zip(self.cuts, truths, strict=True))
            if any(pairs[a] and not pairs[b] and (a - b).is_nonnegative for a in self.cuts for b in self.cuts):
                continue
            low = reduce(Most, [cut for cut in self.cuts if pairs[cut]], self.start)
            high = reduce(Least, [cut for cut in self.cuts if not pairs[cut]], self.end)
            yield Segment(low, high, pairs)

    def segment(self, segment: Segment) -> None:
        """The loops of one segment: a single one, or, for a pattern of period P, one over whole periods and what is left."""
        period = self.period(segment)
        if period == 1:
            return self.loop(segment, segment.low, segment.count, segment.low, 1, (0,))
        whole = FloorDiv(segment.count, Integer(period))
        self.loop(segment, Integer(0), whole, segment.low, period, tuple(range(period)))
        for residue in range(period - 1):
            there = AtLeast(Modulo(segment.count, Integer(period)), Integer(residue + 1))
            self.loop(segment, Integer(0), there, segment.low + period * whole, period, (residue,))  # one turn at most
        return None

    def period(self, segment: Segment) -> int:
        """After how many iterations the selectors of this repeat come round again; 1 where they do not."""
        found = self.chooser.step
        if not segment.low.is_Integer:
            return 1
        for atom in self.selectors:
            rest = atom.args[0]
            modulus = rest.args[1] if isinstance(rest, Modulo) else None
            if modulus is None or not modulus.is_Integer or not atom.args[1].is_Integer:
                return 1
            found = lcm(found, int(modulus))
        return found if found <= MAX_PERIOD else 1

    def loop(self, segment: Segment, offset: Expr, count: Expr, low: Expr, stride: int, residues: tuple[int, ...]) -> None:
        """One loop of ``count`` turns, each of one iteration per residue; turn ``u`` starts at index ``low + stride * u``."""
        if count == 0:
            return
        builder, frame = self.builder, self.frame
        path = builder.path(self.entry.path, frame)
        index = builder.index(path, offset, count, low, self.entry.index)
        plain = stride == 1 and residues == (0,) and offset == low
        start: Expr = index if plain else low + stride * index
        bound = ((name, frame.values.get(name, ABSENT).value) for name in sorted(assigned(self.entry.body)))
        names = [name for name, value in bound if value is not None and value.id not in builder.poisoned]
        classes, carries = [], []
        changed: set[str] = set()
        results: dict[str, Any] = {}
        before = dict(builder.parameters)
        selectors = self.selectors if plain else []
        for assignment in product((True, False), repeat=len(selectors)):
            selected = dict(zip(selectors, assignment, strict=True))
            truth = all_of(Truth.of(atom) if value else ~Truth.of(atom) for atom, value in selected.items())
            earlier, builder.parameters = builder.parameters, dict(before)
            nodes, carry, moved = self.body(segment, [start + residue for residue in residues], selected, names, results)
            builder.parameters = {**earlier, **builder.parameters}
            changed |= moved
            if truth is not NO:
                classes.append((renamed(truth, self.canonical, index), nodes))
                carries.append(carry)
        frame.nodes.append(
            Loop(
                builder.number(), path, index, count, tuple(classes), tuple(carries), offset, self.entry.shared,
                self.entry.path.text, self.entry.span,
            )
        )  # fmt: skip
        for name in sorted(changed):
            frame.values[name] = Binding(results[name], frame.values[name].present)

    def body(
        self, segment: Segment, positions: list[Expr], selected: dict[Expr, bool], names: list[str], results: dict[str, Any]
    ) -> tuple[tuple[Node, ...], tuple[Carry, ...], set[str]]:
        """The nodes of one turn, what it carries, and the names that it changes."""
        builder, frame = self.builder, self.frame
        nodes: list[Node] = []
        values = dict(frame.values)
        arguments = {}
        for name in names:
            outer = frame.values[name]
            assert outer.value is not None
            arguments[name] = builder.new_value(name, outer.value.stream, outer.value.width, outer.value.span)
            values[name] = Binding(arguments[name], outer.present)
        for position in positions:
            values = self.iteration(segment, position, selected, {name: values[name] for name in frame.values}, nodes)
        carries, moved = [], set()
        for name in names:
            initial, final = frame.values[name].value, values[name].value or arguments[name]
            if final.id in builder.poisoned:
                final = arguments[name]  # a faulty entry should have made it: what is told of that one is enough
            assert initial is not None
            if final.id != arguments[name].id:
                self.check_carried(name, initial, final)
                moved.add(name)
            if name not in results:
                results[name] = builder.new_value(name, initial.stream, initial.width, initial.span)
            carries.append(Carry(initial.id, arguments[name].id, final.id, results[name].id))
        return tuple(nodes), tuple(carries), moved

    def iteration(
        self, segment: Segment, position: Expr, selected: dict[Expr, bool], values: dict[str, Binding], nodes: list[Node]
    ) -> dict[str, Binding]:
        """Place the body once, at index ``position``."""
        builder, frame, entry = self.builder, self.frame, self.entry
        logical = size_symbol(f"{entry.index or 'i'}@{builder.number()}")
        self.mine = self.mine | {logical}
        inner_names = dict(frame.names)
        if entry.index is not None:
            inner_names[entry.index.text] = logical
        decider = Decider(self, segment, logical, position, selected, frame)
        self.chooser.note(builder, position, decider.past, entry.span)
        inner = frame.inside(
            path=base(builder, entry, frame, position), names=inner_names, values=values, nodes=nodes, decide=decider.decide
        )
        builder.depth += 1
        builder.sharing += entry.shared
        try:
            builder.entries(entry.body, inner)
        finally:
            builder.depth -= 1
            builder.sharing -= entry.shared
        return inner.values

    def check_carried(self, name: str, before: Any, after: Any) -> None:
        if after.id in self.builder.poisoned or before.id in self.builder.poisoned:
            return
        equal = self.builder.definitions.equal
        same = before.stream.alike(after.stream) and (
            before.width is after.width or (None not in (before.width, after.width) and equal(before.width, after.width))
        )
        if not same:
            message = f"'{name}' enters the repeat with width {before.width} and leaves it with width {after.width}"
            if before.width == after.width:
                message = f"'{name}' leaves the repeat with other rows than it enters"
            hint = "a name that exists outside is carried from one iteration to the next: bind another name if it is not"
            also = () if before.span is after.span else before.long if before.width == after.width else before.wide
            self.builder.report.error("carried-mismatch", message, after.span, hint, also=also)
