"""Lengths as frameworks hold them: cu_seqlens, masks, position ids, nested tensors, grids, latents, plain shapes.

Each function gives :class:`Lengths`, which an accumulator adds up. None of them reads a tensor's values on the host: they
work on lists, numpy arrays and torch tensors, on whichever device, with operations whose results have a known shape. Where
the number of items is only known on the device, fillers stand behind the items, and ``real`` tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any


class LengthError(ValueError):
    """What was given is not in a form from which lengths can be read."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """The lengths of the items of one stream: per axis an int that holds for all, a list, an integer array or a tensor.

    ``count`` is the number of entries; ``padded`` are the lengths with padding, where the two differ; ``real`` is 1 for an
    entry that is an item and 0 for a filler, None where all are items.
    """

    axes: tuple[Any, ...]
    count: int
    padded: tuple[Any, ...] | None = None
    real: Any = None


def same(count: int, *axes: int, padded: Sequence[int] | None = None) -> Lengths:
    """``count`` items of one size, as a dense batch (batch, length) has them.

    Raises:
        LengthError: a number is negative.
    """
    if min((count, *axes, *(padded or ())), default=0) < 0:
        raise LengthError(f"a batch of {count} items of {axes} is not possible")
    return Lengths(tuple(map(int, axes)), int(count), None if padded is None else tuple(map(int, padded)))


def of_cu_seqlens(cu: Any, unpadded: Any = None, valid: int | None = None) -> Lengths:
    """The sub-sequences of a pack, from their boundaries: ``cu[i + 1] - cu[i]``.

    ``unpadded`` are the boundaries without the padding of each sub-sequence; they are the real lengths then, and those of
    ``cu`` the padded ones. ``valid`` is the number of boundaries that count, where the host knows it (an argmin); without it
    a tail that falls back (-1 or 0) is left out. Zero-length sub-sequences cost nothing but are items.

    Raises:
        LengthError: there is no boundary, or the two have different numbers.
    """
    padded, real = _steps(cu, valid)
    if unpadded is None:
        return Lengths((padded,), len(padded), None, real)
    inner, inner_real = _steps(unpadded, valid)
    if len(inner) != len(padded):
        raise LengthError(f"{len(padded)} padded sub-sequences and {len(inner)} unpadded ones")
    return Lengths((inner,), len(inner), (padded,), inner_real)


def _steps(cu: Any, valid: int | None) -> tuple[Any, Any]:
    """Differences of boundaries, and where they are of the part that rises."""
    if not hasattr(cu, "dtype"):
        cu = [int(value) for value in cu]
    elif len(cu.shape) == 2 and cu.shape[0] == 1:
        cu = cu[0]
    cu = cu if valid is None else cu[:valid]
    if len(cu) == 0:
        raise LengthError("cu_seqlens without a boundary")
    if isinstance(cu, list):
        found: list[int] = []
        for before, after in pairwise(cu):
            if after < before:
                break
            found.append(after - before)
        return found, None
    cu = _wide(cu)
    if valid is not None:
        return cu[1:] - cu[:-1], None
    top = cu.cummax(0).values if hasattr(cu, "cummax") else _numpy().maximum.accumulate(cu)
    rising = (cu == top) * 1  # a value that falls back is below what came before, and so is what follows it
    return (cu[1:] - cu[:-1]) * rising[1:], rising[1:]


def of_mask(mask: Any) -> Lengths:
    """The samples of an attention mask of (samples, positions): entries that are not 0; padded, all positions.

    Raises:
        LengthError: it has another number of dimensions.
    """
    if not hasattr(mask, "dtype"):
        rows = [list(row) for row in mask]
        width = max(map(len, rows), default=0)
        return Lengths(([sum(1 for value in row if value) for row in rows],), len(rows), (width,))
    if len(mask.shape) != 2:
        raise LengthError(f"an attention mask has two dimensions (samples, positions), not shape {tuple(mask.shape)}")
    return Lengths(((mask != 0).sum(-1),), int(mask.shape[0]), (int(mask.shape[1]),))


def of_position_ids(positions: Any) -> Lengths:
    """The sequences of a batch without padding, of (positions) or (rows, positions): each starts where ids do not go on.

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
    rows = positions.reshape(-1, positions.shape[-1])
    starts = rows != rows
    starts[:, 1:] = rows[:, 1:] != rows[:, :-1] + 1
    starts[:, :1] = True
    flat = _wide(starts.reshape(-1))
    count = int(flat.shape[0])
    numbers = flat.cumsum(0) - 1
    found_lengths = flat * 0
    if hasattr(found_lengths, "scatter_add_"):
        found_lengths = found_lengths.scatter_add_(0, numbers, flat * 0 + 1)
    else:
        _numpy().add.at(found_lengths, numbers, 1)
    return Lengths((found_lengths,), count, None, (found_lengths > 0) * 1)


