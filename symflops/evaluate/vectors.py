"""Vectorised moments and costs of many items with numpy, exact at any size.

The functions of lengths (``terms``, ``rests``) come from an estimator and accept ints and integer arrays. Running the same
functions on the largest lengths bounds every intermediate value. Arrays are int64 if nothing can overflow. A sum that could
overflow is computed in two halves; if a product could, arrays of Python integers are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import add
from typing import Any

import numpy as np

from symflops.evaluate.batch import Side, largest_of
from symflops.evaluate.columnwise import LIMIT, bounds_of
from symflops.evaluate.exact import wide_sum
from symflops.evaluate.plans import NOT_DIVIDED, Prices, Sums, TooWide

Terms = Callable[..., tuple[Any, ...]]
Sets = Mapping[str, Sequence[tuple[str, tuple[str, ...], int]]]
BLOCK, FEW_TERMS = 131_072, 3  # items per block; a quarter if more terms are in memory at once
MANY = 4096  # items from which plans are faster than whole columns
_add, _max = np.add.reduce, np.maximum.reduce
MOST_KNOWN = 4096  # cached bounds per function
WIDTH = LIMIT.bit_length() - 1  # bits of a length in an array of int64


def all_left(inner: Terms, columns: Sequence[Any]) -> bool:
    """Whether all lengths inside the model, which ``inner`` computes, are at least 1 for all items."""
    return all(np.min(left, initial=1) >= 1 for left in inner(*_measured(columns)[0]))


def sums(terms: Terms, rests: Terms, sets: Sets, moments: Mapping[str, str], columns: Sequence[Any]) -> list[int]:
    """Compute the moments of a batch from its columns.

    Args:
        terms: computes, from columns, the contribution of each item to each moment.
        rests: computes, from columns, remainders that must be 0.
        sets: index set -> streams, each as (name, axes, default length).
        moments: name of each moment -> index set over which it sums, in the order of ``terms``.
        columns: one column of lengths per axis.

    Raises:
        ValueError: a division of a length leaves a remainder.
    """
    block = BLOCK if len(moments) <= FEW_TERMS else BLOCK // 4
    if len(sets) == 1 and len(columns[0]) <= block and "once" not in moments.values():
        found = quickly(terms, rests, columns)
        if found is not None:
            return found
    count = max(map(len, columns), default=0)
    if count >= MANY and "once" not in moments.values():
        planned = _planned_sums(terms, rests, sets, moments, columns)
        if planned is not None:
            return planned
    if count > block:
        totals = found = [0] * len(moments)
        arrays = [_array(column) for column in columns]
        for start in range(0, count, block):
            found = sums(terms, rests, sets, moments, [column[start : start + block] for column in arrays])
            totals = list(map(add, totals, found))
        return [one if items == "once" else total for items, one, total in zip(moments.values(), found, totals, strict=True)]
    return _whole_sums(terms, rests, sets, moments, columns)


def _whole_sums(terms: Terms, rests: Terms, sets: Sets, moments: Mapping[str, str], columns: Sequence[Any]) -> list[int]:
    """Compute moments from whole columns, for lengths of any size; arguments as for :func:`sums`."""
    arrays, bits = _measured(columns)
    bounds, most = _bounds(terms, bits)
    if most >= LIMIT:
        arrays = [column.astype(object) for column in arrays]
    counts = {items: len(arrays[first]) for items, first, _ in _places(sets)}
    _divided(rests(*arrays))
    found = []
    for term, items, bound in zip(terms(*arrays), moments.values(), bounds, strict=True):
        if type(term) is not np.ndarray:
            found.append(int(term) * counts.get(items, 1))
        elif bound * len(term) < LIMIT or term.dtype == object:
            found.append(int(_add(term)) if len(term) else 0)
        else:
            found.append(wide_sum(term))
    return found


def _planned_sums(
    terms: Terms, rests: Terms, sets: Sets, moments: Mapping[str, str], columns: Sequence[Any]
) -> list[int] | None:
    """Compute moments by a compiled plan, block by block; None if a value could overflow 64 bits."""
    arrays, bits = _measured(columns)
    totals = [0] * len(moments)
    for items, first, after in _places(sets):
        mine = tuple([of == items for of in moments.values()])
        plan = _planned(Sums, terms, rests, mine, _within(bits, first, after))
        if plan is None:
            return None
        totals = list(map(add, totals, plan.of(arrays[first:after])))
    return totals


def quickly(terms: Terms, rests: Terms, columns: Sequence[Any]) -> list[int] | None:
    """Compute sums over one index set of int64 columns; None for other columns, or on possible overflow.

    Raises:
        ValueError: a division of a length leaves a remainder.
    """
    for column in columns:
        if type(column) is not np.ndarray or column.dtype != np.int64:
            return None
    count = len(columns[0])
    if _bounds(terms, _bits(columns))[1] * count >= LIMIT:
        return None
    left = rests(*columns)
    if left:
        _divided(left)
    return [term * count if type(term) is int else int(_add(term)) for term in terms(*columns)]


def per_item(
    terms: Terms, rests: Terms, sets: Sets, moments: Mapping[str, str], columns: Sequence[Any], costs: Sequence[int]
) -> dict[str, Any]:
    """Map each index set to the cost of each of its items.

    A cost is an entry of an int64 array, or of an array of Python integers if int64 could overflow. ``costs`` is the cost per
    unit of each moment; the other arguments are those of :func:`sums`.

    Raises:
        ValueError: a division of a length leaves a remainder.
    """
    arrays, bits = _measured(columns)
    found: dict[str, Any] = {}
    for items, first, after in _places(sets):
        own = tuple([cost if of == items else 0 for cost, of in zip(costs, moments.values(), strict=True)])
        mine = arrays[first:after]
        prices = _planned(Prices, terms, rests, own, _within(bits, first, after))
        if prices is None:
            others = [0] * len(arrays)
            found[items] = _one_by_one(terms, rests, own, [*others[:first], *mine, *others[after:]], len(mine[0]))
        else:
            found[items] = prices.of(mine)
    once = [place for place, of in enumerate(moments.values()) if of not in sets]
    if once:
        values = terms(*[0] * len(arrays))
        found["once"] = np.array([sum(costs[place] * int(values[place]) for place in once)], object)
    return found


def _one_by_one(terms: Terms, rests: Terms, costs: Sequence[int], columns: Sequence[Any], count: int) -> Any:
    """Compute the cost of each of ``count`` items in Python integers, as an array of objects."""
    wide = [column if type(column) is int else column.astype(object) for column in columns]
    _divided(rests(*wide))
    found = np.zeros(count, object)
    for term, cost in zip(terms(*wide), costs, strict=True):
        if cost:
            found = found + term * cost
    return found


def _places(sets: Sets) -> Iterator[tuple[str, int, int]]:
    """Yield each index set as (name, index of its first column, index after its last column)."""
    first = 0
    for items, streams in sets.items():
        after = first + sum([len(axes) or 1 for _, axes, _ in streams])
        yield items, first, after
        first = after


def _within(bits: Sequence[int], first: int, after: int) -> tuple[int | None, ...]:
    return tuple([bit if first <= place < after else None for place, bit in enumerate(bits)])


def _planned(kind: Any, terms: Terms, rests: Terms, which: tuple[Any, ...], bits: tuple[int | None, ...]) -> Any:
    """The compiled plan of class ``kind`` (cached); None if a value could overflow 64 bits.

    ``which`` lists for each term whether to sum it (:class:`Sums`), or its cost (:class:`Prices`). ``bits`` lists the bit
    length of each column's maximum, None for a column of another index set.
    """
    key, known = (kind, which, bits), vars(terms).setdefault("plans", {})
    if key not in known:
        try:
            plan = None if max([bit or 0 for bit in bits]) > 62 else kind(terms, rests, which, bits)
        except TooWide:
            plan = None
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[key] = plan
    return known[key]


def _divided(rests: Sequence[Any]) -> None:
    for rest in rests:
        if np.any(rest):
            raise ValueError(NOT_DIVIDED)


def _measured(columns: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Convert columns to arrays: (arrays, bit length of each column's maximum)."""
    arrays, bits = [_array(column) for column in columns], _bits(columns)
    for place, (found, most) in enumerate(zip(arrays, bits, strict=True)):
        if found.dtype == np.uint64:
            arrays[place] = found.astype(object) if most > WIDTH else found.view(np.int64)
        elif found.dtype == object and most <= WIDTH:
            arrays[place] = found.astype(np.int64)
    return arrays, bits


def _bits(columns: Sequence[Any]) -> list[int]:
    """The bit length of each column's maximum."""
    places = range(len(columns))
    return [(columns.largest(at) if type(columns) is Side else largest_of(columns[at])).bit_length() for at in places]


def _bounds(terms: Terms, bits: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """(Bound on each term, bound on all intermediate values), cached; ``bits`` are those of each column."""
    known, key = vars(terms).setdefault("bounds", {}), tuple(bits)
    if key not in known:
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[key] = bounds_of(terms, bits)
    return known[key]  # type: ignore[no-any-return]


def _array(column: Any) -> Any:
    if isinstance(column, np.ndarray):
        return column
    try:
        return np.array(column, np.int64)
    except OverflowError:
        return np.array(column, object)
