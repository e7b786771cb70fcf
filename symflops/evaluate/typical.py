"""Finds batches that a model accepts (typical lengths, examples, minimum lengths), and words messages about batches."""

from __future__ import annotations

from collections import Counter

from symflops.evaluate.batch import LONGEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from symflops.evaluate.stored import Stored

    Rests = Sequence[tuple[frozenset[str], Callable[[Mapping[str, int]], Any]]]
    """The letters that a rest reads, and the rest itself, which must be at least 1."""
    Owners = Mapping[str, tuple[str, int]]


MOST_RAISED = 2048
"""The largest increment tried to make lengths divisible."""

MOST_BITS = 40
UNFIT = "is too short for the model, or does not divide as the model divides it"
SHORT, WIDE = (1024, 3360, 32_000), (64, 448, 3360, 32_000)
"""Lengths of the first item of an example, for streams with one axis and with several; the second item has half."""


def typical_lengths(streams: Sequence[Any], inner: Rests, taken: Mapping[str, int]) -> dict[str, int]:
    """Map each axis to a typical length: 1024 for a sole axis, 16 for several, defaults if optional.

    A length that a condition refuses is replaced by the one that the condition names (``taken``, by axis). Lengths for which
    a length inside the model (``inner``) is less than 1 are doubled, in all streams or in one. If that fails, the lengths of
    one stream are set to 0 or 1, or all lengths are raised until they divide.
    """
    absent = {stream.name: stream.absent for stream in optional_streams(streams)}
    found = {
        name: absent[stream.name] if stream.name in absent else 1024 if len(stream.variables) == 1 else 16
        for stream in streams
        for name in stream.variables
    }
    short = {name for letters, rest in inner if rest(found) < 1 for name in letters}
    limited = {name: taken[name] if name in short and name in taken else length for name, length in found.items()}
    own = [doubled(limited, inner, stream.variables) for stream in streams]
    few = [{**limited, **dict.fromkeys(stream.variables, length)} for stream in streams for length in (0, 1)]
    for grown in (doubled(found, inner, found), doubled(limited, inner, found), *own, few, raised(limited, inner)):
        fitting = next((lengths for lengths in grown if all(rest(lengths) >= 1 for _, rest in inner)), None)
        if fitting is not None:
            return fitting
    return found


def doubled(lengths: Mapping[str, int], inner: Rests, among: Collection[str]) -> Iterator[dict[str, int]]:
    """Yield ``lengths``, then again with too short ones of the axes ``among`` doubled, until none is."""
    found = dict(lengths)
    while max(found.values(), default=0) < LONGEST:
        yield found
        short = {name for letters, rest in inner if rest(found) < 1 for name in letters if name in among}
        if not short:
            break
        found = {name: length * (1 + (name in short)) for name, length in found.items()}


def raised(lengths: Mapping[str, int], inner: Rests) -> Iterator[dict[str, int]]:
    """Yield ``lengths`` with each axis that ``inner`` reads raised by 1, 2, ..., to find multiples."""
    read = {name for letters, _ in inner for name in letters}
    for more in range(1, MOST_RAISED):
        yield {name: length + more * (name in read) for name, length in lengths.items()}


def optional_streams(streams: Sequence[Any]) -> list[Any]:
    """List the streams with a default length that a batch may omit.

    A stream counts only if another stream gives lengths for the same index set.
    """
    measured = Counter(stream.items for stream in streams if stream.variables)
    return [stream for stream in streams if stream.absent and measured[stream.items] > bool(stream.variables)]


def as_batch(streams: Sequence[Any], lengths: Mapping[str, int]) -> dict[str, list[Any]]:
    """Build a batch with one item per stream; ``lengths`` maps each axis to its length."""
    rows = {stream.name: [lengths[name] for name in stream.variables] for stream in streams if stream.variables}
    return {name: [row[0] if len(row) == 1 else row] for name, row in rows.items()}


def too_short(place: int, item: Mapping[str, int], owners: Owners, left: Callable[[Mapping[str, int]], int]) -> str:
    """Message for an item that is too short or does not divide.

    Args:
        place: the number of the item in the batch.
        item: the lengths of the item, by axis.
        owners: axis -> (stream, number of axes of this stream).
        left: computes, from the lengths of an item, the length inside the model that is too short.
    """
    for axis, (name, axes) in owners.items():

        def of_length(length: int, axis: str = axis) -> int:
            return left({**item, axis: length})

        least = least_of(of_length)
        if least is not None and least > item[axis]:
            what = f"'{axis}' = {item[axis]}" if axes > 1 else f"length {item[axis]}"
            return f"item {place} of '{name}' has {what}, and the model needs at least {least}"
    return f"item {place} of {described(item, owners)} {UNFIT}"


