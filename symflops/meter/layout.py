"""What a model's lengths are summed into: index sets, streams, columns, and the rows of the vector of sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from symflops.meter.columns import Row, clipped, nothing, sets_of_rests
from symflops.model.index_sets import SAMPLES
from symflops.runtime.bounds import safe_bits
from symflops.runtime.protocol import Estimator


class Layout:
    """The rows of a vector of sums, for one estimator: its moments, the tokens of each stream, and the number of faults.

    ``always`` are the rows of moments that are of padded lengths in any case. ``tokens`` are the streams, their axes and
    the row that is the sum of their lengths, None if no moment is. No value leaves 64 bits where a length has at most ``bits``.
    """

    def __init__(self, estimator: Estimator) -> None:
        self.sets = {items: tuple(streams) for items, streams in estimator.sets.items()}
        self.terms = estimator.terms
        self.rests = estimator.rests
        self.inner_lengths = getattr(estimator, "inner_lengths", nothing)  # a vendored module may be older
        self.moment_sets = tuple(estimator.moment_sets.values())
        always = getattr(estimator, "padded_sums", ())
        self.always = tuple(place for place, name in enumerate(estimator.moment_sets) if name in always)
        self.streams = tuple(name for streams in self.sets.values() for name, _, _ in streams)
        self.axes = tuple(len(axes) for streams in self.sets.values() for _, axes, _ in streams)
        self.width = len(self.moment_sets) + len(self.streams) + 1
        self.bits = 0 if estimator.whole else safe_bits(self.terms, self.axes)
        sums = (None,) * len(self.axes) if estimator.whole else plain_sums(self.terms, self.axes)
        named = ((name, axes) for streams in self.sets.values() for name, axes, _ in streams)
        self.tokens = tuple((name, axes, row) for (name, axes), row in zip(named, sums, strict=True))
        self._divided: tuple[str, ...] | None = None

    def by_stream(self, columns: Sequence[Any]) -> Iterator[Row]:
        """Each stream: its index set, its name, its axes and its columns."""
        first = 0
        for items, members in self.sets.items():
            for name, axes, _ in members:
                yield items, name, axes, columns[first : first + (len(axes) or 1)]
                first += len(axes) or 1

    def rows(self, columns: Sequence[Any], real: Sequence[Any]) -> Mapping[str, list[tuple[int, Any]]]:
        """For each index set the rows of the vector: their positions, and the column that each row sums."""
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
        for items, rest in zip(self._sets_of_rests(), self.rests(*columns), strict=True):
            found.setdefault(items, []).append((self.width - 1, (rest != 0) * 1))
        return found

    def _sets_of_rests(self) -> tuple[str, ...]:
        """The index set of each remainder."""
        if self._divided is None:
            self._divided = sets_of_rests(self.rests, self.sets)
        return self._divided

    def alone(self, name: str) -> bool:
        """Whether a stream alone has the items of its index set, so that a batch may have none of them."""
        return any(len(members) == 1 and members[0][0] == name for items, members in self.sets.items() if items != SAMPLES)


def plain_sums(terms: Callable[..., Sequence[Any]], axes: Sequence[int]) -> tuple[int | None, ...]:
    """For each stream of one axis the place of the term that is its lengths themselves, else None."""
    columns = [[2**20 + 64 * place + axis for axis in range(count or 1)] for place, count in enumerate(axes)]
    found = terms(*(length for column in columns for length in column))
    places = {id(term): place for place, term in reversed(list(enumerate(found)))}
    return tuple(places.get(id(column[0])) if count == 1 else None for column, count in zip(columns, axes, strict=True))
