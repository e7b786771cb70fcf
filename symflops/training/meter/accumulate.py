"""Sums moments over micro-batches and processes: on the host as ints, on a device as one int64 vector.

Adding never synchronises with a device: it reads no value and selects by no mask. Lengths on a device are kept and summed when
a step is read, at the cost of one ``all_reduce`` over the data-parallel group and one read. Each sum has two halves of 32 bits,
so no number of tokens overflows it. A length whose own terms would overflow counts as a fault, which the read reports.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod
from operator import add
from typing import Any

from symflops.evaluate.boundaries import LengthError, host_array
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.lengths import Lengths, of_any
from symflops.evaluate.typical import example_of
from symflops.support.errors import SymflopsError
from symflops.training.meter.layout import REST, Layout, check_padding, entries_of, tokens
from symflops.training.meter.on_device import HALF, LOW, DeviceSums, Kept
from symflops.training.meter.types import Sums

PLAIN = (list, tuple, int)


class Accumulator:
    """Adds up the moments of a step's micro-batches, for one estimator.

    Lengths on the host, including CPU tensors, are summed at once. Tensors on another device are summed on ``device``, by
    default that of the first such tensor; they must not change until the step is read. If a model has moments of a batch as a
    whole (``whole``), each micro-batch's lengths are copied to the host, which synchronises with the device.
    """

    def __init__(self, estimator: InterpretedEstimator, device: Any = None) -> None:
        self.layout = Layout(estimator)
        self.implied: tuple[str, ...] = tuple(getattr(estimator, "implied", ()))
        self.example = partial(example_of, estimator)
        self.moments = estimator.moments
        self.needed = tuple(name for name, optional in estimator.streams.items() if not optional)
        self.whole = estimator.whole
        self.device = device
        self._device = DeviceSums(self.layout, device)
        self.reset()

    def reset(self) -> None:
        """Clear all sums to start a new step."""
        self._host = ([0] * self.layout.width, [0] * self.layout.width)
        self._device.reset()

    def spoil(self) -> None:
        """Record a fault: a batch could not be read, so the sums of this step are incomplete."""
        self._host[0][-1] += 1

    def add_known(self, model: int, executed: int, tokens: int) -> None:
        """Add FLOPs that are known already, those of the model and those executed, and their tokens."""
        for side, flops in enumerate((model, executed)):
            self._host[side][-3] += flops
        self._host[0][-2] += tokens

    def add(self, times: int = 1, **streams: Any) -> None:
        """Add one micro-batch.

        Args:
            times: How often the micro-batch runs.
            streams: The lengths of each stream: ``Lengths``, or anything that the estimator's ``moments`` takes.

        Raises:
            LengthError: an unknown or missing stream, or streams of one index set with different numbers of items.
            ValueError: lengths on the host are negative, or not divisible as the model requires.
        """
        plain = self._plain(streams)
        found = [plain] if plain is not None else self._sides(self._batch(streams), times)
        for side, vector in enumerate((*found, *found)[:2]):
            mine = self._host[side]
            for position, value in enumerate(vector):
                mine[position] += value * times

    def _plain(self, streams: Mapping[str, Any]) -> list[int] | None:
        """Fast path of :meth:`add`: the sums of a batch of lists and arrays; None for other input, on errors."""
        if self.whole or len(streams) != len(self.layout.streams):
            return None
        batch = {name: given if type(given) in PLAIN else host_array(given) for name, given in streams.items()}
        if not all(type(given) in PLAIN or type(given).__name__ == "ndarray" for given in batch.values()):
            return None
        try:
            return self._summed(batch)
        except (ValueError, TypeError, SymflopsError):
            return None

    def _summed(self, batch: Mapping[str, Any], padded: Mapping[str, Any] | None = None) -> list[int]:
        """The sums of one batch on the host: moments, tokens of each stream, and zeros."""
        lists = [name for name, given in batch.items() if padded and not isinstance(given, int)]
        sides = {name: {"lengths": batch[name], "padded": (padded or {})[name]} for name in lists}
        found = list(self.moments(**{**batch, **sides}).as_dict().values())
        for name, axes, row in self.layout.tokens:
            found.append(tokens(batch[name], axes) if row is None else found[row])
        return [*found, *REST]

    def _batch(self, streams: Mapping[str, Any]) -> dict[str, Lengths]:
        try:
            return self._lengths(streams)
        except LengthError as error:
            example = self.example()
            raise LengthError(f"{error}; e.g. {example}" if example else str(error)) from None

    def _lengths(self, streams: Mapping[str, Any]) -> dict[str, Lengths]:
        unknown = [name for name in streams if name not in self.layout.streams]
        if unknown:
            raise LengthError(f"the model has no stream '{unknown[0]}'; it has {', '.join(self.layout.streams)}")
        missing = [name for name in self.needed if streams.get(name) is None]
        if missing:
            raise LengthError(f"the batch lacks the stream '{missing[0]}'")
        found: dict[str, Lengths] = {}
        for members in self.layout.sets.values():
            given = {name: of_any(streams[name], axes, name) for name, axes, _ in members if streams.get(name) is not None}
            counts = {name: entry.count for name, entry in given.items()}
            if len(set(counts.values())) > 1:
                listed = ", ".join(f"'{name}' has {count}" for name, count in counts.items())
                raise LengthError(f"streams have different numbers of items: {listed}")
            count = max(counts.values(), default=0)
            for name, axes, absent in members:
                found[name] = given.get(name) or Lengths((absent,) * (len(axes) or 1), count)
        return found

    def _sides(self, batch: Mapping[str, Lengths], times: int) -> list[list[int]]:
        """Compute the vectors of a batch: [that of real lengths, that of padded lengths if they differ].

        A batch on a device is kept to be summed later, ``times`` times; its sums are 0 here.
        """
        marks: dict[str, Any] = {}
        counts: dict[str, int] = {}
        real: list[Any] = []
        padded: list[Any] = []
        for items, members in self.layout.sets.items():
            marks[items] = next((batch[name].real for name, _, _ in members if batch[name].real is not None), None)
            counts[items] = batch[members[0][0]].count if members else 0
            for name, _, _ in members:
                real += batch[name].axes
                padded += batch[name].padded or batch[name].axes
        differ = any(one is not two for one, two in zip(real, padded, strict=True))
        if not self.whole:
            real, padded = [host_array(column) for column in real], [host_array(column) for column in padded]
            like = next((column for column in (*padded, *real) if hasattr(column, "unsqueeze")), None)
            if like is not None:
                self._keep(Kept(tuple(real), tuple(padded) if differ else None, marks, counts), like.device, times)
                return [[0] * self.layout.width]
        check_padding(self.layout.by_stream(real), self.layout.by_stream(padded))
        found = [self._on_host(columns, padded, marks, counts) for columns in ((real, padded) if differ else (real,))]
        for row in self.layout.always if differ else ():
            found[0][row] = found[1][row]
        return found

    def _keep(self, batch: Kept, device: Any, times: int) -> None:
        """Move the lengths of a batch to the device, to be summed there later, ``times`` times."""
        if self.device is None:
            self.device = self._device.device = device
        real, padded = (None if one is None else tuple(map(self._tensor, one)) for one in (batch.real, batch.padded))
        marks = {items: self._tensor(mark) for items, mark in batch.marks.items()}
        self._device.add(Kept(real or (), padded, marks, batch.counts), times)

    def _tensor(self, column: Any) -> Any:
        if column is None or isinstance(column, int):
            return column
        import torch

        return (column if hasattr(column, "unsqueeze") else torch.as_tensor(column, dtype=torch.int64)).to(self.device)

    def _on_host(
        self, columns: Sequence[Any], padded: Sequence[Any], marks: Mapping[str, Any], counts: Mapping[str, int]
    ) -> list[int]:
        """Compute the sums of a batch on the host, exactly for numbers of any size.

        Args:
            columns: The lengths to sum, one entry per axis of each stream: numbers for all items, or a single int.
            padded: The padded lengths in the same form; used only if an item has length 0.
            marks: Index set -> mask of its items, 0 for padding; or None.
            counts: Index set -> number of items.
        """
        if not self.whole and all(counts.values()) and all(isinstance(column, int) and column >= 0 for column in columns):
            return self._of_equal_items(columns, counts)

        def entries(columns: Sequence[Any]) -> dict[str, Any]:
            rows = self.layout.by_stream(columns)
            return {name: entries_of(mine, axes, counts[items], marks[items]) for items, name, axes, mine in rows}

        empty = not all(isinstance(column, int) or any(column) for column in columns)
        return self._summed(entries(columns), entries(padded) if empty else None)

    def _of_equal_items(self, columns: Sequence[int], counts: Mapping[str, int]) -> list[int]:
        """Compute the sums of a batch with equal lengths in each stream: those of one item, times the count."""
        layout = self.layout
        if any(left < 1 for _, left in layout.inner_lengths(*columns)):
            one = {name: entries_of(mine, axes, 1, None) for _, name, axes, mine in layout.by_stream(columns)}
            self.moments(**one)  # raises, naming the length that is too short
        if any(layout.rests(*columns)):
            raise LengthError("a length of the batch does not divide as the model divides it")
        terms = zip(layout.terms(*columns), layout.moment_sets, strict=True)
        sizes = [prod(mine) * counts[items] if axes else 0 for items, _, axes, mine in layout.by_stream(columns)]
        return [*(int(term) * counts.get(items, 1) for term, items in terms), *sizes, *REST]

    def vector(self) -> Any:
        """The sums of this step so far as an int64 tensor: (real or padded, row, low or high 32 bits)."""
        import torch

        self._fold()
        rows = [[(value & LOW, value >> HALF) for value in side] for side in self._host]
        host = torch.tensor(rows, dtype=torch.int64, device=self.device)
        return host if self._device.sums is None else host + self._device.sums

    def _fold(self) -> None:
        """Compute the sums of all lengths kept so far; those of plain numbers are added to the host sums."""
        device = self._device
        device.fold()
        for mine, theirs in zip(self._host, device.host, strict=True):
            mine[:] = map(add, mine, theirs)
            theirs[:] = [0] * len(theirs)

    def read(self, group: Any = None, reduce: bool = True) -> Sums:
        """Return the sums over the data-parallel ``group`` (default: all processes), and start the next step.

        Every process of the group must call this, even without micro-batches, with an estimator of the same model. Without
        torch.distributed, or with ``reduce=False``, the sums are those of this process.
        """
        distributed = distributed_of() if reduce else None
        self._fold()
        if distributed is None and self._device.sums is None:
            found = [number for side in self._host for value in side for number in (value & LOW, value >> HALF)]
        else:
            vector = self.vector() if distributed is None else reduced(distributed, self.vector(), group)
            found = vector.flatten().tolist()
        self.reset()
        return self.decoded(iter(found))

    def decoded(self, numbers: Iterator[int]) -> Sums:
        """Convert the next ``numbers`` to sums; they begin with those of a flattened :meth:`vector`."""
        whole = [next(numbers) + (next(numbers) << HALF) for _ in range(2 * self.layout.width)]
        real, padded = whole[: self.layout.width], whole[self.layout.width :]
        moments = len(self.layout.moment_sets)
        known = real[-3], padded[-3], real[-2]
        return Sums(tuple(real[:moments]), tuple(padded[:moments]), tuple(real[moments:-3]), real[-1] + padded[-1], known)

    def absorb(self, other: Accumulator) -> None:
        """Add the sums of ``other``, an accumulator of the same estimator, and reset ``other``."""
        other._fold()
        for mine, theirs in zip(self._host, other._host, strict=True):
            mine[:] = map(add, mine, theirs)
        if other._device.sums is not None:
            self._device.absorb(other._device.sums)
        other.reset()


def world_size() -> int:
    """The number of processes of the job: of torch.distributed, else as the launcher says, else 1."""
    distributed = distributed_of()
    return int(distributed.get_world_size()) if distributed else int(os.environ.get("WORLD_SIZE", "1") or 1)


def distributed_of() -> Any:
    """torch.distributed if this process has initialised it, else None."""
    distributed: Any = getattr(sys.modules.get("torch"), "distributed", None)
    return distributed if distributed is not None and distributed.is_available() and distributed.is_initialized() else None


def is_zero() -> bool:
    """Whether this process has rank 0, or runs alone."""
    distributed = distributed_of()
    return os.environ.get("RANK", "0") == "0" if distributed is None else int(distributed.get_rank()) == 0


def reduced(distributed: Any, vector: Any, group: Any) -> Any:
    """Sum ``vector`` over a group by ``all_reduce``; the result is on a device of the group's backend."""
    if distributed.get_world_size(group) == 1:
        return vector
    supported = str(distributed.get_backend_config(group))  # "cuda:nccl", "cpu:gloo,cuda:nccl"
    if f"{vector.device.type}:" not in supported:
        import torch

        known = getattr(torch, "accelerator", None)  # since torch 2.6
        accelerator = known.current_accelerator() if known is not None else torch.device("cuda")
        vector = vector.to("cpu" if "cpu:" in supported or accelerator is None else accelerator)
    distributed.all_reduce(vector, group=group)
    return vector
