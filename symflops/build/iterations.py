"""Iterations of a repeat: which ones a regime's patterns select, their module paths, and their bodies in the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import lcm
from typing import Any

from sympy import Expr, Integer, expand

from symflops.build.graph_builder import GraphBuilder
from symflops.build.scopes import MAX_UNROLLED, Binding, Frame
from symflops.build.services import PlaceEntries, Services
from symflops.formula.truth import UnknownSizeError
from symflops.ir.patterns import Path
from symflops.ir.spec import Entry, Group, Repeat
from symflops.support.findings import Diagnostic, Span, SpecError

IsPast = Callable[[Expr], bool]
"""A function that returns whether the index of an iteration is at least the given index."""


class SelectedIterations:
    """The selectors for the index of one repeat in a regime's patterns, such as ``:8`` in ``blocks.:8.*``.

    The repeat iterates over the module ``lists``, at indices from ``start`` up to, not including, ``end``.
    """

    def __init__(self, graph: GraphBuilder, lists: Sequence[Path], start: Expr, end: Expr) -> None:
        self.lists, self.start, self.end = lists, start, end
        self.selectors = tuple(dict.fromkeys(name for path in lists for name in graph.selectors(path)))

    def cuts(self) -> list[Expr]:
        """Indices at which to cut the repeat, so that a selector covers a segment entirely or not at all."""
        points = [point for selector in self.selectors for point in self._run(selector)[:2]]
        inner = (point for point in points if not (point - self.start).is_nonpositive and not (self.end - point).is_nonpositive)
        return list(dict.fromkeys(inner))

    @property
    def period(self) -> int:
        """The least common multiple of the selectors' steps, in iterations."""
        return lcm(1, *(self._run(selector)[2] for selector in self.selectors))

    def note(self, graph: GraphBuilder, position: Expr, is_past: IsPast, span: Span) -> None:
        """Record in ``graph`` which selectors choose the iteration at index ``position``.

        ``is_past`` returns whether ``position`` is at least a given index.
        """
        chosen = frozenset(name for name in self.selectors if self._chooses(name, position, is_past, span))
        if not position.is_Integer:
            graph.chosen[position] = chosen
        elif chosen:
            graph.listed.update({(path, int(position)): chosen for path in self.lists})

    def _run(self, selector: str) -> tuple[Expr, Expr, int]:
        """Parse a selector into (start, stop, step), as of a Python range."""
        if ":" not in selector:
            first = self._point(selector, self.start)
            return first, first + 1, 1
        low, high, step = [*selector.split(":"), "", ""][:3]
        return self._point(low, self.start), self._point(high, self.end), max(1, int(step or 1))

    def _point(self, text: str, default: Expr) -> Expr:
        """Parse an index; a negative one counts from the end, an empty one is ``default``."""
        if not text:
            return default
        return self.end + int(text) if text.startswith("-") else Integer(int(text))

    def _chooses(self, selector: str, position: Expr, is_past: IsPast, span: Span) -> bool:
        """Whether a selector chooses the iteration at index ``position``."""
        first, last, step = self._run(selector)
        if not is_past(first) or is_past(last):
            return False
        if step == 1:
            return True
        constant, rest = expand(position - first).as_coeff_Add()
        if any(factor % step for factor in rest.as_coefficients_dict().values()) or not constant.is_Integer:
            message = f"the pattern component '{selector}' cannot be counted in this repeat, which other patterns cut elsewhere"
            hint = "count from an index that is a number"
            raise UnknownSizeError("", Diagnostic("bad-pattern", message, span, hint))
        return bool(constant % step == 0)


def module_lists(services: Services, entry: Repeat, frame: Frame) -> tuple[Path, ...]:
    """Module lists that a repeat iterates over: at its path, and where inner paths have its index."""
    own = _own_list(services, entry, frame)
    found = {} if own is None else {own: None}
    if entry.index is not None and not entry.shared:
        found |= dict.fromkeys(_indexed(entry.body, entry.index.text, frame.path if own is None else None))
    return tuple(found)


def _own_list(services: Services, entry: Repeat, frame: Frame) -> Path | None:
    return None if entry.shared or entry.path.text == "_" else services.evaluator.path(entry.path, frame)


def _indexed(entries: Sequence[Entry], index: str, base: Path | None) -> Iterator[Path]:
    """Yield the module lists in the paths of ``entries``: what stands before the expression ``index``.

    Relative paths extend ``base``; if it is None, only paths from the root are searched.
    """
    for entry in entries:
        inner = Path(()) if entry.path.text.startswith("/") else base
        for piece in entry.path.pieces if entry.path.text != "_" else ():
            if inner is not None and isinstance(piece, str):
                inner = inner.join(piece.strip("/."))
            elif inner is not None:
                if not isinstance(piece, str) and piece.text == index:
                    yield inner
                inner = None
        if isinstance(entry, (Group, Repeat)):
            yield from _indexed(entry.body, index, inner)


def iteration_path(services: Services, entry: Repeat, frame: Frame, index: Expr) -> Path:
    """The module path of the iteration at ``index``."""
    path = _own_list(services, entry, frame)
    if path is None:
        return services.evaluator.path(entry.path, frame)
    return path.extend((index if not index.is_Integer else str(index),))


def unroll(
    services: Services, place_entries: PlaceEntries, entry: Repeat, frame: Frame, items: tuple[Any, ...], start: Expr
) -> None:
    """Add the nodes of each iteration of a repeat to the graph, one after another, without a loop.

    ``items`` has one item per iteration, or None for each; ``start`` is the first index.

    Raises:
        SpecError: there are more than ``MAX_UNROLLED`` iterations.
    """
    if len(items) > MAX_UNROLLED:
        message = f"a repeat that must be written out has at most {MAX_UNROLLED} iterations"
        raise SpecError([Diagnostic("bad-repeat", message, entry.span)])
    lists = module_lists(services, entry, frame)
    selected = SelectedIterations(services.graph, lists, start, start + len(items))
    for number, item in enumerate(items):
        if services.limit.exceeded:
            break
        index = start + number
        selected.note(services.graph, index, lambda point, index=index: bool(index >= point), entry.span)  # type: ignore[misc]
        names = dict(frame.names)
        if entry.index is not None:
            names[entry.index.text] = index
        if entry.item is not None:
            names[entry.item.text] = item
        path = iteration_path(services, entry, frame, index)
        inner = frame.inside(path=path, names=names)
        for name, old, new in place_body(services, place_entries, entry, inner, index):
            if new.value is not None and new is not old:
                services.graph.returned[new.value.id] = None
            frame.values[name] = new


def place_body(
    services: Services, place_entries: PlaceEntries, entry: Repeat, inner: Frame, index: Expr
) -> list[tuple[str, Binding, Binding]]:
    """Add the nodes of one iteration of a repeat, at ``index``, to the graph.

    Returns (name, binding before, binding after) for each name from outside that the iteration binds again.
    """
    services.parameters.sharing += entry.shared
    services.parameters.turns.append((entry, index))
    try:
        bound = inner.values.assigned_by(lambda: place_entries(entry.body, inner))
    finally:
        services.parameters.sharing -= entry.shared
        services.parameters.turns.pop()
    return [(name, inner.values[name], new) for name, new in bound.items() if name in inner.values]
