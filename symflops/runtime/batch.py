"""Reads a batch: checks its lengths against the streams of a program."""

from __future__ import annotations

from itertools import chain, repeat

from symflops.diagnostics.errors import SymflopsError, did_you_mean
from symflops.runtime.config import as_whole
from symflops.runtime.module_batch import ALONE, MOST_COUNTED
from symflops.runtime.sizes import is_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from symflops.model.program import Program
    from symflops.model.sums import StreamInfo
    from symflops.runtime.stored import Stored, Stream

    Item = dict[str, int]
    Row = tuple[int, ...]

LONGEST = 10**12 - 1


class BatchError(SymflopsError):
    """A batch does not fit the model."""


class FormError(BatchError):
    """A batch is not of the form that the streams of the model have; an example helps."""


def listed(given: Any) -> Any:
    """Arrays, tensors and other sequences as lists."""
    if isinstance(given, dict):
        return {side: listed(values) for side, values in given.items()}
    return given.tolist() if hasattr(given, "tolist") else list(given) if isinstance(given, range) else given


def items_of(program: Program | Stored, batch: Mapping[str, Any], side: str = "lengths") -> dict[str, list[Item]]:
    """The batch variables of each item, per index set.

    Args:
        program: the program whose streams the batch gives.
        batch: per stream a list with one entry per item, or a dict of such lists under ``lengths`` and ``padded``.
        side: ``lengths`` (real) or ``padded``.

    Raises:
        FormError: an unknown or missing stream, a length that is no whole number, or streams with different numbers of items.
    """
    found = rows_of(program, batch, side).items()
    return {items: [dict(zip(axes, row, strict=True)) for row in rows] for items, (axes, rows) in found}


def rows_of(program: Program | Stored, batch: Mapping[str, Any], side: str) -> dict[str, tuple[tuple[str, ...], Iterator[Row]]]:
    """The batch variables of each index set, and their values, item by item."""
    streams = {stream.name: stream for stream in program.streams if stream.given}
    unknown = [name for name in batch if name not in streams]
    if unknown:
        if any(stream.name == unknown[0] for stream in program.streams):
            raise FormError(f"the lengths of '{unknown[0]}' are those of other streams: leave it out")
        hint = did_you_mean(unknown[0], streams, f"this model has {', '.join(streams) or 'no streams'}")
        raise FormError(f"the model has no stream '{unknown[0]}': {hint}")
    sets = dict.fromkeys(stream.items for stream in streams.values())
    return {items: _joined([one for one in streams.values() if one.items == items], batch, side) for items in sets}


def _joined(
    streams: Sequence[StreamInfo | Stream], batch: Mapping[str, Any], side: str
) -> tuple[tuple[str, ...], Iterator[Row]]:
    counts: dict[str, int] = {}
    shared = dict(chain.from_iterable(map(_of_all, streams, repeat(batch))))
    columns: dict[str, Iterable[int]] = {}
    for stream in streams:
        if shared.keys() & set(stream.variables):
            continue
        if stream.name in batch:
            count, found = _columns(stream, batch[stream.name], side)
            columns.update(zip(stream.variables, found, strict=False))
            counts[stream.name] = count
        elif not stream.optional:
            raise FormError(f"the batch lacks the stream '{stream.name}'")
    if shared and not counts:
        name = next(stream.name for stream in streams if stream.variables[:1] == (next(iter(shared)),))
        raise FormError(f"'{name}' {ALONE}")
    if len(set(counts.values())) > 1:
        numbers = ", ".join(f"'{name}' has {count}" for name, count in counts.items())
        raise FormError(f"streams have different numbers of items: {numbers}")
    absent = {name: stream.absent for stream in streams if stream.name not in batch for name in stream.variables} | shared
    number = next(iter(counts.values()), 0)
    columns |= {name: repeat(value, number) for name, value in absent.items()}
    return tuple(columns), zip(*columns.values(), strict=True) if columns else repeat((), number)


