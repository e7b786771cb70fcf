"""Cuts a repeat into segments: one loop per run of equal iterations, never one body per iteration.

A condition on the index cuts the repeat where its truth changes. If the order of cut points (``k`` and ``L - 1``) is unknown,
segments are placed for every order, one after the other; the counts (``max(0, min(L, k) - ...)``) are zero for orders that do
not occur. A condition that does not hold for a contiguous run of indices divides a segment's iterations into classes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import chain, islice, product
from math import lcm
from typing import NamedTuple

from sympy import Expr, Integer, Symbol

from symflops.build.index_conditions import Cut, Decider, Segment, Select, UndecidedError, cycle, renamed
from symflops.build.iterations import iteration_path, module_lists, place_body
from symflops.build.parameter_table import Claims
from symflops.build.scopes import ABSENT, Binding, Frame
from symflops.build.selected_iterations import SelectedIterations
from symflops.build.services import PlaceEntries, Services
from symflops.formula.functions import AtLeast, FloorDiv, Least, Modulo, Most, is_index, size_symbol
from symflops.formula.truth import NO, Truth, UnknownSizeError, all_of
from symflops.formula.words import said
from symflops.ir.nodes import Carry, Loop, Node, Value
from symflops.ir.patterns import Path
from symflops.ir.spec import Repeat
from symflops.read.bound_names import assigned
from symflops.support.findings import Diagnostic, SpecError

MAX_CUTS = 8
MAX_SELECTORS = 5
MAX_PERIOD = 16
MAX_SEGMENTS = 256


class Turns(NamedTuple):
    """``count`` turns of a loop, from ``offset``, over the indices ``low + stride * turn + residue``."""

    offset: Expr
    count: Expr
    low: Expr
    stride: int = 1
    residues: tuple[int, ...] = (0,)

    @property
    def is_plain(self) -> bool:
        """Whether the turn number equals the repeat's index."""
        return self.stride == 1 and self.residues == (0,) and bool(self.offset == self.low)


class Body(NamedTuple):
    """Nodes of one turn, its carried values, and the names that it changes."""

    nodes: tuple[Node, ...]
    carries: tuple[Carry, ...]
    changed: set[str]


def is_same(entry: Repeat) -> bool:
    """Whether all iterations call the same modules alike; then the modules exist even if the count is 0."""
    return entry.shared and entry.index is None and entry.item is None