def untaken(place: int, item: Mapping[str, int], owners: Owners, text: str) -> str:
    """Message for item number ``place``, which the class refuses; ``text`` says which lengths it accepts."""
    if len(owners) == 1:
        ((axis, (name, _)),) = owners.items()
        return f"item {place} of '{name}' has length {item[axis]}, and the class takes {text}"
    return f"item {place} of {described(item, owners)}: the class takes {text}"


def described(item: Mapping[str, int], owners: Owners) -> str:
    """Format the streams and lengths of an item."""
    names = ", ".join(f"'{name}'" for name in dict.fromkeys(name for name, _ in owners.values()))
    return f"{names} ({', '.join(f'{axis} = {item[axis]}' for axis in owners)})"


def least_of(left: Callable[[int], int]) -> int | None:
    """The least length at which the increasing ``left`` is at least 1; None if it is 0 or too large."""
    high: int | None = next((2**power for power in range(MOST_BITS) if left(2**power) >= 1), None)
    if high is None or left(0) >= 1:
        return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if left(middle) >= 1 else (middle, high)
    return high


def example_of(estimator: Any) -> str:
    """An example batch of two items that the model accepts, as JSON; empty if none is found."""
    every = [row for rows in estimator.sets.values() for row in rows]
    given = [row for row in every if not estimator.streams[row[0]]]
    return next(filter(None, (_example(estimator, rows) for rows in (given, every) if rows)), "")


def _example(estimator: Any, rows: Sequence[Any]) -> str:
    """An example batch of two items over the streams ``rows``, as JSON; empty if all are refused."""
    import json

    taken = getattr(estimator, "taken", {})
    for length in WIDE if any(len(axes) > 1 for _, axes, _ in rows) else SHORT:
        roomy = {axes[0]: length**2 for _, axes, _ in rows if len(axes) == 1}  # texts that hold the tokens of images
        for known in ({}, *filter(None, (taken, roomy))):
            items = [{axis: known.get(axis, size) for _, axes, _ in rows for axis in axes} for size in (length, length // 2)]
            batch = {name: [row_of(item, axes) for item in items] if axes else len(items) for name, axes, _ in rows}
            try:
                estimator.forward(estimator.read(batch))
            except Exception:  # an example must never fail
                continue
            return json.dumps(batch)
    return ""


def row_of(item: Mapping[str, int], axes: Sequence[str]) -> Any:
    """Format an item as a batch entry: one length, or a list of several."""
    return [item[axis] for axis in axes] if len(axes) > 1 else item[axes[0]]


def taken(program: Stored, row: Mapping[str, Any], sizes: Mapping[str, Any]) -> str:
    """The text of a condition on lengths, a stored row, with its values inserted."""
    return row["text"].format(*_values(program, row, sizes))  # type: ignore[no-any-return]


def lengths_taken(program: Stored, sizes: Mapping[str, Any]) -> dict[str, int]:
    """Map each axis that a condition limits to the length that the condition names, or a typical one."""
    found: dict[str, int] = {}
    fitting: list[str] = []
    for row in program.inner:
        read = program.formulas.letters(row["formula"])
        streams = [stream for stream in program.streams if read.intersection(stream.variables)]
        axes = [axis for stream in streams for axis in stream.variables if axis in read]
        if values := _values(program, row, sizes):
            found |= zip(axes, values * len(axes), strict=False)
        elif "text" in row and not any(stream.absent for stream in streams):
            fitting += axes
    lengths = typical_lengths(program.streams, rests_of(program, sizes), found) if fitting else {}
    return found | {axis: lengths[axis] for axis in fitting}


def rests_of(program: Stored, sizes: Mapping[str, Any]) -> Rests:
    """List a pair (letters, function) for each length inside the model that is computed from others.

    The letters are the sizes and axes that its formula reads. The function computes it from the lengths of an item, by
    axis, with the given ``sizes``.
    """

    def rest(position: int) -> Callable[[Mapping[str, int]], Any]:
        return lambda lengths: program.formulas.checked(position, {**sizes, **lengths})

    return [(program.formulas.letters(row["formula"]), rest(row["formula"])) for row in program.inner]


def _values(program: Stored, row: Mapping[str, Any], sizes: Mapping[str, Any]) -> list[int]:
    return [program.formulas.checked(place, sizes) for place in row.get("values", ())]
