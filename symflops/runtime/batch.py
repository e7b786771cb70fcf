"""Reads a batch: checks its lengths against the streams of a program, and sums them up as moments."""

from __future__ import annotations

from symflops.diagnostics.errors import SymflopsError, did_you_mean
from symflops.model.index_sets import ONCE
from symflops.runtime.sizes import is_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from symflops.model.program import Program, StreamInfo
    from symflops.runtime.stored import Stored, Stream

    Item = dict[str, int]

MAX_ITEMS = 1_000_000
LONGEST = 10**12 - 1


class BatchError(SymflopsError):
    """A batch does not fit the streams of the model."""


def items_of(program: Program | Stored, batch: Mapping[str, Any], side: str = "lengths") -> dict[str, list[Item]]:
    """The batch variables of each item, per index set.

    Args:
        program: the program whose streams the batch gives.
        batch: per stream a list with one entry per item, or a dict of such lists under ``lengths`` and ``padded``.
        side: ``lengths`` (real) or ``padded``.

    Raises:
        BatchError: an unknown or missing stream, a length that is no whole number, or streams with different numbers of items.
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
            columns.append(_entries(stream, batch[stream.name], side))
            counts[stream.name] = len(columns[-1])
        elif not stream.optional:
            raise BatchError(f"the batch lacks the stream '{stream.name}'")
    if len(set(counts.values())) > 1:
        numbers = ", ".join(f"'{name}' has {count}" for name, count in counts.items())
        raise BatchError(f"streams have different numbers of items: {numbers}")
    absent = {name: stream.absent for stream in streams if stream.name not in batch for name in stream.variables}
    for parts in zip(*columns, strict=True):
        item = dict(absent)
        for part in parts:
            item.update(part)
        yield item


def _entries(stream: StreamInfo | Stream, given: Any, side: str) -> list[Item]:
    """The batch variables of each item, from what a batch has under the name of a stream."""
    if isinstance(given, dict):
        given = _lengths_of_side(stream.name, given, side)
    if stream.counts:
        count = len(given) if isinstance(given, (list, tuple)) else given
        if not is_whole(count, MAX_ITEMS):
            raise BatchError(f"'{stream.name}' is the number of items, at most {MAX_ITEMS:,}, not {given!r}")
        return [{} for _ in range(count)]
    wanted = f"{len(stream.variables)} whole number(s) ({', '.join(stream.variables)})"
    if not isinstance(given, (list, tuple)):
        raise BatchError(f"'{stream.name}' is a list with one entry per item, {wanted} each, not {given!r}")
    items = []
    for entry in given:
        values = entry if isinstance(entry, (list, tuple)) else [entry]
        if len(values) != len(stream.variables) or not all(is_whole(value, LONGEST) for value in values):
            raise BatchError(f"an entry of '{stream.name}' is {wanted}, not {entry!r}")
        items.append(dict(zip(stream.variables, values, strict=True)))
    return items


def _lengths_of_side(name: str, given: dict[str, Any], side: str) -> Any:
    """The real or the padded lengths of a stream that has both."""
    if not {"lengths"} <= given.keys() <= {"lengths", "padded"}:
        raise BatchError(f"'{name}' is a list, or has 'lengths' and 'padded'")
    lengths, padded = given["lengths"], given.get("padded", given["lengths"])
    if not all(isinstance(each, (list, tuple)) for each in (padded, lengths)):
        raise BatchError(f"'lengths' and 'padded' of '{name}' are lists")
    if len(padded) != len(lengths):
        raise BatchError(f"'{name}' has {len(lengths)} lengths and {len(padded)} padded ones")
    return padded if side == "padded" else lengths


def moments_of(program: Stored, batch: Mapping[str, Any], sizes: Mapping[str, Any], side: str = "lengths") -> tuple[int, ...]:
    """The moments of a batch, in the order of the program.

    Raises:
        BatchError: as :func:`items_of`, or a division of the model leaves a remainder.
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