def _of_all(stream: StreamInfo | Stream, batch: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The variable of a stream with a default of which a batch has one number, that of every item."""
    given = batch.get(stream.name)
    if stream.absent and len(stream.variables) == 1 and is_whole(given, LONGEST):
        yield stream.variables[0], given


def _columns(stream: StreamInfo | Stream, given: Any, side: str) -> tuple[int, list[Sequence[int]]]:
    """The number of items, and their lengths by axis, from what a batch has under the name of a stream."""
    if isinstance(given, dict):
        if not {"lengths"} <= given.keys() <= {"lengths", "padded"}:
            raise FormError(f"'{stream.name}' must be a list, or have 'lengths' and 'padded', not {given!r:.80}")
        lengths = _columns(stream, _plain(given["lengths"], stream.name), side)
        padded = _columns(stream, _plain(given.get("padded", given["lengths"]), stream.name), side)
        _check_padded(stream.name, lengths, padded)
        return padded if side == "padded" else lengths
    if stream.counts:
        count = len(given) if isinstance(given, (list, tuple)) else given
        if not is_whole(count, MOST_COUNTED):
            most = f"at most {MOST_COUNTED:,}"
            raise FormError(f"'{stream.name}' must be the number of {stream.items}, {most}, not {given!r:.80}")
        return count, []
    if not isinstance(given, (list, tuple)):
        raise FormError(f"'{stream.name}' must be a list with one entry per item, {_wanted(stream)}, not {given!r:.80}")
    axes = len(stream.variables)
    columns: list[Sequence[Any]] = [given] if axes == 1 else _by_axis(given, axes)
    if columns and all(map(_are_lengths, columns)):
        return len(given), columns
    entries = [_item(stream, place, entry) for place, entry in enumerate(given)]
    return len(given), list(zip(*entries, strict=True)) or [()] * axes


def _by_axis(given: Sequence[Any], axes: int) -> list[Sequence[Any]]:
    """Entries of one length per axis as a column per axis; empty if one has another form."""
    alike = {list, tuple}.issuperset(map(type, given)) and {axes}.issuperset(map(len, given))
    return [[entry[place] for entry in given] for place in range(axes)] if alike else []


def _are_lengths(column: Sequence[Any]) -> bool:
    """Whether a column holds lengths alone."""
    return {int}.issuperset(map(type, column)) and min(column, default=0) >= 0 and max(column, default=0) <= LONGEST


def _item(stream: StreamInfo | Stream, place: int, entry: Any) -> list[int]:
    axes = stream.variables
    entry = entry.tolist() if hasattr(entry, "tolist") else entry
    values = entry if isinstance(entry, (list, tuple)) else [entry]
    values = [value.item() if hasattr(value, "item") else value for value in values]
    if len(values) != len(axes) or not all(is_whole(value, LONGEST) for value in values):
        most = f" of at most {LONGEST:,}" if any(isinstance(value, int) and value > LONGEST for value in values) else ""
        raise FormError(f"item {place} of '{stream.name}' must be {_wanted(stream)}{most}, not {entry!r:.80}{as_whole(entry)}")
    return values


def _wanted(stream: StreamInfo | Stream) -> str:
    axes = stream.variables
    return f"{len(axes)} whole numbers ({', '.join(axes)})" if len(axes) > 1 else "a whole number"


def _plain(given: Any, name: str) -> Any:
    if isinstance(given, dict):
        raise FormError(f"'lengths' and 'padded' of '{name}' must be lists, not {given!r:.80}")
    return given


def _check_padded(name: str, lengths: tuple[int, list[Sequence[int]]], padded: tuple[int, list[Sequence[int]]]) -> None:
    if padded[0] != lengths[0]:
        raise FormError(f"'{name}' has {lengths[0]} lengths and {padded[0]} padded ones")
    pairs = (zip(range(lengths[0]), one, two, strict=True) for one, two in zip(lengths[1], padded[1], strict=True))
    wrong = min((row for rows in pairs for row in rows if row[2] < row[1]), default=None)
    if wrong:
        raise FormError(f"item {wrong[0]} of '{name}' has length {wrong[1]}, and is padded to {wrong[2]}")
