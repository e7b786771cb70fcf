"""A batch as lengths: what a user writes, checked against the streams of a program."""

from __future__ import annotations

from symflops.diagnostics.errors import SymflopsError, did_you_mean
from symflops.model.index_sets import ONCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from symflops.model.program import Program, StreamInfo
    from symflops.runtime.stored import Stored, Stream

    Item = dict[str, int]

MAX_ITEMS = 1_000_000


class BatchError(SymflopsError):
    """A batch does not fit the streams of the model."""


def items_of(program: Program | Stored, batch: Mapping[str, Any], side: str = "lengths") -> dict[str, list[Item]]:
    """Per index set the batch variables of each item; ``side`` is ``lengths`` (real) or ``padded``.

    Raises:
        BatchError: an unknown or missing stream, a length that is no whole number, or streams of different counts.
    """
    streams = {stream.name: stream for stream in program.streams if stream.given}
    unknown = [name for name in batch if name not in streams]
    if unknown:
        hint = did_you_mean(unknown[0], streams, f"this model has {', '.join(streams) or 'no streams'}")
        raise BatchError(f"the model has no stream '{unknown[0]}': {hint}")
    found: dict[str, list[Item]] = {}
    for items in dict.fromkeys(stream.items for stream in streams.values()):
        members = [stream for stream in streams.values() if stream.items == items]
        found[items] = list(_joined(members, batch, side))
    return found


def _joined(streams: Sequence[StreamInfo | Stream], batch: Mapping[str, Any], side: str) -> Iterator[Item]:
    columns: list[list[Item]] = []
    counts: dict[str, int] = {}
    for stream in streams:
        if stream.name in batch:
            columns.append(list(_entries(stream, batch[stream.name], side)))
            counts[stream.name] = len(columns[-1])
        elif not stream.optional:
            raise BatchError(f"the batch lacks the stream '{stream.name}'")
    if len(set(counts.values())) > 1:
        told = ", ".join(f"'{name}' has {count}" for name, count in counts.items())
        raise BatchError(f"streams have different numbers of items: {told}")
    absent = {name: stream.absent for stream in streams if stream.name not in batch for name in stream.variables}
    for parts in zip(*columns, strict=True):
        item = dict(absent)
        for part in parts:
            item.update(part)
        yield item


def _entries(stream: StreamInfo | Stream, given: Any, side: str) -> Iterator[Item]:
    if isinstance(given, dict):
        if not {"lengths"} <= given.keys() <= {"lengths", "padded"}:
            raise BatchError(f"'{stream.name}' is a list, or has 'lengths' and 'padded'")
        padded = given["padded"] if "padded" in given else given["lengths"]
        if not all(isinstance(side, (list, tuple)) for side in (padded, given["lengths"])):
            raise BatchError(f"'lengths' and 'padded' of '{stream.name}' are lists")
        if len(padded) != len(given["lengths"]):
            raise BatchError(f"'{stream.name}' has {len(given['lengths'])} lengths and {len(padded)} padded ones")
        given = padded if side == "padded" else given["lengths"]
    if stream.counts:
        count = len(given) if isinstance(given, (list, tuple)) else given
        if not _whole(count) or count > MAX_ITEMS:
            raise BatchError(f"'{stream.name}' is the number of items, at most {MAX_ITEMS:,}, not {given!r}")
        yield from ({} for _ in range(count))
        return
    if not isinstance(given, (list, tuple)):
        axes = ", ".join(stream.variables)
        entry = f"{len(stream.variables)} whole number(s) ({axes})"
        raise BatchError(f"'{stream.name}' is a list with one entry per item, {entry} each, not {given!r}")
    for entry in given:
        values = entry if isinstance(entry, (list, tuple)) else [entry]
        if len(values) != len(stream.variables) or not all(_whole(value) for value in values):
            axes = ", ".join(stream.variables)
            raise BatchError(f"an entry of '{stream.name}' is {len(stream.variables)} whole number(s) ({axes}), not {entry!r}")
        yield dict(zip(stream.variables, values, strict=True))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12


def moments_of(program: Stored, batch: Mapping[str, Any], sizes: Mapping[str, Any], side: str = "lengths") -> tuple[int, ...]:
    """The moments of a batch, in the order of the program.

    Raises:
        BatchError: as :func:`items_of`, and where a length leaves a remainder that the model has no place for.
    """
    sets = items_of(program, batch, side)
    known, value = dict(sizes), program.formulas.settled
    for row in program.statistics:
        values = [value(row["formula"], {**known, **item}) for item in sets.get(row["items"], ())]
        known[row["name"]] = sum(values) if row["kind"] == "sum" else max(values, default=0)
    found = []
    for row in program.moments:
        if row["items"] == ONCE:
            found.append(value(row["formula"], known))
        else:
            counted = [value(row["formula"], {**known, **item}) for item in sets.get(row["items"], ())]
            if not all(isinstance(one, int) for one in counted):
                raise BatchError("a length of the batch does not divide as the model divides it")
            found.append(sum(counted))
    return tuple(found)
