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

from symflops.build.graph_builder import Claims
from symflops.build.index_conditions import Cut, Decider, Segment, Select, UndecidedError, cycle, renamed
from symflops.build.iterations import SelectedIterations, iteration_path, module_lists, place_body
from symflops.build.scopes import ABSENT, Binding, Frame
from symflops.build.services import PlaceEntries, Services
from symflops.formula.functions import AtLeast, FloorDiv, Least, Modulo, Most, is_index, size_symbol
from symflops.formula.truth import NO, Truth, UnknownSizeError, all_of
from symflops.formula.words import said
from symflops.ir.nodes import Carry, Loop, Node, Value
from symflops.ir.patterns import Path
from symflops.ir.spec import Repeat
from symflops.read.definition_order import assigned
from symflops.support.findings import Diagnostic, SpecError

MAX_CUTS = 8
MAX_SELECTORS = 5
MAX_PERIOD = 16
MAX_SEGMENTS = 256


class Turns(NamedTuple):
    """The iterations of a repeat that one loop of the graph runs, one or several in each turn of the loop.

    Attributes:
        offset: The value of the loop's index in its first turn.
        count: The number of turns.
        low: The repeat's index from which the first turn counts.
        stride: By how much the repeat's index grows from turn to turn.
        residues: The iterations in a turn, as distances from the index from which it counts.
    """

    offset: Expr
    count: Expr
    low: Expr
    stride: int = 1
    residues: tuple[int, ...] = (0,)

    @property
    def is_plain(self) -> bool:
        """Whether the index of the loop equals that of the repeat."""
        return self.stride == 1 and self.residues == (0,) and bool(self.offset == self.low)


class Body(NamedTuple):
    """The body of a loop, or of one class of its iterations.

    Attributes:
        nodes: Its nodes.
        carries: The values that it passes to the next turn.
        changed: The names from outside that it binds to another value.
    """

    nodes: tuple[Node, ...]
    carries: tuple[Carry, ...]
    changed: set[str]


def is_same(entry: Repeat) -> bool:
    """Whether all iterations of a repeat call the same modules in the same way.

    Then the modules exist even if the repeat has no iteration.
    """
    return entry.shared and entry.index is None and entry.item is None


class Segments:
    """Cuts one repeat until each segment decides all conditions on the index; makes each segment a loop."""

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
        """Add the repeat to the graph as loops, one per segment.

        Raises:
            UnknownSizeError: its iterations must be unrolled instead, or a size must be known.
        """
        go_back = self.services.checkpoint(self.frame)
        while needs := self._attempt():
            go_back()
            self._refine(needs)

    def _attempt(self) -> Cut | Select | None:
        """Add the loops of all segments to the graph.

        If a segment does not decide a condition, stop and return the cut or the division into classes that it requires.
        """
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
        """Cut the repeat, or divide a segment into classes, as ``needs`` says.

        Raises:
            SpecError: there are too many cuts or classes.
            UnknownSizeError: as :meth:`place`.
        """
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
        """Yield the segments of the repeat, in the order of iterations.

        If the order of two cuts is unknown, there are segments for both orders; in those that do not occur they are empty.
        """
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
        """Pairs (a, b) of positions in ``cuts`` such that the point of cut a is never before that of cut b."""
        return {(a, b) for (a, cut), (b, other) in product(enumerate(self.cuts), repeat=2) if (cut - other).is_nonnegative}

    def _orders(self, passed: tuple[bool, ...], implied: set[tuple[int, int]]) -> Iterator[tuple[bool, ...]]:
        """Yield each possible answer to which cuts an iteration lies behind: one bool per cut.

        ``passed`` has the answers for the first cuts; ``implied`` has the pairs of :meth:`_implied`.
        """
        new = len(passed)
        if new == len(self.cuts):
            yield passed
            return
        for value in (False, True):
            pairs = (((new, old) if value else (old, new)) for old, there in enumerate(passed) if there is not value)
            if implied.isdisjoint(pairs):
                yield from self._orders((*passed, value), implied)

    def _place_segment(self, segment: Segment) -> None:
        """Add one segment to the graph: as one loop, or as P loops if conditions repeat with period P.

        One of the P loops runs a whole period in each turn. The others run the remaining iterations, at most one each.
        """
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
        """The number of iterations after which all conditions that divide the segment repeat.

        1 if one of them is not periodic, or the period is too long.
        """
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
        """Add one loop to the graph, with a body for each class of iterations."""
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
                frame.visits,
                frame.turns,
            )
        )
        for name in sorted(set().union(*(body.changed for _, body in bodies))):
            frame.values[name] = Binding(results[name], frame.values[name].present)

    def _classes(
        self, segment: Segment, positions: list[Expr], selectors: Sequence[Truth], results: dict[str, Value]
    ) -> list[tuple[Truth, Body]]:
        """Make (condition, body) for each class of iterations: each combination of truths of ``selectors``.

        The classes may use the same parameters. ``positions`` are the indices of the iterations in a turn. ``results``, filled
        here, maps names to their values after the loop, which are the same for all classes.
        """
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
        """Make the body of one turn: an iteration at each of the indices ``positions``.

        ``selected`` has the truth of the conditions that define its class. ``names`` are carried from turn to turn.
        """
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
        """Add one iteration, at index ``position``, to ``nodes``.

        Returns (name, binding before, binding after) for each name from outside that the iteration binds again.
        """
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
        if same_width and before.stream.alike(after.stream, equal):
            return
        message = f"'{name}' enters the repeat with width {said(before.width)} and leaves it with width {said(after.width)}"
        if before.width == after.width:
            message = f"'{name}' leaves the repeat with other rows than it enters"
        named = "" if self.entry.path.text == "_" else f", as '{self.entry.path.text}.0'"
        apart = f"if the first differs, write it outside{named}, and 'repeat: n - 1, start: 1'; "
        hint = f"a name that exists outside is carried on: bind another one; {apart}if all do, repeat over range(n)"
        also = () if before.span is after.span else before.long if before.width == after.width else before.wide
        self.services.report.error("carried-mismatch", message, after.span, hint, also=also)
