"""Reads lengths from what frameworks pass around: cu_seqlens, masks, position ids, nested tensors, grids, latents, shapes.

Each function returns :class:`Lengths`, which an accumulator adds up. They take lists, numpy arrays and torch tensors on any
device; lengths in tensors of the host become arrays. None waits for a device: the shape of every result is known beforehand. If
only the device knows the number of items, fillers follow the items, and ``real`` marks the items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.evaluate.batch import wanted
from symflops.evaluate.boundaries import LengthError, host_array, numpy_here, rows_of, steps, told, wide


@dataclass(frozen=True, slots=True)
class Lengths:
    """The lengths of the items of one stream.

    Attributes:
        axes: per axis an int (the same for all items), a list, an integer array or a tensor.
        count: the number of entries.
        padded: the lengths with padding, if they differ from the real ones.
        real: 1 for an item and 0 for a filler, per entry; None if there are no fillers.
    """

    axes: tuple[Any, ...]
    count: int
    padded: tuple[Any, ...] | None = None
    real: Any = None


def same(count: int, *axes: int, padded: Sequence[int] | None = None) -> Lengths:
    """Lengths of ``count`` items of equal size, as in a dense batch (batch, length).

    Raises:
        LengthError: a number is negative.
    """
    if min((count, *axes, *(padded or ())), default=0) < 0:
        raise LengthError(f"a batch of {count} items of {axes} is not possible")
    return Lengths(tuple(map(int, axes)), int(count), None if padded is None else tuple(map(int, padded)))


def of_cu_seqlens(cu: Any, unpadded: Any = None, valid: int | None = None) -> Lengths:
    """The sub-sequences of packs, from their boundaries: ``cu[i + 1] - cu[i]``.

    Zero-length sub-sequences cost nothing but are items.

    Args:
        cu: cumulative lengths, with padding if ``unpadded`` is given; one row per pack if there are several.
        unpadded: cumulative lengths without the padding of each sub-sequence.
        valid: the number of boundaries that count, if the host knows it; otherwise the first smaller value ends the pack.

    Raises:
        LengthError: there is no boundary, or the numbers of padded and unpadded sub-sequences differ.
    """
    rows = rows_of(cu)
    if rows.shape[1] == 0:
        raise LengthError("cu_seqlens without a boundary")
    padded = marked(*steps(rows, valid))
    if unpadded is None:
        return padded
    inner = marked(*steps(rows_of(unpadded), valid))
    if inner.count != padded.count:
        raise LengthError(f"{padded.count} padded sub-sequences and {inner.count} unpadded ones")
    return Lengths(inner.axes, inner.count, padded.axes, inner.real)


def marked(lengths: Any, mark: Any, padded: Any = None) -> Lengths:
    """Flatten ``lengths`` and ``padded``, arrays with one row per pack, into :class:`Lengths`.

    ``mark`` is True for real lengths and False for fillers. On the host, fillers are dropped, and padded lengths that equal the
    real ones.
    """
    if mark is not None and not hasattr(mark, "unsqueeze"):
        lengths, padded, mark = lengths[mark], None if padded is None else padded[mark], None
    if not (padded is None or hasattr(padded, "unsqueeze") or (padded != lengths).any()):
        padded = None
    real = lengths.reshape(-1)
    pads, kept = (column if column is None else column.reshape(-1) for column in (padded, mark))
    return Lengths((real,), len(real), None if pads is None else (pads,), kept)


def of_mask(mask: Any) -> Lengths:
    """Lengths of the samples in an attention mask (samples, positions): non-zero entries per row.

    Raises:
        LengthError: it has another number of dimensions.
    """
    if not hasattr(mask, "dtype"):
        rows = [list(row) for row in mask]
        width = max(map(len, rows), default=0)
        return Lengths(([sum(1 for value in row if value) for row in rows],), len(rows), (width,))
    if len(mask.shape) != 2:
        raise LengthError(f"an attention mask has two dimensions (samples, positions), not shape {tuple(mask.shape)}")
    present = mask if str(mask.dtype).rpartition(".")[2] == "bool" else mask != 0
    if hasattr(present, "long"):
        import torch

        lengths = host_array(present.view(torch.uint8).sum(-1, dtype=torch.int32).long())  # four times as fast as of booleans
    else:
        lengths = present.sum(-1)
    return Lengths((lengths,), int(mask.shape[0]), (int(mask.shape[1]),))


def of_position_ids(positions: Any) -> Lengths:
    """Lengths of packed sequences from position ids; a sequence starts where ids are not consecutive.

    Args:
        positions: ids of shape (positions) or (rows, positions).

    Raises:
        LengthError: it has another number of dimensions.
    """
    if not hasattr(positions, "dtype"):
        rows = [positions] if not positions or not hasattr(positions[0], "__len__") else positions
        found: list[int] = []
        for row in rows:
            for place, value in enumerate(row):
                if place and value == row[place - 1] + 1:
                    found[-1] += 1
                else:
                    found.append(1)
        return Lengths((found,), len(found))
    if len(positions.shape) not in (1, 2):
        raise LengthError(f"position ids have one or two dimensions, not shape {tuple(positions.shape)}")
    return _between_starts(host_array(positions.reshape(-1, positions.shape[-1])))


def _between_starts(rows: Any) -> Lengths:
    """Lengths of sequences in an array of position ids; on a device, followed by fillers."""
    later = rows[:, 1:] != rows[:, :-1] + 1
    if not hasattr(rows, "scatter_add"):
        numpy = numpy_here()
        places = numpy.insert(later, 0, True, axis=1).reshape(-1).nonzero()[0]
        return Lengths((numpy.diff(places, append=rows.size),), len(places))
    import torch

    starts = torch.nn.functional.pad(later, (1, 0), value=True).reshape(-1)
    lengths = torch.zeros(len(starts) + 1, dtype=torch.int64, device=starts.device)
    lengths = lengths.scatter_(0, starts.cumsum(0), 1, reduce="add")[1:]  # sequences are numbered from 1
    return Lengths((lengths,), len(starts), None, lengths > 0)


def of_nested(nested: Any) -> Lengths:
    """Lengths of a nested tensor's items along its ragged dimension.

    Raises:
        LengthError: it is not a jagged nested tensor.
    """
    if not getattr(nested, "is_nested", False):
        raise LengthError("not a nested tensor")
    try:
        lengths = nested.lengths() if hasattr(nested, "lengths") else None
        found = host_array(wide(nested.offsets()).diff() if lengths is None else wide(lengths))
    except (AttributeError, RuntimeError, TypeError):
        try:
            found = [int(row[0]) for row in nested._nested_tensor_size().tolist()]  # strided layout, on the host
        except (AttributeError, RuntimeError, IndexError) as error:
            raise LengthError(f"a nested tensor of layout {getattr(nested, 'layout', '?')}: {error}") from None
    return Lengths((found,), len(found))


def of_rows(rows: Any, axes: int) -> Lengths:
    """Lengths of items in rows of ``axes`` lengths, e.g. image_grid_thw (frames, height, width).

    Raises:
        LengthError: a row has another number of lengths.
    """
    if hasattr(rows, "dtype"):
        if rows.shape[0] and (len(rows.shape) != 2 or rows.shape[1] != axes):
            raise LengthError(f"rows of {axes} lengths, not shape {tuple(rows.shape)}")
        columns = wide(host_array(rows if rows.shape[0] else rows.reshape(0, axes)))
        return Lengths(tuple(columns[:, axis] for axis in range(axes)), int(rows.shape[0]))
    found = [[int(value) for value in row] for row in rows]
    if any(len(row) != axes for row in found):
        raise LengthError(f"rows of {axes} lengths, not {found[0]}")
    return Lengths(tuple([row[axis] for row in found] for axis in range(axes)), len(found))


def joined(parts: Sequence[Lengths]) -> Lengths:
    """Concatenate the items of several :class:`Lengths`, without padding and fillers."""
    if len(parts) == 1:
        return parts[0]
    axes = zip(*([_spread(column, part.count) for column in part.axes] for part in parts), strict=True)
    return Lengths(tuple(map(_joined, axes)), sum(part.count for part in parts))


def _spread(column: Any, count: int) -> Any:
    return [column] * count if isinstance(column, int) else column


def _joined(columns: Sequence[Any]) -> Any:
    device = next((column.device for column in columns if hasattr(column, "unsqueeze")), None)
    if device is None and any(hasattr(column, "dtype") for column in columns):
        return numpy_here().concatenate([numpy_here().asarray(column) for column in columns])
    if device is None:
        return [int(value) for column in columns for value in column]
    import torch

    return torch.cat([torch.as_tensor(column, dtype=torch.int64).to(device) for column in columns])


def of_any(given: Any, axes: Sequence[str], name: str) -> Lengths:
    """Lengths of a stream with ``axes``, from :class:`Lengths` or any input of ``Estimator.moments``.

    Raises:
        LengthError: the input has another form.
    """
    if isinstance(given, Lengths):
        if len(given.axes) != (len(axes) or 1):
            raise LengthError(f"'{name}' has {len(axes)} axes, not {len(given.axes)}")
        return given
    if isinstance(given, dict):
        return _of_sides(given, axes, name)
    if not axes and _is_integer(given) and given >= 0:
        return Lengths((0,), int(given))
    if isinstance(given, (str, bytes, set)) or not hasattr(given, "__len__") or getattr(given, "shape", None) == ():
        what = f"a list with one entry per item, {wanted(axes)}" if axes else "the number of items"
        raise LengthError(f"'{name}' must be {what}, not {told(given)}")
    if not axes:
        return Lengths((0,), len(given))
    return (_of_array if hasattr(given, "shape") else _of_entries)(given, axes, name)


def _of_sides(given: Mapping[str, Any], axes: Sequence[str], name: str) -> Lengths:
    """Read a dict with the keys ``lengths`` and ``padded``."""
    if not {"lengths"} <= given.keys() <= {"lengths", "padded"}:
        raise LengthError(f"'{name}' must be a list, or have 'lengths' and 'padded', not {told(given)}")
    if any(isinstance(side, dict) for side in given.values()):
        raise LengthError(f"'lengths' and 'padded' of '{name}' must be lists, not {told(given)}")
    one, two = (of_any(given.get(side, given["lengths"]), axes, name) for side in ("lengths", "padded"))
    if one.count != two.count:
        raise LengthError(f"'{name}' has {one.count} lengths and {two.count} padded ones")
    return Lengths(one.axes, one.count, two.axes, one.real)


def _of_array(given: Any, axes: Sequence[str], name: str) -> Lengths:
    """Read an array with one row per item, or with one number per item for a stream with one axis."""
    shape, count = tuple(given.shape), len(axes)
    if shape[1:] != ((count,) if count > 1 else ()):
        raise LengthError(f"'{name}' must have {wanted(axes)} per item, which an array of shape {shape} does not have")
    found = wide(host_array(given), name)
    return Lengths((found,) if count == 1 else tuple(found[:, axis] for axis in range(count)), shape[0])


def _of_entries(given: Any, axes: Sequence[str], name: str) -> Lengths:
    """Read a sequence with one entry per item, each a number or a row of numbers."""
    rows = [tuple(entry) if len(axes) > 1 and hasattr(entry, "__len__") else (entry,) for entry in given]
    for place, (row, entry) in enumerate(zip(rows, given, strict=True)):
        if len(row) != len(axes) or not all(_is_integer(length) and length >= 0 for length in row):
            raise LengthError(f"item {place} of '{name}' must be {wanted(axes)}, not {told(entry)}")
    return Lengths(tuple([int(row[axis]) for row in rows] for axis in range(len(axes))), len(rows))


def listed_lengths(entry: Lengths) -> Any:
    """List the real lengths, one entry per item, without fillers; synchronises with a device."""
    mark = [1] * entry.count if entry.real is None else [int(value) for value in entry.real]
    rows = [[column] * entry.count if isinstance(column, int) else [int(value) for value in column] for column in entry.axes]
    kept = [row for row, real in zip(zip(*rows, strict=True), mark, strict=True) if real]
    return [row[0] for row in kept] if len(rows) == 1 else [list(row) for row in kept]


def entry_of(entry: Lengths) -> Any:
    """Convert to an argument of ``Estimator.moments``, with lists; synchronises with a device."""
    if entry.padded is None:
        return listed_lengths(entry)
    return {"lengths": listed_lengths(entry), "padded": listed_lengths(Lengths(entry.padded, entry.count, None, entry.real))}


def _is_integer(value: Any) -> bool:
    """Whether a value is a Python or numpy integer, or a tensor with a single integer."""
    try:
        return not isinstance(value, bool) and "bool" not in str(getattr(value, "dtype", "")) and value.__index__() is not None
    except (AttributeError, TypeError):
        return False
