"""Moments and costs of many items at once, by numpy, exact at any size.

The functions of lengths come from an estimator (``terms``, ``rests``) and work on ints and on integer arrays alike. Arrays
are of int64 as long as no product and no sum can leave it: a bound on every intermediate value is found by running the same
functions on the largest lengths. Where a sum could, it is taken in two halves; where a product could, Python's integers
take over.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from operator import add
from typing import Any

import numpy as np

from symflops.runtime.bounds import LIMIT, bounds_of

Terms = Callable[..., tuple[Any, ...]]
Sets = Mapping[str, Sequence[tuple[str, tuple[str, ...], int]]]
HALF = 32
BLOCK, FEW_TERMS = 131_072, 3  # items at once; a quarter of them where more terms lie in memory together
_add, _max = np.add.reduce, np.maximum.reduce
MOST_KNOWN = 4096  # bounds that are kept
FEW = 100  # items that estimators sum up without vectors
_KNOWN: dict[tuple[Any, ...], tuple[tuple[int, ...], int]] = {}


def axes(name: str, entries: Any, count: int) -> list[np.ndarray[Any, Any]]:
    """An integer array or tensor with one row per item as one column per axis.

    Raises:
        ValueError: it is not of non-negative integers, or has another number of axes.
    """
    if hasattr(entries, "detach"):
        entries = entries.detach().cpu().numpy()
    if np.ma.isMaskedArray(entries) and np.ma.is_masked(entries):
        raise ValueError(f"'{name}' is a masked array: give the entries that count, with '.compressed()'")
    found = np.asarray(entries)
    wrong = _wrong(found, count) if found.size else ""
    if wrong:
        raise ValueError(f"an entry of '{name}' is {count} whole number{'s' * (count > 1)}, not {wrong}")
    wide = found.dtype == np.uint64 and found.size and int(found.max()) >= LIMIT
    found = found.astype(object) if wide else found.astype(np.int64, copy=False)
    return [found] if count == 1 else [np.ascontiguousarray(found[:, axis]) for axis in range(count)]


def smallest(columns: Sequence[Any]) -> list[int]:
    """The least length of each column."""
    return [int(column.min()) if len(column) else 1 for column in map(_array, columns)]


def _wrong(found: np.ndarray[Any, Any], count: int) -> str:
    """How an array that is not empty differs from one of non-negative integers with ``count`` axes."""
    if found.dtype.kind not in "iu":
        return f"of type {found.dtype}"
    if found.shape != ((len(found),) if count == 1 else (len(found), count)):
        return f"of shape {found.shape[1:]}"
    small = len(found) < FEW or count > 1  # the minimum of a long column is checked with its bounds
    return str(int(found.min())) if small and int(found.min()) < 0 else ""


def sums(terms: Terms, rests: Terms, sizes: Any, sets: Sets, moments: Mapping[str, str], columns: Sequence[Any]) -> list[int]:
    """The moments of whole columns, in the order of ``moments``; ``sizes`` is None where ``terms`` needs none.

    Raises:
        ValueError: a length does not divide as the model divides it.
    """
    block = BLOCK if len(moments) <= FEW_TERMS else BLOCK // 4
    if sizes is None and len(sets) == 1 and len(columns[0]) <= block and "once" not in moments.values():
        found = quickly(terms, rests, columns)
        if found is not None:
            return found
    count = max(map(len, columns), default=0)
    if count > block:
        totals = found = [0] * len(moments)
        arrays = [_array(column) for column in columns]
        for start in range(0, count, block):
            found = sums(terms, rests, sizes, sets, moments, [column[start : start + block] for column in arrays])
            totals = list(map(add, totals, found))
        return [one if items == "once" else total for items, one, total in zip(moments.values(), found, totals, strict=True)]
    arrays, bounds = _prepared(terms, sizes, columns)
    return _sums(terms, rests, sizes, _counts(sets, arrays), moments, arrays, bounds)


def quickly(terms: Terms, rests: Terms, columns: Sequence[Any]) -> list[int] | None:
    """The sums over one index set whose lengths are known to be small, in as few steps as can be; None where they are not.

    Raises:
        ValueError: a length does not divide as the model divides it.
    """
    bits, arrays, summed = [], [], {}
    for column in columns:
        if type(column) is array and column.itemsize == 4:  # as many as a list has, below 2**32: their sum is a bound, too
            found: Any = np.frombuffer(column, np.uint32).astype(np.int64)
            bound = summed[id(found)] = int(_add(found))
        elif type(column) is np.ndarray and column.dtype == np.int64 and len(column):
            found, bound = column, int(_max(column.view(np.uint64)))
        else:
            return None
        bits.append(bound.bit_length())
        arrays.append(found)
    count = len(arrays[0])
    if _bounds(terms, None, bits)[1] * count >= LIMIT:
        return None
    left = rests(None, *arrays)
    if left:
        _divided(left)
    totals: list[int] = []
    for term in terms(None, *arrays):
        total = summed.get(id(term))
        totals.append(total if total is not None else term * count if type(term) is int else int(_add(term)))
    return totals


def _sums(
    terms: Terms,
    rests: Terms,
    sizes: Any,
    counts: Mapping[str, int],
    moments: Mapping[str, str],
    arrays: Any,
    bounds: Sequence[int],
) -> list[int]:
    _divided(rests(sizes, *arrays))
    found = []
    for term, items, bound in zip(terms(sizes, *arrays), moments.values(), bounds, strict=True):
        if type(term) is not np.ndarray:
            found.append(int(term) * counts.get(items, 1))
        elif bound * len(term) < LIMIT or term.dtype == object:
            found.append(int(_add(term)) if len(term) else 0)
        else:
            found.append((int((term >> HALF).sum()) << HALF) + int((term & (2**HALF - 1)).sum()))
    return found


def per_item(
    terms: Terms, rests: Terms, sizes: Any, sets: Sets, moments: Mapping[str, str], columns: Sequence[Any], costs: Sequence[int]
) -> dict[str, Any]:
    """What each item costs, per index set: an array of int64, or of Python's integers where that is too narrow.

    Raises:
        ValueError: a length does not divide as the model divides it.
    """
    arrays, bounds = _prepared(terms, sizes, columns)
    counts = _counts(sets, arrays)
    _divided(rests(sizes, *arrays))
    most = sum(cost * bound for cost, bound in zip(costs, bounds, strict=True))
    wide = most >= LIMIT
    found = {items: np.zeros(counts[items], object if wide else np.int64) for items in sets}
    for term, items, cost in zip(terms(sizes, *arrays), moments.values(), costs, strict=True):
        if items not in found:
            found[items] = np.array([cost * int(term)], object)
        elif cost:
            found[items] = found[items] + (term.astype(object) if wide and isinstance(term, np.ndarray) else term) * cost
    # int64 only where any sum of the items fits, too: numpy's own sum wraps in silence
    return {items: cost.astype(object) if most * len(cost) >= LIMIT else cost for items, cost in found.items()}


def _divided(rests: Sequence[Any]) -> None:
    for rest in rests:
        if np.any(rest):
            raise ValueError("a length of the batch does not divide as the model divides it")


def _counts(sets: Sets, columns: Sequence[Any]) -> dict[str, int]:
    """The number of items of each index set."""
    counts, first = {}, 0
    for items, streams in sets.items():
        counts[items] = len(columns[first])
        for _, axes, _ in streams:
            first += len(axes) or 1
    return counts


def _prepared(terms: Terms, sizes: Any, columns: Sequence[Any]) -> tuple[list[Any], tuple[int, ...]]:
    """Columns as arrays that are wide enough for every intermediate value, and what bounds the terms."""
    arrays, bits = [], []
    for column in columns:
        found = _array(column)
        largest = int(_max(found if found.dtype == object else found.view(np.uint64))) if len(found) else 0
        if found.dtype == np.int64 and largest >= LIMIT:
            raise ValueError(f"a length is a whole number, not {int(found.min())}")
        if found.dtype == np.uint64:
            found = found.astype(object) if largest >= LIMIT else found.view(np.int64)
        arrays.append(found)
        bits.append(largest.bit_length())
    bounds, most = _bounds(terms, sizes, bits)
    if most >= LIMIT:
        arrays = [column.astype(object) for column in arrays]
    return arrays, bounds


def _bounds(terms: Terms, sizes: Any, bits: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """What bounds each term, and every value on the way, where the lengths have so many bits."""
    if sizes is not None:
        return bounds_of(terms, sizes, bits)
    key = (terms, *bits)
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= MOST_KNOWN:
            _KNOWN.clear()
        known = _KNOWN[key] = bounds_of(terms, sizes, bits)
    return known


def _array(column: Any) -> Any:
    if type(column) is array:
        return np.frombuffer(column, np.uint64) if column.itemsize == 8 else np.frombuffer(column, np.uint32).astype(np.int64)
    if isinstance(column, np.ndarray):
        return column
    try:
        return np.array(column, np.int64)
    except OverflowError:
        return np.array(column, object)
