"""Reads a batch: checks its lengths against the streams of a program."""

from __future__ import annotations

import sys
from operator import is_

from symflops.evaluate.config import as_whole
from symflops.evaluate.sizes import is_whole
from symflops.support.errors import SymflopsError, did_you_mean, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from symflops.evaluate.stored import Stored, Stream
    from symflops.ir.batch import StreamInfo
    from symflops.ir.program import Program

    Item = dict[str, int]

LONGEST = 10**12 - 1
MOST_COUNTED = 1_000_000
"""The largest item count that a batch may give as a plain number."""
MANY = 100
"""The number of items from which a list is converted to an array."""
ALONE = "is one number for all items: another stream must say how many there are"


class BatchError(SymflopsError, ValueError):
    """A batch does not fit the model."""


class FormError(BatchError):
    """A batch does not have the form of the model's streams; messages add an example."""


def quoted(value: Any) -> str:
    """Write a wrong value for a message: as in Python, or its type if that would show an address."""
    text = f"{value!r:.80}"
    return kind_of(value) if " at 0x" in text else text


def merged(whole: Sequence[Any], batch: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge batches, each one mapping, with streams by name.

    Raises:
        FormError: one of them maps no names, or a stream is given twice.
    """
    for one in whole:
        if not hasattr(one, "items") or not all(isinstance(name, str) for name in one):
            raise FormError(f"a batch maps streams to lists with one entry per item, not {quoted(one)}")
        if twice := batch.keys() & one.keys():
            raise FormError(f"stream '{min(twice)}' is given twice")
        batch = {**one, **batch}
    return batch


def listed(given: Any) -> Any:
    """Convert arrays, tensors and ranges to lists."""
    if isinstance(given, dict):
        return {side: listed(values) for side, values in given.items()}
    return given.tolist() if hasattr(given, "tolist") else list(given) if isinstance(given, range) else given


def items_of(program: Program | Stored, batch: Mapping[str, Any], side: str = "lengths") -> dict[str, list[Item]]:
    """Map each index set to its items, each a dict from batch variable to length.

    Args:
        program: the program whose streams the batch gives.
        batch: per stream a list with one entry per item, or a dict of such lists under ``lengths`` and ``padded``.
        side: ``lengths`` (real) or ``padded``.

    Raises:
        FormError: as :func:`columns_of`.
    """
    found = columns_of(program, batch)
    names = [stream.variables for stream in ordered(program)]
    items: dict[str, list[Item]] = {name: [{} for _ in range(count)] for name, count in found.counts.items()}
    place = 0
    for stream, axes in zip(ordered(program), names, strict=True):
        for axis in axes:
            for item, length in zip(items[stream.items], listed(found.side(side)[place]), strict=True):
                item[axis] = length
            place += 1
        place += not axes
    return items


class Side(list["Any"]):
    """The columns of a batch, all of real or all of padded lengths; caches the maximum of each column."""

    __slots__ = ("known",)

    def __init__(self, columns: Iterable[Any] = ()) -> None:
        super().__init__(columns)
        self.known: dict[int, int] = {}

    def largest(self, place: int) -> int:
        """The largest length in the column at index ``place``; 0 if the column is empty.

        Raises:
            BatchError: a length is negative.
        """
        if place not in self.known:
            self.known[place] = largest_of(self[place])
        return self.known[place]


def largest_of(column: Any) -> int:
    """The largest length in a column; 0 if the column is empty.

    Raises:
        BatchError: a length is negative.
    """
    numpy: Any = sys.modules.get("numpy")
    if numpy is None or type(column) is not numpy.ndarray or not len(column) or column.dtype.kind not in "iu":
        return max(column, default=0)
    largest = int(numpy.maximum.reduce(column.view(numpy.uint64)))  # a negative length wraps to at least 2**63
    if largest >= 2**63 and column.dtype == numpy.int64:
        raise BatchError(f"a length is a whole number, not {int(column.min())}")
    return largest


class Columns:
    """The lengths of a batch: one column per axis of each stream, streams of an index set adjacent.

    A stream without axes has a column of zeros.

    Attributes:
        real: the columns of real lengths.
        padded: the columns of padded lengths; the same object as ``real`` if no stream has padded lengths.
        counts: index set -> number of items.
    """

    __slots__ = ("counts", "padded", "real")

    def __init__(self, real: Side, padded: Side, counts: dict[str, int]) -> None:
        self.real, self.padded, self.counts = real, padded, counts

    def side(self, name: str) -> Side:
        """The padded columns for ``"padded"``, else the real ones."""
        return self.padded if name == "padded" else self.real


def ordered(program: Program | Stored) -> list[Any]:
    """List the streams (``StreamInfo`` or ``Stream``) that a batch has entries for; those of one index set are adjacent."""
    streams = [stream for stream in program.streams if stream.given]
    return [stream for items in dict.fromkeys(one.items for one in streams) for stream in streams if stream.items == items]


def columns_of(program: Program | Stored, batch: Mapping[str, Any], longest: int = LONGEST) -> Columns:
    """Read the lengths of a batch as columns: lists, or integer arrays for arrays and tensors.

    Raises:
        FormError: an unknown or missing stream, a length that is no whole number, or streams with different numbers of items.
    """
    streams = ordered(program)
    names = [stream.name for stream in streams]
    unknown = [name for name in batch if name not in names]
    if unknown:
        if any(stream.name == unknown[0] for stream in program.streams):
            raise FormError(f"the lengths of '{unknown[0]}' are those of other streams: leave it out")
        given = "the regime 'full:head=given' takes it" if unknown[0] == "head" else ""
        hint = given or did_you_mean(unknown[0], names, f"this model has {', '.join(names) or 'no streams'}")
        raise FormError(f"the model has no stream '{unknown[0]}': {hint}")
    real, padded = Side(), Side()
    counts = {
        items: _joined([one for one in streams if one.items == items], batch, longest, real, padded)
        for items in dict.fromkeys(stream.items for stream in streams)
    }
    return Columns(real, real if all(map(is_, real, padded)) else padded, counts)


def _joined(
    streams: Sequence[StreamInfo | Stream], batch: Mapping[str, Any], longest: int, real: list[Any], padded: list[Any]
) -> int:
    """Append the columns of one index set to ``real`` and ``padded``, and return its number of items."""
    counts: dict[str, int] = {}
    found: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {}
    one_for_all = [stream.name for stream in streams if stream.absent and len(stream.variables) == 1]
    shared = {name: batch[name] for name in one_for_all if is_whole(batch.get(name), longest)}
    for stream in streams:
        given = batch.get(stream.name)
        if stream.name in shared:
            continue
        if given is not None or (stream.name in batch and not stream.optional):
            counts[stream.name], *sides = _sides(stream, given, longest)
            found[stream.name] = sides[0], sides[1]
        elif not stream.optional:
            raise FormError(f"the batch lacks the stream '{stream.name}'")
    if shared and not counts:
        raise FormError(f"'{next(iter(shared))}' {ALONE}")
    if len(set(counts.values())) > 1:
        numbers = ", ".join(f"'{name}' has {count}" for name, count in counts.items())
        raise FormError(f"streams have different numbers of items: {numbers}")
    count = next(iter(counts.values()), 0)
    for stream in streams:
        if stream.name in found and stream.variables:
            real += found[stream.name][0]
            padded += found[stream.name][1]
        else:
            absent = [shared.get(stream.name, stream.absent if stream.variables else 0)] * count
            columns = [absent] * (len(stream.variables) or 1)
            real += columns
            padded += columns
    return count


def _sides(stream: StreamInfo | Stream, given: Any, longest: int) -> tuple[int, list[Any], list[Any]]:
    """Read one stream of a batch: (number of items, columns of real lengths, columns of padded lengths), one per axis."""
    if not isinstance(given, dict):
        count, columns = _columns(stream, given, longest)
        return count, columns, columns
    if not {"lengths"} <= given.keys() <= {"lengths", "padded"}:
        raise FormError(f"'{stream.name}' must be a list, or have 'lengths' and 'padded', not {quoted(given)}")
    lengths = _columns(stream, _not_nested(given["lengths"], stream.name), longest)
    padded = _columns(stream, _not_nested(given.get("padded", given["lengths"]), stream.name), longest)
    _check_padded(stream.name, lengths, padded)
    return *lengths, padded[1]


def _columns(stream: StreamInfo | Stream, given: Any, longest: int) -> tuple[int, list[Any]]:
    """Read the real or the padded lengths of a stream: (number of items, list with one column per axis)."""
    axes = len(stream.variables)
    if axes and (hasattr(given, "detach") or type(given).__name__ == "ndarray") and len(getattr(given, "shape", ())) > 0:
        from symflops.evaluate.exact import columns_of_array

        try:
            return len(given), columns_of_array(stream.name, given, axes)
        except ValueError as error:
            raise FormError(str(error)) from None
    if axes == 1 and type(given) is list and len(given) >= MANY and type(given[0]) is int:
        found = numbers(given, longest)
        if found is not None:
            return len(given), [found]
    given = listed(given)
    if stream.counts:
        count = len(given) if isinstance(given, (list, tuple)) else given
        if not is_whole(count, MOST_COUNTED):
            most = f"at most {MOST_COUNTED:,}"
            raise FormError(f"'{stream.name}' must be the number of {stream.items}, {most}, not {quoted(given)}")
        return count, []
    if not isinstance(given, (list, tuple)):
        raise FormError(
            f"'{stream.name}' must be a list with one entry per item, {wanted(stream.variables)}, not {quoted(given)}"
        )
    columns: list[Any] = [given] if axes == 1 else _by_axis(given, axes)
    if columns and all(_are_lengths(column, longest) for column in columns):
        return len(given), columns
    entries = [_item(stream, place, entry, longest) for place, entry in enumerate(given)]
    return len(given), list(map(list, zip(*entries, strict=True))) or [[] for _ in range(axes)]


def numbers(lengths: list[Any], longest: int) -> Any:
    """Convert a long list of lengths to an array without a Python loop; None if an entry is invalid."""
    from array import array

    found: Any = None
    for code in "IQ":
        try:
            found = array(code, lengths)
            break
        except OverflowError:
            continue
        except TypeError:
            return None
    if found is None or (found.typecode == "Q" and max(found) > longest):
        return None
    numpy = sys.modules.get("numpy")
    return found if numpy is None else numpy.frombuffer(found, found.typecode).astype(numpy.int64)


def _by_axis(given: Sequence[Any], axes: int) -> list[Sequence[Any]]:
    """Transpose entries with one length per axis into columns; empty if an entry has another form."""
    alike = {list, tuple}.issuperset(map(type, given)) and {axes}.issuperset(map(len, given))
    return [[entry[place] for entry in given] for place in range(axes)] if alike else []


def _are_lengths(column: Sequence[Any], longest: int) -> bool:
    """Whether every entry of a column is an int from 0 to ``longest``."""
    return {int}.issuperset(map(type, column)) and min(column, default=0) >= 0 and max(column, default=0) <= longest


def _item(stream: StreamInfo | Stream, place: int, entry: Any, longest: int) -> list[int]:
    axes = stream.variables
    entry = entry.tolist() if hasattr(entry, "tolist") else entry
    values = entry if isinstance(entry, (list, tuple)) else [entry]
    values = [value.item() if hasattr(value, "item") else value for value in values]
    if len(values) != len(axes) or not all(is_whole(value, longest) for value in values):
        whole = [value for value in values if isinstance(value, int)]
        bound = f"most {longest:,}" if max(whole, default=0) > longest else "least 0" if min(whole, default=0) < 0 else ""
        limit = f" of at {bound}" if bound else ""
        raise FormError(
            f"item {place} of '{stream.name}' must be {wanted(stream.variables)}{limit}, not {quoted(entry)}{as_whole(entry)}"
        )
    return values


def wanted(axes: Sequence[str]) -> str:
    """Describe, for messages, what an item with these axes must be: a whole number, or several."""
    return f"{len(axes)} whole numbers ({', '.join(axes)})" if len(axes) > 1 else "a whole number"


def _not_nested(given: Any, name: str) -> Any:
    if isinstance(given, dict):
        raise FormError(f"'lengths' and 'padded' of '{name}' must be lists, not {quoted(given)}")
    return given


def _check_padded(name: str, lengths: tuple[int, list[Any]], padded: tuple[int, list[Any]]) -> None:
    if padded[0] != lengths[0]:
        raise FormError(f"'{name}' has {lengths[0]} lengths and {padded[0]} padded ones")
    sides = zip(lengths[1], padded[1], strict=True)
    pairs = (zip(range(lengths[0]), listed(one), listed(two), strict=True) for one, two in sides if one is not two)
    wrong = min((row for rows in pairs for row in rows if row[2] < row[1]), default=None)
    if wrong:
        raise FormError(f"item {wrong[0]} of '{name}' has length {wrong[1]}, and is padded to {wrong[2]}")
