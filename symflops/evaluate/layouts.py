"""Reads the lengths of a batch from the shapes of a model's arguments, by the layouts of a program's inputs.

An argument is described by its shape (``{"shape": [2, 24, 64]}``), by its values (``{"value": [[1, 4, 4]]}``), or, if the model
takes a list of tensors, by a list of descriptions, one per item.
"""

from __future__ import annotations

from symflops.evaluate.batch import BatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from symflops.evaluate.stored import Input, Layout, Stored
    from symflops.ir import batch as model
    from symflops.ir.batch import InputInfo
    from symflops.ir.program import Program

    AnyLayout = Layout | model.Layout

    Items = list[dict[str, int]]


def batch_of(program: Program | Stored, arguments: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Reconstruct a batch (stream -> one entry per item) from a model's arguments, by name.

    Raises:
        BatchError: a shape does not fit its layout, or two inputs differ in a length.
    """
    samples = count_of(program, arguments)
    found = _items(program, arguments, samples)
    batch: dict[str, list[Any]] = {}
    for stream in program.streams:
        items = found.get(stream.items)
        if stream.counts:
            batch[stream.name] = [[] for _ in items or range(samples if stream.items == "samples" else 0)]
        if items is not None and stream.variables and all(name in item for item in items for name in stream.variables):
            rows = [[item[name] for name in stream.variables] for item in items]
            batch[stream.name] = [row[0] for row in rows] if len(stream.variables) == 1 else rows
    return batch


def _items(program: Program | Stored, arguments: Mapping[str, Any], samples: int) -> dict[str, Items]:
    """Map each index set to its items, each a dict from axis to length, as measured on the arguments."""
    streams = {stream.name: stream for stream in program.streams}
    variables = {name for stream in program.streams for name in stream.variables}
    found: dict[str, Items] = {}
    for info in program.inputs:
        given = arguments.get(info.name)
        if given is not None and info.layout is not None:
            items = info.over or (streams[info.stream].items if info.stream in streams else "samples")
            merge(found.setdefault(items, []), measure(info, info.layout, given, samples), info.name, variables)
    return found


def sets_of(program: Program | Stored) -> dict[str, tuple[tuple[str, tuple[str, ...], int], ...]]:
    """Map each index set to its streams: (name, axes, length if a batch omits the stream, 0 for none)."""
    found: dict[str, tuple[tuple[str, tuple[str, ...], int], ...]] = {}
    for stream in program.streams:
        if stream.given:
            found[stream.items] = (*found.get(stream.items, ()), (stream.name, stream.variables, stream.absent))
    return found


def implied_streams(program: Program | Stored) -> Iterator[tuple[str, list[Any]]]:
    """Yield each stream whose work is not counted if a batch omits it, with conditions on the config.

    The config implies the stream if one of the conditions (a formula or its position) is not 0, or is None. A stream with a
    default length is excluded, unless it is the only stream of its index set.
    """
    for stream in program.streams:
        alone = not any(other.given for other in program.streams if other.items == stream.items and other is not stream)
        if stream.given and stream.optional and (alone or not stream.absent):
            yield stream.name, [info.when for info in program.inputs if info.stream == stream.name]


def inputs_of(program: Stored, value: Callable[[int], int]) -> dict[str, tuple[str, str, int | None]]:
    """Map each argument with lengths to (stream or index set, layout, number of channels or None).

    ``value`` evaluates the formula at a position. A layout has one word per dimension, or is ``values:`` and the column names
    of an argument with one row per item.
    """
    streams = {stream.name for stream in program.streams if stream.given}
    variables = {name for stream in program.streams for name in stream.variables}
    found: dict[str, tuple[str, str, int | None]] = {}
    for info in program.inputs:
        if info.layout is not None:
            words = info.layout.values or tuple(word.partition("=")[0].rpartition("*")[2] for word in info.layout.axes)
            if variables & set(words) or info.stream in streams:
                layout = " ".join(("values:", *info.layout.values) if info.layout.values else info.layout.axes)
                found[info.name] = (info.over or info.stream, layout, None if info.width is None else value(info.width))
    return found


def count_of(program: Program | Stored, arguments: Mapping[str, Any]) -> int:
    """The number of samples: the first dimension of an input whose layout begins with a plain ``b``."""
    for info in program.inputs:
        given = arguments.get(info.name)
        if info.layout is not None and info.layout.axes[:1] == ("b",) and given is not None:
            shape = shape_of(given)
            if shape:
                return shape[0]
    return 1


def shape_of(given: Any) -> tuple[int, ...]:
    """The shape of an argument: a description (see the module's docstring), a tensor, or nested lists."""
    if isinstance(given, dict):
        return lengths_of(given["shape"]) if "shape" in given else shape_of(given.get("value"))
    if getattr(given, "shape", None) is not None:
        return lengths_of(given.shape)
    shape: list[int] = []
    while isinstance(given, (list, tuple)):
        shape.append(len(given))
        given = given[0] if given else None
    return tuple(shape)


def lengths_of(given: Any) -> tuple[int, ...]:
    """Convert a sequence to a tuple of non-negative integers.

    Raises:
        BatchError: an entry is negative or no integer.
    """
    try:
        lengths = tuple(length.__index__() for length in given)
    except (TypeError, AttributeError):
        lengths = (-1,)
    if any(length < 0 for length in lengths):
        raise BatchError(f"{given!r:.60} are no lengths")
    return lengths


def measure(info: InputInfo | Input, layout: AnyLayout, given: Any, samples: int) -> Items:
    """Measure the lengths of one argument: a dict from axis to length for each item of its index set."""
    axes = layout.axes
    if layout.values:
        given = given.get("value") if isinstance(given, dict) else given
        rows = [lengths_of(row) for row in (given.tolist() if hasattr(given, "tolist") else given or ())]
        if any(len(row) != len(layout.values) for row in rows):
            raise BatchError(f"a row of '{info.name}' has {len(layout.values)} numbers: {', '.join(layout.values)}")
        return [dict(zip(layout.values, row, strict=True)) for row in rows]
    if isinstance(given, (list, tuple)) and all(isinstance(item, dict) for item in given):
        return [dict(dimensions(info.name, axes, shape_of(item), 1)) for item in given]
    shape = shape_of(given)
    count = count_in(axes, shape, samples) or 1
    lengths = dict(dimensions(info.name, axes, shape, count))
    return [dict(lengths) for _ in range(count)]


def count_in(axes: Sequence[str], shape: Sequence[int], samples: int) -> int:
    """Number of items in an argument: the size of axis ``b``, or ``samples`` for ``b*rows``, else 1."""
    if "b" in axes:
        return shape[axes.index("b")] if len(shape) > axes.index("b") else 1
    return samples if "b" in "".join(axes[:1]) else 1


def dimensions(name: str, axes: Sequence[str], shape: Sequence[int], items: int) -> Iterator[tuple[str, int]]:
    """Match the shape of an argument ``name`` to its layout, and yield pairs of axis and length.

    ``b*r`` holds ``r`` blocks per item; ``t=1`` defaults to 1; ``1*r`` is a second axis as long as ``r``.
    """
    required = [axis for axis in axes if "=" not in axis]
    if not len(required) <= len(shape) <= len(axes):
        raise BatchError(f"'{name}' has {len(shape)} dimensions, its layout '{' '.join(axes)}' has {len(axes)}")
    for position, axis in enumerate(axes):
        word, _, default = axis.partition("=")
        if position >= len(shape):
            yield word, int(default)
            continue
        head, _, blocks = word.partition("*")
        size = shape[position]
        if head == "b" and blocks:
            if size % items:
                raise BatchError(f"'{name}' has {size} rows for {items} items")
            yield blocks, size // items
        elif head == "1" and blocks in axes:
            other = shape[axes.index(blocks)]
            if size != other:
                raise BatchError(f"'{name}' of shape {list(shape)} has two lengths for '{blocks}', {other} and {size}")
        elif word != "b":
            yield word, size


def merge(items: Items, measured: Items, name: str, variables: set[str]) -> None:
    """Merge the lengths measured on argument ``name`` into ``items``, in place.

    Raises:
        BatchError: the numbers of items, or two lengths for one of ``variables``, differ.
    """
    if not items:
        items.extend(dict(item) for item in measured)
        return
    if len(items) != len(measured):
        raise BatchError(f"'{name}' has {len(measured)} items, another argument has {len(items)}")
    for known, new in zip(items, measured, strict=True):
        for key, value in new.items():
            if known.setdefault(key, value) != value and key in variables:
                raise BatchError(f"'{name}' has {value} for '{key}', another argument has {known[key]}")
