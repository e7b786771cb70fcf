"""Whether a model can run a batch, and the moments of one that it can run."""

from __future__ import annotations

from collections import Counter
from functools import partial
from operator import mul

from symflops.model.index_sets import ONCE
from symflops.runtime.batch import BatchError, items_of, rows_of
from symflops.runtime.least import described, too_short, untaken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from symflops.runtime.batch import Item
    from symflops.runtime.stored import Stored

    Counted = tuple[Sequence[Item], Sequence[int]]

NONE: Counted = (), ()
NO_DIVISION = "a length of the batch does not divide as the model divides it"


def check_inner(
    program: Stored, sets: Mapping[str, Counted], sizes: Mapping[str, Any], used: Mapping[str, Counted] | None = None
) -> None:
    """Refuse a batch, or an item, that the model cannot run; conditions on a whole batch read ``used``, if it is given.

    Raises:
        BatchError: with the stream, the item, its length, and the least one, or what the class takes.
    """
    for row in program.conditions:
        if all(sets.get(one["items"], NONE)[0] for one in row["statistics"]):
            known = {**sizes, **figures(program, row["statistics"], used or sets, sizes)}
            if program.formulas.settled(row["formula"], known) < 1:
                raise BatchError(f"the batch does not fit the model: the class takes {taken(program, row, known)}")
    for row in program.inner:
        left = partial(_left, program, row, sizes)
        for place, item in enumerate(sets.get(row["items"], NONE)[0]):
            if left(item) < 1:
                owners = _owners(program, row["items"])
                if "text" not in row:
                    raise BatchError(too_short(place, item, owners, left))
                read = program.formulas.letters(row["formula"])
                owners = {axis: owner for axis, owner in owners.items() if axis in read}
                raise BatchError(untaken(place, item, owners, taken(program, row, sizes)))


def singly(sets: Mapping[str, Sequence[Item]]) -> dict[str, Counted]:
    """Each item of the index sets counted once."""
    return {items: (rows, [1] * len(rows)) for items, rows in sets.items()}


def in_use(real: Mapping[str, Sequence[Item]], padded: Mapping[str, Sequence[Item]]) -> dict[str, list[Item]]:
    """The real lengths of items, but padded ones of an axis that is 0 in each of them: such a batch runs on padding alone."""
    found: dict[str, list[Item]] = {}
    for items, rows in real.items():
        zero = [axis for axis in (rows[0] if rows else ()) if not any(item[axis] for item in rows)]
        pairs = zip(rows, padded[items], strict=True)
        found[items] = [{**item, **{axis: wide[axis] for axis in zero}} for item, wide in pairs]
    return found


def figures(
    program: Stored, rows: Sequence[Mapping[str, Any]], sets: Mapping[str, Counted], sizes: Mapping[str, Any]
) -> dict[str, int]:
    """The statistics of a batch in ``rows``, by name; one may read those before it."""
    found: dict[str, int] = {}
    for row in rows:
        distinct, counts = sets.get(row["items"], NONE)
        values = list(_of_each(program, row["formula"], {**sizes, **found}, distinct))
        found[row["name"]] = sum(map(mul, values, counts)) if row["kind"] == "sum" else max(values, default=0)
    return found


def taken(program: Stored, row: Mapping[str, Any], sizes: Mapping[str, Any]) -> str:
    """What the class takes, as a condition on lengths says it."""
    return row["text"].format(*_values(program, row, sizes))  # type: ignore[no-any-return]


def lengths_taken(program: Stored, sizes: Mapping[str, Any]) -> dict[str, int]:
    """A length that conditions name, for each axis that they limit."""
    found: dict[str, int] = {}
    for row in program.inner:
        if values := _values(program, row, sizes):
            read = program.formulas.letters(row["formula"])
            axes = [axis for stream in program.streams for axis in stream.variables if axis in read]
            found |= zip(axes, values * len(axes), strict=False)
    return found


def _values(program: Stored, row: Mapping[str, Any], sizes: Mapping[str, Any]) -> list[int]:
    return [program.formulas.settled(place, sizes) for place in row.get("values", ())]


def _left(program: Stored, row: Mapping[str, Any], sizes: Mapping[str, Any], item: Mapping[str, int]) -> int:
    return program.formulas.settled(row["formula"], {**sizes, **item})  # type: ignore[no-any-return]


def _owners(program: Stored, items: str) -> dict[str, tuple[str, int]]:
    """The stream of each axis, and the number of its axes."""
    streams = [stream for stream in program.streams if stream.items == items]
    return {axis: (stream.name, len(stream.variables)) for stream in streams for axis in stream.variables}


def sides_of(
    program: Stored, batch: Mapping[str, Any], sizes: Mapping[str, Any], places: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The moments of a batch that are at ``places``: of real lengths but where they are always padded, and all of padded ones.

    Raises:
        BatchError: as :func:`moments_of`.
    """
    real = padded = moments_of(program, batch, sizes, "lengths", places)
    if any(isinstance(given, dict) for given in batch.values()):
        padded = moments_of(program, batch, sizes, "padded", places)
    rows = [program.moments[place] for place in places]
    return tuple(two if row.get("side") else one for row, one, two in zip(rows, real, padded, strict=True)), padded


def moments_of(
    program: Stored, batch: Mapping[str, Any], sizes: Mapping[str, Any], side: str, places: Sequence[int]
) -> tuple[int, ...]:
    """The moments of a batch on one side, at ``places`` of the program; equal items are evaluated once.

    Raises:
        BatchError: as :func:`items_of` and :func:`check_inner`; or a division of the model leaves a remainder.
    """
    sets: dict[str, Counted] = {}
    for items, (axes, rows) in rows_of(program, batch, side).items():
        counted = Counter(rows)
        sets[items] = [dict(zip(axes, row, strict=True)) for row in counted], list(counted.values())
    try:
        check_inner(program, sets, sizes)
    except BatchError:  # which item of all it is, unless padding alone runs
        single, wide = (items_of(program, batch, one) for one in (side, "padded"))
        check_inner(program, singly(single), sizes, singly(in_use(single, wide)))
    known = {**sizes, **figures(program, program.statistics, sets, sizes)}
    found = []
    for row in (program.moments[place] for place in places):
        if row["items"] == ONCE:
            found.append(program.formulas.settled(row["formula"], known))
            continue
        distinct, counts = sets.get(row["items"], NONE)
        values = list(_of_each(program, row["formula"], known, distinct))
        for item in (item for item, one in zip(distinct, values, strict=True) if not isinstance(one, int)):
            raise BatchError(f"{NO_DIVISION}: {described(item, _owners(program, row['items']))}")
        found.append(sum(map(mul, values, counts)))
    return tuple(found)


def _of_each(program: Stored, formula: int, known: Mapping[str, Any], items: Sequence[Item]) -> Iterator[Any]:
    """A formula of each item, beside what is ``known``."""
    names = dict(known)
    for item in items:
        names.update(item)
        yield program.formulas.settled(formula, names)
