"""Columns of lengths: an int for all items, a list, an array or a tensor; and the vectors of their sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from symflops.model.index_sets import ONCE
from symflops.runtime.at_hand import LengthError, at_hand

Vector = tuple[list[int], Any]
"""The sums of one batch: ints on the host, and a tensor of halves if lengths are on a device."""


Sets = Mapping[str, Sequence[tuple[str, Sequence[str], int]]]
"""The streams of each index set: name, axes, and the length of a stream that is left out."""
Row = tuple[str, str, tuple[str, ...], Sequence[Any]]
"""A stream of a batch: its index set, its name, its axes and its columns."""


def with_rows(real: Vector, padded: Vector, rows: Sequence[int], places: Callable[..., Any]) -> Vector:
    """The vector of real lengths, with ``rows`` of that of padded ones; ``places`` makes a tensor of positions."""
    host = [padded[0][place] if place in rows else value for place, value in enumerate(real[0])]
    if padded[1] is None:  # if a length is on a device, so is the vector of padded ones
        return host, None
    index = places("padded", tuple(rows), padded[1].device)
    kept = padded[1] * 0 if real[1] is None else real[1]
    return host, kept.index_copy(0, index, padded[1].index_select(0, index))


def sets_of_rests(rests: Callable[..., Sequence[Any]], sets: Sets) -> tuple[str, ...]:
    """The index set of each remainder: the one whose columns it follows, which evaluating it on tensors shows."""
    import torch

    owners = [items for items, members in sets.items() for _, axes, _ in members for _ in axes or ("",)]
    tried = {items: rests(*(torch.ones(1, dtype=torch.int64) if of == items else 1 for of in owners)) for items in sets}
    places = range(len(next(iter(tried.values()), ())))
    return tuple(next((items for items, found in tried.items() if hasattr(found[place], "shape")), ONCE) for place in places)


def nothing(*columns: Any) -> tuple[Any, ...]:
    """No lengths inside of a model."""
    return ()


def clipped(column: Any, most: int) -> Any:
    """A number, or each element of a column, limited to 0 up to ``most``."""
    return column.clip(min=0, max=most) if hasattr(column, "clip") else max(0, min(column, most))


def listed(column: Any, count: int, mark: Any) -> list[int]:
    """A column as a list of ints, without the padding items."""
    if isinstance(column, int):
        column = [column] * count
    found = column.tolist() if hasattr(column, "tolist") else [int(value) for value in column]
    return found if mark is None else [value for value, real in zip(found, mark, strict=True) if real]


def first_below(one: Any, two: Any) -> int | None:
    """The first item whose length in ``one`` is below that in ``two``, or None; for columns on the host."""
    if isinstance(one, int) and isinstance(two, int):
        return 0 if one < two else None
    if hasattr(one, "dtype") or hasattr(two, "dtype"):
        below = one < two if hasattr(one, "dtype") or isinstance(one, int) else two > one
        return int(below.argmax()) if below.any() else None
    count = len(two if isinstance(one, int) else one)
    pairs = zip(listed(one, count, None), listed(two, count, None), strict=True)
    return next((place for place, (first, second) in enumerate(pairs) if first < second), None)


def check_padding(real: Iterable[Row], padded: Iterable[Row]) -> None:
    """Refuse padded lengths on the host that are below the real ones.

    Raises:
        LengthError: one of them is.
    """
    for (_, name, _, ones), (_, _, _, twos) in zip(real, padded, strict=True):
        for one, two in zip(ones, twos, strict=True):
            place = None if one is two else first_below(two, one)
            if place is not None:
                raise LengthError(f"item {place} of '{name}' is padded to less than its length")


def entries_of(columns: Sequence[Any], axes: Sequence[str], count: int, mark: Any) -> Any:
    """A stream's columns on the host as an estimator takes them, without fillers: an array if they are arrays, or a list."""
    if axes and all(hasattr(column, "dtype") for column in columns):
        kept = columns if mark is None else [column[at_hand(mark) != 0] for column in columns]
        return kept[0] if len(axes) == 1 else rows_of(kept)
    mine = [listed(column, count, mark) for column in columns]
    return len(mine[0]) if not axes else mine[0] if len(axes) == 1 else list(zip(*mine, strict=True))


def rows_of(columns: Sequence[Any]) -> Any:
    """Columns on the host as an array of one row per item."""
    import numpy

    return numpy.stack([numpy.asarray(column) for column in columns], -1)


def tokens(entries: Any, axes: Sequence[str]) -> int:
    """The tokens of a stream on the host, as an estimator takes it: the sum of its lengths, or of their products."""
    if not axes:
        return 0
    found = entries.tolist() if hasattr(entries, "tolist") else entries
    return sum(found) if len(axes) == 1 else sum(map(prod, found))
