"""Layout of the vector of sums: its rows, and the streams and columns that they sum.

A column holds one length per item: a list, an array or a tensor, or an int if all items are equally long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

from symflops.evaluate.boundaries import LengthError, host_array
from symflops.evaluate.columnwise import safe_bits
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.index_sets import ONCE, SAMPLES

Vector = tuple[list[int], Any]
"""Sums of one batch by row: (ints on the host, tensor of low and high 32 bits or None if no length is on a device)."""


REST = (0, 0, 0)
"""What a batch of lengths adds to the last rows: FLOPs and tokens of watched calls, and faults."""


Row = tuple[str, str, tuple[str, ...], Sequence[Any]]
"""A stream of a batch: (index set, name, axes, columns), with a column of lengths per axis."""


class Layout:
    """The rows of the sums of a step: one for each moment, one for each stream, two of watched calls, and one for faults.

    A stream's row is its number of tokens. Watched calls have a row of FLOPs and one of tokens. Faults are invalid lengths and
    unreadable batches.

    Attributes:
        always: Rows of moments that use padded lengths under any convention.
        tokens: (name, axes, row) of each stream; the row is that of a moment equal to its number of tokens, or None.
        bits: Lengths of at most this many bits cannot overflow 64 bits.
    """

    def __init__(self, estimator: InterpretedEstimator) -> None:
        self.sets = {items: tuple(streams) for items, streams in estimator.sets.items()}
        self.terms = estimator.terms
        self.rests = estimator.rests
        self.inner_lengths = getattr(estimator, "inner_lengths", lambda *_: ())  # a vendored module may be older
        self.moment_sets = tuple(estimator.moment_sets.values())
        always = getattr(estimator, "padded_sums", ())
        self.always = tuple(place for place, name in enumerate(estimator.moment_sets) if name in always)
        self.streams = tuple(name for streams in self.sets.values() for name, _, _ in streams)
        self.axes = tuple(len(axes) for streams in self.sets.values() for _, axes, _ in streams)
        self.width = len(self.moment_sets) + len(self.streams) + len(REST)
        self.bits = 0 if estimator.whole else safe_bits(self.terms, self.axes)
        sums = (None,) * len(self.axes) if estimator.whole else plain_sums(self.terms, self.axes)
        named = ((name, axes) for streams in self.sets.values() for name, axes, _ in streams)
        self.tokens = tuple((name, axes, row) for (name, axes), row in zip(named, sums, strict=True))

    def by_stream(self, columns: Sequence[Any]) -> Iterator[Row]:
        """Group the columns of a batch by stream: yield (index set, name, axes, columns)."""
        first = 0
        for items, members in self.sets.items():
            for name, axes, _ in members:
                yield items, name, axes, columns[first : first + (len(axes) or 1)]
                first += len(axes) or 1

    def rows(self, columns: Sequence[Any], real: Sequence[Any]) -> Mapping[str, list[tuple[int, Any]]]:
        """Compute what to sum for a batch: index set -> [(row, values of its items)], in all rows.

        ``columns`` are the lengths to use, real or padded; ``real`` are the real ones, which must not be larger.
        """
        found: dict[str, list[tuple[int, Any]]] = {items: [] for items in self.sets}
        for position, (term, items) in enumerate(zip(self.terms(*columns), self.moment_sets, strict=True)):
            found.setdefault(items, []).append((position, term))
        faults = dict.fromkeys(self.sets, 0)
        for items, left in self.inner_lengths(*columns):
            faults[items] = faults[items] + (left < 1) * 1
        for (items, _, _, mine), (_, _, _, least) in zip(self.by_stream(columns), self.by_stream(real), strict=True):
            for column, length in zip(mine, least, strict=True):
                if column is not length:
                    faults[items] = faults[items] + (column < length) * 1
        for position, (items, _, axes, mine) in enumerate(self.by_stream(columns), len(self.moment_sets)):
            size: Any = 1
            for column in mine:
                faults[items] = faults[items] + ((column >> self.bits) != 0) * 1
                size = size * clipped(column, 2**self.bits)
                if len(axes) > 1:
                    size = clipped(size, 2 ** (self.bits + 1))
            faults[items] = faults[items] + ((size >> self.bits) > 1) * 1
            found[items].append((position, size if axes else 0))
        for items, fault in faults.items():
            found[items].append((self.width - 1, fault))
        for items, rest in zip(self.sets_of_rests, self.rests(*columns), strict=True):
            found.setdefault(items, []).append((self.width - 1, (rest != 0) * 1))
        return found

    @cached_property
    def sets_of_rests(self) -> tuple[str, ...]:
        """The index set of each of the estimator's ``rests``, remainders that must be 0.

        It is found by evaluating ``rests`` with tensors for the lengths of one set at a time.
        """
        import torch

        owners = [items for items, members in self.sets.items() for _, axes, _ in members for _ in axes or ("",)]
        ones = ((torch.ones(1, dtype=torch.int64) if owner == items else 1 for owner in owners) for items in self.sets)
        tried = dict(zip(self.sets, (self.rests(*columns) for columns in ones), strict=True))
        places = range(len(next(iter(tried.values()), ())))
        return tuple(next((items for items, found in tried.items() if hasattr(found[one], "shape")), ONCE) for one in places)

    def alone(self, name: str) -> bool:
        """Whether a stream is the only one in its index set, so that a batch may have no items of it."""
        return any(len(members) == 1 and members[0][0] == name for items, members in self.sets.items() if items != SAMPLES)


def plain_sums(terms: Callable[..., Sequence[Any]], axes: Sequence[int]) -> tuple[int | None, ...]:
    """For each stream, the position of the moment that sums its lengths; None for one without such."""
    columns = [[2**20 + 64 * place + axis for axis in range(count or 1)] for place, count in enumerate(axes)]
    found = terms(*(length for column in columns for length in column))
    places = {id(term): place for place, term in reversed(list(enumerate(found)))}
    return tuple(places.get(id(column[0])) if count == 1 else None for column, count in zip(columns, axes, strict=True))


def with_rows(real: Vector, padded: Vector, rows: Sequence[int], places: Callable[..., Any]) -> Vector:
    """Return the sums ``real`` with ``rows`` taken from ``padded``; ``places`` makes index tensors."""
    host = [padded[0][place] if place in rows else value for place, value in enumerate(real[0])]
    if padded[1] is None:  # no length is on a device
        return host, None
    index = places("padded", tuple(rows), padded[1].device)
    kept = padded[1] * 0 if real[1] is None else real[1]
    return host, kept.index_copy(0, index, padded[1].index_select(0, index))


def clipped(column: Any, most: int) -> Any:
    """Limit a number, or each element of a column, to the range from 0 to ``most``."""
    return column.clip(min=0, max=most) if hasattr(column, "clip") else max(0, min(column, most))


def listed(column: Any, count: int, mark: Any) -> list[int]:
    """Convert a column of ``count`` lengths to a list of ints, without the items where ``mark`` is 0."""
    if isinstance(column, int):
        column = [column] * count
    found = column.tolist() if hasattr(column, "tolist") else [int(value) for value in column]
    return found if mark is None else [value for value, real in zip(found, mark, strict=True) if real]


def first_below(one: Any, two: Any) -> int | None:
    """The index of the first item whose length in ``one`` is below that in ``two``; None without one."""
    if isinstance(one, int) and isinstance(two, int):
        return 0 if one < two else None
    if hasattr(one, "dtype") or hasattr(two, "dtype"):
        below = one < two if hasattr(one, "dtype") or isinstance(one, int) else two > one
        return int(below.argmax()) if below.any() else None
    count = len(two if isinstance(one, int) else one)
    pairs = zip(listed(one, count, None), listed(two, count, None), strict=True)
    return next((place for place, (first, second) in enumerate(pairs) if first < second), None)


def check_padding(real: Iterable[Row], padded: Iterable[Row]) -> None:
    """Refuse padded lengths on the host that are below the real lengths.

    Raises:
        LengthError: names the first item that is padded to less than its length.
    """
    for (_, name, _, ones), (_, _, _, twos) in zip(real, padded, strict=True):
        for one, two in zip(ones, twos, strict=True):
            place = None if one is two else first_below(two, one)
            if place is not None:
                raise LengthError(f"item {place} of '{name}' is padded to less than its length")


def entries_of(columns: Sequence[Any], axes: Sequence[str], count: int, mark: Any) -> Any:
    """Convert a stream's columns to the form that ``moments`` reads, without items where ``mark`` is 0.

    The result is a number of items for a stream without axes, a list or array of lengths for one axis, and rows of lengths, one
    per item, for several axes.
    """
    if axes and all(hasattr(column, "dtype") for column in columns):
        kept = columns if mark is None else [column[host_array(mark) != 0] for column in columns]
        import numpy

        return kept[0] if len(axes) == 1 else numpy.stack([numpy.asarray(column) for column in kept], -1)
    mine = [listed(column, count, mark) for column in columns]
    return len(mine[0]) if not axes else mine[0] if len(axes) == 1 else list(zip(*mine, strict=True))


def tokens(entries: Any, axes: Sequence[str]) -> int:
    """The number of tokens of a stream: the sum of its lengths, or of their products over several axes."""
    if not axes:
        return 0
    found = entries.tolist() if hasattr(entries, "tolist") else entries
    return sum(found) if len(axes) == 1 else sum(map(prod, found))
