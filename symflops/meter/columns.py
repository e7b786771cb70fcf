"""Columns of lengths: an int for all items, a list, an array or a tensor."""

from __future__ import annotations

from typing import Any


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
