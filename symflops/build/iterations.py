"""One iteration of a repeat: its place in the module tree, and its body unrolled or in a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sympy import Expr

from symflops.build.scopes import Binding, Frame
from symflops.build.selected_iterations import SelectedIterations
from symflops.build.services import PlaceEntries, Services
from symflops.build.surroundings import MAX_UNROLLED
from symflops.ir.patterns import Path
from symflops.ir.spec import Entry, Group, Repeat
from symflops.support.findings import Diagnostic, SpecError


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
