"""Places repeats: as segments of equal iterations, or unrolled if iterations differ and their number is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Expr, Integer

from symflops.build.iterations import unroll
from symflops.build.scopes import MAX_UNROLLED, Frame
from symflops.build.segments import Segments, is_same
from symflops.build.services import PlaceEntries, Services
from symflops.formula.domain import Choice, Setting, sizes_behind
from symflops.formula.expression import Expression, names
from symflops.formula.functions import sizes_in
from symflops.formula.truth import Truth, UnknownSizeError
from symflops.formula.words import said
from symflops.ir.spec import Repeat
from symflops.support.findings import Diagnostic, SpecError


@dataclass(frozen=True, slots=True)
class Repeats:
    """Adds the nodes of repeats to the graph; ``place_entries`` does so for the body of one iteration."""

    services: Services
    place_entries: PlaceEntries

    def place(self, entry: Repeat, frame: Frame) -> None:
        """Add the nodes of a repeat to the graph: a loop for each segment, or unrolled iterations."""
        self._check_names(entry, frame)
        if entry.count is not None:
            count = self._count(entry.count, frame)
        elif (count := self._axis_length(entry, frame)) is None:
            return self.services.graph.abandon(entry, frame)
        if count == () and is_same(entry):
            count = Integer(0)
        if count == 0 and not is_same(entry):
            return self.services.graph.leave_out(name for name, _ in (names(entry.count) if entry.count else ()))
        start = self.services.evaluator.value(entry.start, frame) if entry.start else Integer(0)
        if isinstance(count, tuple):
            return self._unroll(entry, frame, count, start)
        if not isinstance(count, Expr) or not count.is_integer:
            span = entry.count.span if entry.count else entry.span
            whole = f"'repeat' is {said(count)}, which need not be a whole number"
            message = whole if isinstance(count, Expr) else "this is no number"
            hint = "a repeat is of a whole number, a list or an axis; // rounds down"
            raise SpecError([Diagnostic("bad-repeat", message, span, hint)])
        if entry.count is not None:
            self.services.graph.demand_count(count, frame.guard, f"'repeat: {entry.count.text}' is negative")
        go_back = self.services.checkpoint(frame)
        try:
            return Segments(self.services, self.place_entries, entry, frame, count, start).place()
        except UnknownSizeError as error:
            if not (count.is_Integer and start.is_Integer and _is_about_index(error, entry)):
                raise UnknownSizeError(error.size or next(iter(sizes_in(count)), ""), error.diagnostic) from None
        go_back()
        return self._unroll(entry, frame, (None,) * min(int(count), MAX_UNROLLED + 1), start)

    def _unroll(self, entry: Repeat, frame: Frame, items: tuple[Any, ...], start: Expr) -> None:
        unrolled = self.services.surroundings.unrolled
        unrolled.append((entry, len(items)))
        try:
            unroll(self.services, self.place_entries, entry, frame, items, start)
        finally:
            unrolled.pop()

    def _check_names(self, entry: Repeat, frame: Frame) -> None:
        """Refuse a repeat whose index or item has the name of a size, a parameter or a batch variable."""
        for name in (entry.index, entry.item):
            if name is not None and (name.text in frame.names or name.text in self.services.streams.lengths):
                message = f"index '{name}' hides a name of the same spelling"
                raise SpecError([Diagnostic("index-hides", message, name.span, "choose another letter")])

    def _count(self, expression: Expression, frame: Frame) -> Any:
        """Evaluate what a repeat runs over: the number of iterations, or a tuple with an item for each."""
        value = self.services.evaluator.value(expression, frame)
        if isinstance(value, Choice) or (isinstance(value, Setting) and value.kind == "list"):
            message = f"the list '{expression.text}' decides how often this repeats"
            size = next(iter(sizes_behind(value)), "")
            hint = f"give '{size}' a default, or name variants" if size else "its sizes must be known"
            raise UnknownSizeError(size, Diagnostic("structural-size", message, expression.span, hint))
        value = value.symbol if isinstance(value, Setting) and value.kind == "item" else value
        return value.expr if isinstance(value, Truth) else value

    def _axis_length(self, entry: Repeat, frame: Frame) -> Expr | None:
        """The length of the axis that a repeat iterates over; None if ``of`` names a faulty entry's result."""
        assert entry.axis is not None
        streams = list(self.services.streams.declared.values())
        holder = "no stream has"
        if entry.of is not None:
            binding = self.services.binder.look_up(entry.of, frame)
            if binding is None:
                return None
            assert binding.value is not None
            streams, holder = [binding.value.stream], f"'{binding.value.name}' has not"
        found = (part.get(entry.axis.text) for stream in streams for part in stream.parts)
        length: Expr | None = next((length for length in found if length is not None), None)
        if length is None:
            raise SpecError([Diagnostic("unknown-axis", f"{holder} an axis '{entry.axis}'", entry.axis.span)])
        return length


def _is_about_index(needs: UnknownSizeError, entry: Repeat) -> bool:
    """Whether unrolling the repeat removes the cause of ``needs``.

    It does if ``needs`` asks for the repeat's index, or for no size in particular.
    """
    return not needs.size or (entry.index is not None and needs.size == entry.index.text)
