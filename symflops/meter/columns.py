"""Columns of lengths: an int for all items, a list, an array or a tensor; and the vectors of their sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Vector = tuple[list[int], Any]
"""The sums of one batch: ints on the host, and a tensor of halves if lengths are on a device."""


def with_rows(real: Vector, padded: Vector, rows: Sequence[int], places: Callable[..., Any]) -> Vector:
    """The vector of real lengths, with ``rows`` of that of padded ones; ``places`` makes a tensor of positions."""
    host = [padded[0][place] if place in rows else value for place, value in enumerate(real[0])]
    if padded[1] is None:  # if a length is on a device, so is the vector of padded ones
        return host, None
    index = places("padded", tuple(rows), padded[1].device)
    kept = padded[1] * 0 if real[1] is None else real[1]
    return host, kept.index_copy(0, index, padded[1].index_select(0, index))


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
    count = len(two if isinstance(one, int) else one)
    pairs = zip(listed(one, count, None), listed(two, count, None), strict=True)
    return next((place for place, (first, second) in enumerate(pairs) if first < second), None)
