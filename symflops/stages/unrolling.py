"""Repeats whose iterations are written out one by one, and where the iterations of any repeat stand in the module tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sympy import Expr

from symflops.ground.diagnostics import Diagnostic, SpecError
from symflops.model.path import Path
from symflops.model.spec import Repeat
from symflops.stages.choosing import Chooser
from symflops.stages.frames import Frame

if TYPE_CHECKING:
    from symflops.stages.place import Builder

MAX_UNROLLED = 512


def module_list(builder: Builder, entry: Repeat, frame: Frame) -> Path | None:
    """The module list that a repeat runs through, if it does through one."""
    return None if entry.shared or entry.path.text == "_" else builder.path(entry.path, frame)


def base(builder: Builder, entry: Repeat, frame: Frame, index: Expr) -> Path:
    path = module_list(builder, entry, frame)
    return builder.path(entry.path, frame) if path is None else path.extend((index if not index.is_Integer else str(index),))


def write_out(builder: Builder, entry: Repeat, frame: Frame, items: tuple[Any, ...], start: Expr) -> None:
    """Iterations one by one, where the structure itself changes from one to the next."""
    if len(items) > MAX_UNROLLED:
        message = f"a repeat that must be written out has at most {MAX_UNROLLED} iterations"
        raise SpecError([Diagnostic("bad-repeat", message, entry.span)])
    chooser = Chooser(builder.patterns, module_list(builder, entry, frame), start, start + len(items))
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
        for name in frame.values:
            frame.values[name] = inner.values[name]
