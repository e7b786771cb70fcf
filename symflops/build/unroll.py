"""Repeats whose iterations are written out one by one, and where the iterations of any repeat stand in the module tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sympy import Expr

from symflops.build.limits import MAX_UNROLLED
from symflops.build.scopes import Frame
from symflops.build.selected_iterations import Chooser
from symflops.diagnostics.findings import Diagnostic, SpecError
from symflops.model.path import Path
from symflops.model.spec import Entry, Group, Repeat

if TYPE_CHECKING:
    from symflops.build.builder import Builder


def module_list(builder: Builder, entry: Repeat, frame: Frame) -> Path | None:
    """The module list that a repeat runs through, if it does through one."""
    return None if entry.shared or entry.path.text == "_" else builder.path(entry.path, frame)


def module_lists(builder: Builder, entry: Repeat, frame: Frame) -> tuple[Path, ...]:
    """The module lists that a repeat runs through: its own, and those at whose end a path inside has the index."""
    own = module_list(builder, entry, frame)
    found = {} if own is None else {own: None}
    if entry.index is not None and not entry.shared:
        found |= dict.fromkeys(_named(entry.body, entry.index.text, frame.path if own is None else None))
    return tuple(found)


def _named(entries: Sequence[Entry], index: str, base: Path | None) -> Iterator[Path]:
    """What stands before the index in the paths of ``entries``; nothing tells it of those that are relative to an iteration."""
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
            yield from _named(entry.body, index, inner)


def base(builder: Builder, entry: Repeat, frame: Frame, index: Expr) -> Path:
    path = module_list(builder, entry, frame)
    return builder.path(entry.path, frame) if path is None else path.extend((index if not index.is_Integer else str(index),))


def write_out(builder: Builder, entry: Repeat, frame: Frame, items: tuple[Any, ...], start: Expr) -> None:
    """Iterations one by one, where the structure itself changes from one to the next."""
    if len(items) > MAX_UNROLLED:
        message = f"a repeat that must be written out has at most {MAX_UNROLLED} iterations"
        raise SpecError([Diagnostic("bad-repeat", message, entry.span)])
    builder.written.append((entry, len(items)))
    chooser = Chooser(builder.patterns, module_lists(builder, entry, frame), start, start + len(items))
    for number, item in enumerate(items):
        index = start + number
        chooser.note(builder, index, lambda point, index=index: bool(index >= point), entry.span)  # type: ignore[misc]
        names = dict(frame.names)
        if entry.index is not None:
            names[entry.index.text] = index
        if entry.item is not None:
            names[entry.item.text] = item
        inner = frame.inside(path=base(builder, entry, frame, index), names=names, values=dict(frame.values))
        builder.sharing += entry.shared
        try:
            builder.entries(entry.body, inner)
        finally:
            builder.sharing -= entry.shared
        for name, old in frame.values.items():
            new = inner.values[name]
            if new is not old and new.value is not None:
                builder.returned.add(new.value.id)
            frame.values[name] = new
    builder.written.pop()
