"""Sums of moments over micro-batches: on the host as ints, on a device as one vector of int64.

Adding never waits for a device: it reads no value and selects by no mask. A step costs one ``all_reduce`` of the vector over
the data-parallel group and one read. Each sum has two halves of 32 bits, so that no number of tokens overflows it. A length
whose own terms would overflow is counted as a fault, which the read reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import add
from typing import Any

from symflops.meter.columns import Row, Vector, check_padding, clipped, listed, nothing, sets_of_rests, tokens, with_rows
from symflops.meter.processes import distributed_of, reduced
from symflops.meter.types import Sums
from symflops.model.index_sets import SAMPLES
from symflops.runtime.bounds import safe_bits
from symflops.runtime.least import example_of
from symflops.runtime.lengths import LengthError, Lengths, of_any
from symflops.runtime.protocol import Estimator

HALF = 32
LOW = 2**HALF - 1


class Accumulator:
    """Sums of moments over the micro-batches of a step, for one estimator.

    Lengths given as tensors are summed on ``device``, by default that of the first tensor. If a model has moments of a batch as
    a whole (``whole``), each micro-batch's lengths are needed on the host, so lengths on a device are waited for.
    """

    def __init__(self, estimator: Estimator, device: Any = None) -> None:
        self.sets = {items: tuple(streams) for items, streams in estimator.sets.items()}
        self.terms = estimator.terms
        self.rests = estimator.rests
        self.inner_lengths = getattr(estimator, "inner_lengths", nothing)  # a vendored module may be older
        self.implied: tuple[str, ...] = tuple(getattr(estimator, "implied", ()))
        self.example = partial(example_of, estimator)
        self.moments = estimator.moments
        self.moment_sets = tuple(estimator.moment_sets.values())
        always = getattr(estimator, "padded_sums", ())
        self.always = tuple(place for place, name in enumerate(estimator.moment_sets) if name in always)
        self.streams = tuple(name for streams in self.sets.values() for name, _, _ in streams)
        self.needed = tuple(name for name, optional in estimator.streams.items() if not optional)
        self.axes = tuple(len(axes) for streams in self.sets.values() for _, axes, _ in streams)
        self.whole = estimator.whole
        self.bits = 0 if self.whole else safe_bits(self.terms, self.axes)
        self.width = len(self.moment_sets) + len(self.streams) + 1
        self.device = device
        self._rows: dict[str, Any] = {}
        self._divided: tuple[str, ...] | None = None
        self.reset()

    def reset(self) -> None:
        """Start a step."""
        self._host = ([0] * self.width, [0] * self.width)
        self._sums: Any = None

    def alone(self, name: str) -> bool:
        """Whether a stream alone has the items of its index set, so that a batch may have none of them."""
        return any(len(members) == 1 and members[0][0] == name for items, members in self.sets.items() if items != SAMPLES)

    def spoil(self) -> None:
        """Count a fault: a batch that could not be read, so that the sums of this step are incomplete."""
        self._host[0][-1] += 1

    def add(self, times: int = 1, **streams: Any) -> None:
        """Add one micro-batch.

        Args:
            times: How often it runs.
            streams: The lengths of each stream: ``Lengths``, or anything that the estimator's ``moments`` takes.

        Raises:
            LengthError: an unknown or missing stream, or streams of one index set with different numbers of items.
            ValueError: lengths on the host that are negative, or that do not divide as the model divides them.
        """
        batch = self._batch(streams)
        sides = (False, True) if any(entry.padded is not None for entry in batch.values()) else (False,)
        found = [self._measured(batch, side) for side in sides]
        if len(found) > 1 and self.always:
            found[0] = with_rows(found[0], found[1], self.always, self._places)
        for side, (host, device) in enumerate((*found, *found)[:2]):
            for position, value in enumerate(host):
                self._host[side][position] += value * times
            if device is not None:
                self._add_on_device(side, device if times == 1 else device * times)

    def _batch(self, streams: Mapping[str, Any]) -> dict[str, Lengths]:
        try:
            self._check_names(streams)
            return self._lengths(streams)
        except LengthError as error:
            example = self.example()
            raise LengthError(f"{error}; e.g. {example}" if example else str(error)) from None

    def _lengths(self, streams: Mapping[str, Any]) -> dict[str, Lengths]:
        found: dict[str, Lengths] = {}
        for members in self.sets.values():
            given = {name: of_any(streams[name], axes, name) for name, axes, _ in members if streams.get(name) is not None}
            counts = {name: entry.count for name, entry in given.items()}
            if len(set(counts.values())) > 1:
                listed = ", ".join(f"'{name}' has {count}" for name, count in counts.items())
                raise LengthError(f"streams have different numbers of items: {listed}")
            count = max(counts.values(), default=0)
            for name, axes, absent in members:
                found[name] = given.get(name) or Lengths((absent,) * (len(axes) or 1), count)
        return found

    def _check_names(self, streams: Mapping[str, Any]) -> None:
        unknown = [name for name in streams if name not in self.streams]
        if unknown:
            raise LengthError(f"the model has no stream '{unknown[0]}'; it has {', '.join(self.streams)}")
        missing = [name for name in self.needed if streams.get(name) is None]
        if missing:
            raise LengthError(f"the batch lacks the stream '{missing[0]}'")

    def _measured(self, batch: Mapping[str, Lengths], padded: bool) -> Vector:
        """The vector of one batch."""
        columns: list[Any] = []
        real: list[Any] = []
        marks: dict[str, Any] = {}
        counts: dict[str, int] = {}
        for items, members in self.sets.items():
            marks[items] = next((batch[name].real for name, _, _ in members if batch[name].real is not None), None)
            counts[items] = batch[members[0][0]].count if members else 0
            for name, _, _ in members:
                entry = batch[name]
                real += entry.axes
                columns += entry.padded if padded and entry.padded is not None else entry.axes
        every = (*columns, *real)
        like = next((column for column in every if hasattr(column, "device") and hasattr(column, "unsqueeze")), None)
        if like is None or self.whole:
            check_padding(self._by_stream(real), self._by_stream(columns))
            return self._on_host(columns, marks, counts), None
        self.device = like.device if self.device is None else self.device
        moved = [self._tensor(column, self.device) for column in columns]
        below = [self._tensor(column, self.device) for column in real] if padded else moved
        return self._on_device(moved, below, marks, counts)

    def _by_stream(self, columns: Sequence[Any]) -> Iterator[Row]:
        """Each stream: its index set, its name, its axes and its columns."""
        first = 0
        for items, members in self.sets.items():
            for name, axes, _ in members:
                yield items, name, axes, columns[first : first + (len(axes) or 1)]
                first += len(axes) or 1

    def _values(self, columns: Sequence[Any], real: Sequence[Any]) -> dict[str, list[tuple[int, Any]]]:
        """For each index set the rows of the vector: their positions, and the column that each row sums."""
        found: dict[str, list[tuple[int, Any]]] = {items: [] for items in self.sets}
        for position, (term, items) in enumerate(zip(self.terms(*columns), self.moment_sets, strict=True)):
            found.setdefault(items, []).append((position, term))
        faults = dict.fromkeys(self.sets, 0)
        for items, left in self.inner_lengths(*columns):
            faults[items] = faults[items] + (left < 1) * 1
        for (items, _, _, mine), (_, _, _, least) in zip(self._by_stream(columns), self._by_stream(real), strict=True):
            for column, length in zip(mine, least, strict=True):
                if column is not length:
                    faults[items] = faults[items] + (column < length) * 1
        for position, (items, _, axes, mine) in enumerate(self._by_stream(columns), len(self.moment_sets)):
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

    def _on_host(self, columns: Sequence[Any], marks: Mapping[str, Any], counts: Mapping[str, int]) -> list[int]:
        """The vector of lists, arrays and ints; exact for any size."""
        if not self.whole and all(counts.values()) and all(isinstance(column, int) and column >= 0 for column in columns):
            return self._of_equal_items(columns, counts)
        batch: dict[str, Any] = {}
        for items, name, axes, given in self._by_stream(columns):
            if len(axes) == 1 and marks[items] is None and hasattr(given[0], "dtype"):
                batch[name] = given[0]
                continue
            mine = [listed(column, counts[items], marks[items]) for column in given]
            batch[name] = len(mine[0]) if not axes else mine[0] if len(axes) == 1 else list(zip(*mine, strict=True))
        summed = self.moments(**batch).as_dict()
        return [*summed.values(), *tokens(self._by_stream(columns), counts, marks), 0]

    def _of_equal_items(self, columns: Sequence[int], counts: Mapping[str, int]) -> list[int]:
        """The vector of streams whose items all have the same lengths: the terms of one item, times their number."""
        if any(left < 1 for _, left in self.inner_lengths(*columns)):
            self.moments(**self._one_item(columns))  # says which length is too short
        if any(self.rests(*columns)):
            raise LengthError("a length of the batch does not divide as the model divides it")
        terms = zip(self.terms(*columns), self.moment_sets, strict=True)
        return [*(int(term) * counts.get(items, 1) for term, items in terms), *tokens(self._by_stream(columns), counts, {}), 0]

    def _one_item(self, columns: Sequence[int]) -> dict[str, Any]:
        """A batch of one item per index set."""
        return {name: [mine] if len(axes) > 1 else mine[:1] if axes else 1 for _, name, axes, mine in self._by_stream(columns)}

    def _on_device(
        self, columns: Sequence[Any], real: Sequence[Any], marks: Mapping[str, Any], counts: Mapping[str, int]
    ) -> tuple[list[int], Any]:
        """The vector of tensors: integer rows stay on the host, the others are stacked and summed once per index set."""
        import torch

        host, device = [0] * self.width, self.device
        sums = torch.zeros((self.width, 2), dtype=torch.int64, device=device)
        for items, values in self._values(columns, real).items():
            mark = self._tensor(marks.get(items), device)
            count = counts.get(items, 1)
            rows = []
            for position, value in values:
                if isinstance(value, int) and mark is None:
                    host[position] += value * count
                else:
                    whole_row = value if hasattr(value, "unsqueeze") else mark * value
                    rows.append((position, whole_row if mark is None else whole_row * mark))
            if rows and rows[0][1].shape[0]:
                stacked = torch.stack([row.long() for _, row in rows])
                halves = torch.stack(((stacked & LOW).sum(-1), (stacked >> HALF).sum(-1)), -1)
                sums.index_add_(0, self._places(items, tuple(position for position, _ in rows), device), halves)
        return host, sums

    def _places(self, items: str, positions: tuple[int, ...], device: Any) -> Any:
        """Positions in the vector as a tensor, cached."""
        import torch

        key = f"{items}{positions}{device}"
        if key not in self._rows:
            self._rows[key] = torch.tensor(positions, device=device)
        return self._rows[key]

    def _tensor(self, column: Any, device: Any) -> Any:
        if column is None or isinstance(column, int):
            return column
        import torch

        return (column if hasattr(column, "unsqueeze") else torch.as_tensor(column, dtype=torch.int64)).to(device)

    def _add_on_device(self, side: int, sums: Any) -> None:
        """Add halves and move the carry of the low half to the high one, so that neither can overflow."""
        import torch

        if self._sums is None:
            self._sums = torch.zeros((2, *sums.shape), dtype=torch.int64, device=sums.device)
        mine = self._sums[side]
        mine += sums
        mine[:, 1] += mine[:, 0] >> HALF
        mine[:, 0] &= LOW

    def vector(self) -> Any:
        """The sums of this step so far as one tensor of int64: (real and padded, rows, low and high half)."""
        import torch

        rows = [[(value & LOW, value >> HALF) for value in side] for side in self._host]
        host = torch.tensor(rows, dtype=torch.int64, device=self.device)
        return host if self._sums is None else host + self._sums

    def read(self, group: Any = None, reduce: bool = True) -> Sums:
        """Sum over the data-parallel ``group`` (all processes by default), read once, and start the next step.

        Every process of the group must call it, even without micro-batches, with an estimator of the same model. Without
        torch.distributed, or with ``reduce=False``, the sums are those of this process.
        """
        distributed = distributed_of() if reduce else None
        if distributed is None and self._sums is None:
            found = [number for side in self._host for value in side for number in (value & LOW, value >> HALF)]
        else:
            vector = self.vector() if distributed is None else reduced(distributed, self.vector(), group)
            found = vector.flatten().tolist()
        self.reset()
        return self.decoded(found)

    def decoded(self, numbers: Sequence[int]) -> Sums:
        """The sums in the numbers of a vector."""
        whole = [low + (high << HALF) for low, high in zip(numbers[::2], numbers[1::2], strict=True)]
        real, padded = whole[: self.width], whole[self.width :]
        moments = len(self.moment_sets)
        return Sums(tuple(real[:moments]), tuple(padded[:moments]), tuple(real[moments:-1]), real[-1] + padded[-1])

    def absorb(self, other: Accumulator) -> None:
        """Take over the sums of another accumulator of the same estimator, which starts anew."""
        for mine, theirs in zip(self._host, other._host, strict=True):
            mine[:] = map(add, mine, theirs)
        for side in (0, 1) if other._sums is not None else ():
            self._add_on_device(side, other._sums[side])
        other.reset()