class Segments:
    """Places the segments of one repeat; adds cuts until every condition on the index is decided."""

    def __init__(
        self, services: Services, place_entries: PlaceEntries, entry: Repeat, frame: Frame, count: Expr, start: Expr
    ) -> None:
        self.services, self.place_entries = services, place_entries
        self.entry, self.frame = entry, frame
        self.start, self.end = start, start + count
        lists = module_lists(services, entry, frame)
        self.selected = SelectedIterations(services.graph, lists, self.start, self.end)
        self.cuts: list[Expr] = self.selected.cuts()
        self.selectors: dict[tuple[Expr, Expr], list[Truth]] = defaultdict(list)  # by bounds of a segment
        self.canonical = size_symbol(f"{entry.index or 'i'}@")
        self.indices: set[Symbol] = set()

    def place(self) -> None:
        """Place the repeat as loops, one per segment.

        Raises:
            UnknownSizeError: its iterations must be unrolled instead, or a size must be known.
        """
        go_back = self.services.checkpoint(self.frame)
        while needs := self._attempt():
            go_back()
            self._refine(needs)

    def _attempt(self) -> Cut | Select | None:
        """Place all segments; return the cut or selection that is still missing, or None."""
        try:
            for segment in self._segments():
                if (segment.count != 0 or is_same(self.entry)) and not self.services.limit.exceeded:
                    self._place_segment(segment)
        except UndecidedError as error:
            if error.needs.index not in self.indices:
                raise
            return error.needs
        return None

    def _refine(self, needs: Cut | Select) -> None:
        """Add the missing cut or selection; raises as :meth:`place`."""
        condition = needs.point if isinstance(needs, Cut) else needs.condition.expr
        if any(is_index(symbol.name) for symbol in condition.free_symbols - {needs.index, self.canonical}):
            message = "a condition compares the indices of two repeats"
            raise UnknownSizeError("", Diagnostic("structural-size", message, self.entry.span, "their counts must be known"))
        if isinstance(needs, Cut):
            self.cuts.append(condition)
        elif (self.end - self.start).is_Integer and self.start.is_Integer:
            raise UnknownSizeError("", Diagnostic("structural-size", "a condition selects single iterations", self.entry.span))
        else:
            self.selectors[needs.segment.bounds].append(needs.condition)
        if len(self.cuts) > MAX_CUTS or max(map(len, self.selectors.values()), default=0) > MAX_SELECTORS:
            message = "too many different conditions on the index of one repeat"
            hint = "write the runs of equal layers as repeats of their own, with 'start'"
            raise SpecError([Diagnostic("bad-repeat", message, self.entry.span, hint)])

    def _segments(self) -> Iterator[Segment]:
        """Segments for every combination of passed cuts that is possible, in the order of iterations."""
        many = len(self.cuts) >= MAX_SEGMENTS
        found = [] if many else list(islice(self._orders((), self._implied()), MAX_SEGMENTS + 1))
        if many or len(found) > MAX_SEGMENTS:
            message = f"conditions and patterns cut this repeat into more than {MAX_SEGMENTS} segments"
            hint = "select runs of iterations (blocks.:8.*), all from the first or all from the last"
            raise SpecError([Diagnostic("bad-repeat", message, self.entry.span, hint)])
        for passed in sorted(found, key=lambda passed: (sum(passed), passed)):
            pairs = dict(zip(self.cuts, passed, strict=True))
            low = reduce(Most, [cut for cut in self.cuts if pairs[cut]], self.start)
            high = reduce(Least, [cut for cut in self.cuts if not pairs[cut]], self.end)
            yield Segment(low, high, pairs)

    def _implied(self) -> set[tuple[int, int]]:
        """Pairs (a, b) of cut positions such that cut ``a`` is never before cut ``b``."""
        return {(a, b) for (a, cut), (b, other) in product(enumerate(self.cuts), repeat=2) if (cut - other).is_nonnegative}

    def _orders(self, passed: tuple[bool, ...], implied: set[tuple[int, int]]) -> Iterator[tuple[bool, ...]]:
        """All consistent choices of which cuts an iteration is past, extending the prefix ``passed``."""
        new = len(passed)
        if new == len(self.cuts):
            yield passed
            return
        for value in (False, True):
            pairs = (((new, old) if value else (old, new)) for old, there in enumerate(passed) if there is not value)
            if implied.isdisjoint(pairs):
                yield from self._orders((*passed, value), implied)

    def _place_segment(self, segment: Segment) -> None:
        """Place one loop; with selectors of period P, one over whole periods and P - 1 for the rest."""
        period = self._period(segment)
        if period == 1:
            return self._loop(segment, Turns(segment.low, segment.count, segment.low))
        whole = FloorDiv(segment.count, Integer(period))
        self._loop(segment, Turns(Integer(0), whole, segment.low, period, tuple(range(period))))
        for residue in range(period - 1):
            there = AtLeast(Modulo(segment.count, Integer(period)), Integer(residue + 1))
            self._loop(segment, Turns(Integer(0), there, segment.low + period * whole, period, (residue,)))
        return None

    def _period(self, segment: Segment) -> int:
        """The common period of the selectors in iterations; 1 if they are not periodic."""
        found = self.selected.period
        if not segment.low.is_Integer:
            return 1
        brackets = set(chain.from_iterable(chain.from_iterable(each.terms) for each in self.selectors[segment.bounds]))
        for bracket in (bracket for bracket in brackets if self.canonical in bracket.free_symbols):
            turns = cycle(bracket)
            if turns is None:
                return 1
            found = lcm(found, turns)
        return found if found <= MAX_PERIOD else 1

    def _loop(self, segment: Segment, turns: Turns) -> None:
        """Place one loop, with a body for each class of iterations."""
        if turns.count == 0 and not is_same(self.entry):
            return
        graph, frame, entry = self.services.graph, self.frame, self.entry
        path = self.services.evaluator.path(entry.path, frame)
        index = graph.index(path, turns.offset, turns.count, turns.low, entry.index)
        start: Expr = index if turns.is_plain else turns.low + turns.stride * index
        positions = [start + residue for residue in turns.residues]
        results: dict[str, Value] = {}
        bodies = self._classes(segment, positions, self.selectors[segment.bounds] if turns.is_plain else [], results)
        classes = tuple((renamed(truth, self.canonical, index), body.nodes) for truth, body in bodies if truth is not NO)
        carries = tuple(body.carries for truth, body in bodies if truth is not NO)
        frame.nodes.append(
            Loop(
                graph.number(),
                path,
                index,
                turns.count,
                classes,
                carries,
                turns.offset,
                is_same(entry),
                entry.path.text,
                entry.span,
            )
        )
        for name in sorted(set().union(*(body.changed for _, body in bodies))):
            frame.values[name] = Binding(results[name], frame.values[name].present)

    def _classes(
        self, segment: Segment, positions: list[Expr], selectors: Sequence[Truth], results: dict[str, Value]
    ) -> list[tuple[Truth, Body]]:
        """(condition, body) for each combination of ``selectors``; each body claims parameters independently."""
        table = self.services.parameters
        bound = ((name, self.frame.values.get(name, ABSENT)) for name in sorted(assigned(self.entry.body)))
        names = [name for name, old in bound if old.value is not None and not self.services.graph.is_poisoned(old)]
        found: list[tuple[Truth, Body]] = []
        claims: dict[Path, Claims] = {}
        for values in product((True, False), repeat=len(selectors)):
            selected = dict(zip(selectors, values, strict=True))
            truth = all_of(condition if value else ~condition for condition, value in selected.items())

            def place(truth: Truth = truth, selected: dict[Truth, bool] = selected) -> None:
                found.append((truth, self._body(segment, positions, selected, names, results)))

            claims |= table.claims.assigned_by(place)
        table.claims.update(claims)
        return found

    def _body(
        self, segment: Segment, positions: list[Expr], selected: dict[Truth, bool], names: list[str], results: dict[str, Value]
    ) -> Body:
        """Place one turn: an iteration at each of ``positions``."""
        graph, frame = self.services.graph, self.frame
        nodes: list[Node] = []
        arguments = {}
        for name in names:
            outer = frame.values[name]
            assert outer.value is not None
            arguments[name] = graph.value(name, outer.value.stream, outer.value.width, outer.value.span)

        def turn() -> None:
            frame.values.update((name, Binding(value, frame.values[name].present)) for name, value in arguments.items())
            for position in positions:
                rebound = self._iteration(segment, position, selected, nodes)
                frame.values.update((name, new) for name, _, new in rebound)

        values = frame.values.assigned_by(turn)
        carries, changed = [], set()
        for name in names:
            initial, final = frame.values[name].value, values[name].value or arguments[name]
            if final.id in graph.poisoned:
                final = arguments[name]  # the finding about the faulty entry is enough
            assert initial is not None
            if final.id != arguments[name].id:
                self._check_carried(name, initial, final)
                changed.add(name)
            if name not in results:
                results[name] = graph.value(name, initial.stream, initial.width, initial.span)
            carries.append(Carry(initial.id, arguments[name].id, final.id, results[name].id))
        return Body(tuple(nodes), tuple(carries), changed)

    def _iteration(
        self, segment: Segment, position: Expr, selected: dict[Truth, bool], nodes: list[Node]
    ) -> list[tuple[str, Binding, Binding]]:
        """Place the body at index ``position``; return (name, before, after) of each rebound outer name."""
        graph, frame, entry = self.services.graph, self.frame, self.entry
        index = size_symbol(f"{entry.index or 'i'}@{graph.number()}")
        self.indices.add(index)
        names = dict(frame.names)
        if entry.index is not None:
            names[entry.index.text] = index
        decider = Decider(self, segment, index, position, selected, frame)
        self.selected.note(graph, position, decider.is_past, entry.span)
        path = iteration_path(self.services, entry, frame, position)
        inner = frame.inside(path=path, names=names, nodes=nodes, decide=decider.decide)
        graph.counts.append(self.end - self.start)
        try:
            return place_body(self.services, self.place_entries, entry, inner, position)
        finally:
            graph.counts.pop()

    def _check_carried(self, name: str, before: Value, after: Value) -> None:
        """Report a carried name whose rows or width change within an iteration."""
        equal = self.services.definitions.equal
        same_width = before.width is after.width
        if before.width is not None and after.width is not None:
            same_width = same_width or equal(before.width, after.width)
        if same_width and before.stream.alike(after.stream):
            return
        message = f"'{name}' enters the repeat with width {said(before.width)} and leaves it with width {said(after.width)}"
        if before.width == after.width:
            message = f"'{name}' leaves the repeat with other rows than it enters"
        named = "" if self.entry.path.text == "_" else f", as '{self.entry.path.text}.0'"
        apart = f"if the first differs, write it outside{named}, and 'repeat: n - 1, start: 1'; "
        hint = f"a name that exists outside is carried on: bind another one; {apart}if all do, repeat over range(n)"
        also = () if before.span is after.span else before.long if before.width == after.width else before.wide
        self.services.report.error("carried-mismatch", message, after.span, hint, also=also)