def of_nested(nested: Any) -> Lengths:
    """The items of a nested tensor along its ragged dimension.

    Raises:
        LengthError: it is not a jagged nested tensor.
    """
    if not getattr(nested, "is_nested", False):
        raise LengthError("not a nested tensor")
    try:
        lengths = nested.lengths() if hasattr(nested, "lengths") else None
        found = _wide(nested.offsets()).diff() if lengths is None else _wide(lengths)
    except (AttributeError, RuntimeError, TypeError):
        try:
            found = [int(row[0]) for row in nested._nested_tensor_size().tolist()]  # of the strided layout, held by the host
        except (AttributeError, RuntimeError, IndexError) as error:
            raise LengthError(f"a nested tensor of layout {getattr(nested, 'layout', '?')}: {error}") from None
    return Lengths((found,), len(found))


def of_rows(rows: Any, axes: int) -> Lengths:
    """Items with one row each of ``axes`` lengths, as image_grid_thw has frames, height and width in patches.

    Raises:
        LengthError: rows of another width.
    """
    if hasattr(rows, "dtype"):
        if len(rows.shape) != 2 or rows.shape[1] != axes:
            raise LengthError(f"rows of {axes} lengths, not shape {tuple(rows.shape)}")
        wide = _wide(rows)
        return Lengths(tuple(wide[:, axis] for axis in range(axes)), int(rows.shape[0]))
    found = [[int(value) for value in row] for row in rows]
    if any(len(row) != axes for row in found):
        raise LengthError(f"rows of {axes} lengths, not {found[0]}")
    return Lengths(tuple([row[axis] for row in found] for axis in range(axes)), len(found))


def of_any(given: Any, axes: Sequence[str], name: str) -> Lengths:
    """What a batch gives for a stream with these ``axes``: lengths as they are, or what the ``moments`` of an estimator take.

    Raises:
        LengthError: it is of another form.
    """
    if isinstance(given, Lengths):
        if len(given.axes) != (len(axes) or 1):
            raise LengthError(f"'{name}' has {len(axes)} axes, not {len(given.axes)}")
        return given
    if isinstance(given, dict):
        one, two = (of_any(given[side], axes, name) for side in ("lengths", "padded"))
        return Lengths(one.axes, one.count, two.axes, one.real)
    if not axes:
        return Lengths((0,), given if isinstance(given, int) else len(given))
    if hasattr(given, "shape"):
        shape = tuple(given.shape)
        if shape[1:] != ((len(axes),) if len(axes) > 1 else ()):
            raise LengthError(f"'{name}' has {len(axes)} axes, which an array of shape {shape} does not have")
        wide = _wide(given)
        return Lengths((wide,) if len(axes) == 1 else tuple(wide[:, axis] for axis in range(len(axes))), shape[0])
    try:
        rows = [(entry,) if len(axes) == 1 else tuple(entry) for entry in given]
        if any(len(row) != len(axes) for row in rows) or not all(_whole(value) for row in rows for value in row):
            raise LengthError(f"an entry of '{name}' is {len(axes)} whole number(s), not {given!r:.80}")
    except TypeError:
        raise LengthError(f"'{name}' is lengths, not {given!r:.80}") from None
    return Lengths(tuple([int(row[axis]) for row in rows] for axis in range(len(axes))), len(rows))


def plain(entry: Lengths) -> Any:
    """Real lengths as a list with one entry per item, without fillers; those on a device are waited for."""
    mark = [1] * entry.count if entry.real is None else [int(value) for value in entry.real]
    rows = [[column] * entry.count if isinstance(column, int) else [int(value) for value in column] for column in entry.axes]
    kept = [row for row, real in zip(zip(*rows, strict=True), mark, strict=True) if real]
    return [row[0] for row in kept] if len(rows) == 1 else [list(row) for row in kept]


def _whole(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _wide(column: Any) -> Any:
    """As 64-bit integers: the squares of 32-bit lengths would not fit.

    Raises:
        LengthError: of another type than integers.
    """
    kind = str(column.dtype).rpartition(".")[2]
    if not kind.startswith(("int", "uint", "bool")) and len(column):
        raise LengthError(f"lengths are whole numbers, not of type {kind}")
    return column.long() if hasattr(column, "long") else column.astype("int64")


def _numpy() -> Any:
    import numpy

    return numpy
