"""Sums moments of lengths on a device: batches are kept, and summed together when a step is read.

Nothing here synchronises with the device: no value is read, and no mask selects elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from symflops.training.meter.layout import Layout, Vector, with_rows

HALF = 32
LOW = 2**HALF - 1
MOST_KEPT = 2**17
"""Number of lengths kept at which they are summed."""


class Kept(NamedTuple):
    """One micro-batch that is not summed yet.

    Attributes:
        real: The real lengths: a column (tensor, or int if all are equal) for each axis of each stream.
        padded: The padded lengths in the same form; None if they equal the real ones.
        marks: Index set -> tensor that is 0 for items that are padding; None without such items.
        counts: Index set -> number of items.
    """

    real: tuple[Any, ...]
    padded: tuple[Any, ...] | None
    marks: Mapping[str, Any]
    counts: Mapping[str, int]


class DeviceSums:
    """Adds up lengths on a device, as an int64 tensor: (real or padded, row of the layout, 32-bit half)."""

    def __init__(self, layout: Layout, device: Any) -> None:
        self.layout, self.device = layout, device
        self._rows: dict[str, Any] = {}
        self.reset()

    def reset(self) -> None:
        """Clear all sums and kept batches to start a new step."""
        self.sums: Any = None
        self.host = ([0] * self.layout.width, [0] * self.layout.width)
        self.kept: dict[Any, list[Kept]] = {}
        self.elements = 0

    def add(self, batch: Kept, times: int) -> None:
        """Keep one micro-batch, which runs ``times`` times, until it is summed."""
        columns = (*batch.real, *(batch.padded or ()))
        form = (times, batch.padded is None, tuple(batch.marks.values()) == (None,) * len(batch.marks))
        ints = tuple(column if isinstance(column, int) else None for column in columns)
        marked = tuple(mark is None for mark in batch.marks.values())
        self.kept.setdefault((*form, ints, marked), []).append(batch)
        self.elements += sum(int(column.shape[0]) for column in columns if not isinstance(column, int))
        if self.elements > MOST_KEPT:
            self.fold()

    def fold(self) -> None:
        """Add the kept micro-batches to the sums; those of the same structure are concatenated first."""
        for (times, *_), batches in self.kept.items():
            batch = batches[0] if len(batches) == 1 else joined_batches(batches)
            found = [self._vector(batch.real, batch.real, batch)]
            if batch.padded is not None:
                found.append(self._vector(batch.padded, batch.real, batch))
                if self.layout.always:
                    found[0] = with_rows(found[0], found[1], self.layout.always, self._places)
            for side, (host, sums) in enumerate((*found, *found)[:2]):
                for position, value in enumerate(host):
                    self.host[side][position] += value * times
                self._carry(side, sums if times == 1 else sums * times)
        self.kept, self.elements = {}, 0

    def _vector(self, columns: Sequence[Any], real: Sequence[Any], batch: Kept) -> Vector:
        """Compute the sums of a batch's ``columns``, its real or padded lengths: (ints on the host, tensor).

        A row that is the same number for all items is in the first part, any other row in the second. ``real`` are the real
        lengths.
        """
        import torch

        host, device = [0] * self.layout.width, self.device
        sums = torch.zeros((self.layout.width, 2), dtype=torch.int64, device=device)
        for items, values in self.layout.rows(columns, real).items():
            mark, count = batch.marks.get(items), batch.counts.get(items, 1)
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
        """Return rows of the layout as an index tensor, which is cached."""
        import torch

        key = f"{items}{positions}{device}"
        if key not in self._rows:
            self._rows[key] = torch.tensor(positions, device=device)
        return self._rows[key]

    def _carry(self, side: int, sums: Any) -> None:
        """Add sums to those of real (``side`` 0) or padded lengths (1); carry from the low to the high half."""
        import torch

        if self.sums is None:
            self.sums = torch.zeros((2, *sums.shape), dtype=torch.int64, device=sums.device)
        mine = self.sums[side]
        mine += sums
        mine[:, 1] += mine[:, 0] >> HALF
        mine[:, 0] &= LOW

    def absorb(self, sums: Any) -> None:
        """Add ``sums``, the tensor of another accumulator, for real and padded lengths."""
        for side in (0, 1):
            self._carry(side, sums[side])


def joined_batches(batches: Sequence[Kept]) -> Kept:
    """Concatenate micro-batches of the same structure; int columns stay ints."""
    import torch

    def joined(columns: Sequence[Any]) -> Any:
        return columns[0] if columns[0] is None or isinstance(columns[0], int) else torch.cat(list(columns))

    real = tuple(map(joined, zip(*(batch.real for batch in batches), strict=True)))
    padded = tuple(map(joined, zip(*(batch.padded or () for batch in batches), strict=True)))
    marks = {items: joined([batch.marks[items] for batch in batches]) for items in batches[0].marks}
    counts = {items: sum(batch.counts[items] for batch in batches) for items in batches[0].counts}
    return Kept(real, padded or None, marks, counts)
