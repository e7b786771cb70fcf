"""Lengths read off tensor shapes: the layouts of a program's inputs against what a model was given.

An argument is described by its shape (``{"shape": [2, 24, 64]}``), by its values (``{"value": [[1, 4, 4]]}``), or by a list of
such descriptions, one per item, for models that take lists of tensors. Records, live tensors and batches share the layouts.
"""

from __future__ import annotations

from symflops.runtime.batch import BatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from symflops.model import layout as model
    from symflops.model.program import InputInfo, Program
    from symflops.runtime.stored import Input, Layout, Stored

    AnyLayout = Layout | model.Layout

    Items = list[dict[str, int]]


def batch_of(program: Program | Stored, arguments: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The batch that ``arguments`` are: per stream one entry per item. A stream whose inputs are all absent is left out.

    Raises:
        BatchError: a shape does not fit its layout, or two inputs tell different lengths.
    """
    streams = {stream.name: stream for stream in program.streams}
    variables = {name for stream in program.streams for name in stream.variables}
    counts = {"samples": count_of(program, arguments)}
    found: dict[str, Items] = {}
    for info in program.inputs:
        given = arguments.get(info.name)
        if given is None or info.layout is None:
            continue
        items = info.over or (streams[info.stream].items if info.stream in streams else "samples")
        measured = measure(info, info.layout, given, counts)
        merge(found.setdefault(items, []), measured, info.name, variables)
    batch: dict[str, list[Any]] = {}
    for stream in program.streams:
        lengths = found.get(stream.items, [])
        if stream.counts:
            batch[stream.name] = [[] for _ in lengths] or [[] for _ in range(counts.get(stream.items, 0))]
        given = bool(lengths) or stream.items in found
        if stream.variables and given and all(name in item for item in lengths for name in stream.variables):
            rows = [[item[name] for name in stream.variables] for item in lengths]
            batch[stream.name] = [row[0] for row in rows] if len(stream.variables) == 1 else rows
    return batch


def sets_of(program: Program | Stored) -> dict[str, tuple[tuple[str, tuple[str, ...], int], ...]]:
    """Per index set the streams that a batch gives: name, axes, the length of one that is left out."""
    found: dict[str, tuple[tuple[str, tuple[str, ...], int], ...]] = {}
    for stream in program.streams:
        if stream.given:
            found[stream.items] = (*found.get(stream.items, ()), (stream.name, stream.variables, stream.absent))
    return found


def inputs_of(program: Program | Stored) -> list[tuple[str, str, str, Any]]:
    """The arguments of the model that tell lengths: name, stream or index set, layout, width.

    A layout is one word per dimension, or ``values:`` and the columns of one row per item.
    """
    streams = {stream.name for stream in program.streams if stream.given}
    variables = {name for stream in program.streams for name in stream.variables}
    found = []
    for info in program.inputs:
        if info.layout is None:
            continue
        words = info.layout.values or tuple(word.partition("=")[0].rpartition("*")[2] for word in info.layout.axes)
        if variables & set(words) or info.stream in streams:
            layout = " ".join(("values:", *info.layout.values) if info.layout.values else info.layout.axes)
            found.append((info.name, info.over or info.stream, layout, info.width))
    return found


def count_of(program: Program | Stored, arguments: Mapping[str, Any]) -> int:
    """The number of samples: the first dimension of an input whose layout begins with a plain ``b``."""
    for info in program.inputs:
        given = arguments.get(info.name)
        if info.layout is not None and info.layout.axes[:1] == ("b",) and given is not None:
            shape = shape_of(given)
            if shape:
                return int(shape[0])
    return 1


def shape_of(given: Any) -> tuple[int, ...]:
    """The shape of a described argument."""
    if isinstance(given, dict) and "shape" in given:
        return tuple(int(size) for size in given["shape"])
    if isinstance(given, dict) and "value" in given:
        return shape_of(given["value"])
    shape: list[int] = []
    while isinstance(given, (list, tuple)):
        shape.append(len(given))
        given = given[0] if given else None
    return tuple(shape)


def measure(info: InputInfo | Input, layout: AnyLayout, given: Any, counts: Mapping[str, int]) -> Items:
    """The lengths that one argument tells, per item of its index set."""
    if layout.values:
        rows = given["value"] if isinstance(given, dict) else given
        return [dict(zip(layout.values, (int(value) for value in row), strict=True)) for row in rows]
    if isinstance(given, (list, tuple)) and all(isinstance(item, dict) for item in given):
        parts = [list(dimensions(info, layout.axes, shape_of(item), 1)) for item in given]
        return [dict(part) for part in parts]
    shape = shape_of(given)
    items = counts.get("samples", 1) if layout.axes[:1] and layout.axes[0] != "b" and "b" in layout.axes[0] else None
    if "b" in layout.axes:
        place = layout.axes.index("b")
        items = shape[place] if len(shape) > place else 1
    lengths = dict(dimensions(info, layout.axes, shape, items or 1))
    return [dict(lengths) for _ in range(items or 1)]


def dimensions(info: InputInfo | Input, axes: Sequence[str], shape: Sequence[int], items: int) -> Iterator[tuple[str, int]]:
    """Axis names with their lengths. ``b*r`` holds ``r`` blocks of every item; ``t=1`` may be missing and is 1 then."""
    required = [axis for axis in axes if "=" not in axis]
    if not len(required) <= len(shape) <= len(axes):
        raise BatchError(f"'{info.name}' has {len(shape)} dimensions, its layout '{' '.join(axes)}' has {len(axes)}")
    for position, axis in enumerate(axes):
        name, _, default = axis.partition("=")
        if position >= len(shape):
            yield name, int(default)
            continue
        head, _, blocks = name.partition("*")
        if head == "b" and blocks:
            if shape[position] % items:
                raise BatchError(f"'{info.name}' has {shape[position]} rows for {items} items")
            yield blocks, shape[position] // items
        elif name != "b":
            yield name, shape[position]


def merge(items: Items, measured: Items, name: str, variables: set[str]) -> None:
    """Join what one more argument tells about each item; two arguments must not tell different lengths."""
    if not items:
        items.extend(dict(item) for item in measured)
        return
    if len(items) != len(measured):
        raise BatchError(f"'{name}' has {len(measured)} items, another argument has {len(items)}")
    for known, new in zip(items, measured, strict=True):
        for key, value in new.items():
            if known.setdefault(key, value) != value and key in variables:
                raise BatchError(f"'{name}' has {value} for '{key}', another argument has {known[key]}")
