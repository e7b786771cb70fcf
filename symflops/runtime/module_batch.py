"""Reads the batch of a generated module: lists, arrays or tensors of lengths become one column per axis.

Generated modules import this; those that stand alone hold the text below the line.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

# ---- what modules that stand alone hold, too
if TYPE_CHECKING:
    Streams = Sequence[Any] | dict[str, Sequence[Any]]
    Columns = list[Any]
    Axes = tuple[str, tuple[str, ...], int]

MOST_COUNTED = 1_000_000
"""The largest number of items of a stream that is given as a number."""


ALONE = "is one number for all items: another stream must say how many there are"


class BatchFormError(ValueError):
    """A batch is not of the form that the streams have."""


def columns_of(streams: Sequence[Axes], optional: Mapping[str, bool], batch: Mapping[str, Any]) -> tuple[Columns, Columns]:
    """Per axis of the streams of one index set the lengths of the items, real and padded."""
    real: Columns = []
    padded: Columns = []
    count = 0
    shared = {name for name, axes, absent in streams if absent and len(axes) == 1 and is_length(batch[name])}
    if shared and all(batch[name] is None for name, _, _ in streams if name not in shared):
        raise BatchFormError(f"'{min(shared)}' {ALONE}")
    for name, axes, _ in streams:
        given = batch[name]
        if given is not None and name not in shared:
            count = max(count, count_of(name, given, axes))
        elif given is None and not optional[name]:
            raise BatchFormError(f"the batch lacks the stream '{name}'")
    for name, axes, absent in streams:
        given = batch[name]
        if given is None or name in shared:
            one = two = [[absent if given is None else int(given)] * count for _ in axes or (0,)]
        elif isinstance(given, dict):
            sides = (given["lengths"], given.get("padded", given["lengths"]))
            one, two = (axes_of(name, side, axes, count) for side in sides)
            check_padded(name, one, two)
        else:
            one = two = axes_of(name, given, axes, count)
        real += one
        padded += two
    return real, padded


def in_use(real: Columns, padded: Columns | None) -> Columns:
    """The real lengths, but padded ones of an axis that is 0 in each item: such a batch runs on padding alone."""
    return [one if any(one) else two for one, two in zip(real, padded or real, strict=True)]


def check_padded(name: str, real: Columns, padded: Columns) -> None:
    """Refuse an item that is padded to less than its length."""
    for short, long in zip(real, padded, strict=True):
        for place, (length, most_of_it) in enumerate(zip(listed(short), listed(long), strict=True)):
            if most_of_it < length:
                raise BatchFormError(f"item {place} of '{name}' has length {length}, and is padded to {most_of_it}")


def count_of(name: str, given: Any, axes: tuple[str, ...]) -> int:
    """The number of items that a stream is given for."""
    if isinstance(given, dict):
        if not {"lengths"} <= given.keys() <= {"lengths", "padded"}:
            raise BatchFormError(f"'{name}' must be a list, or have 'lengths' and 'padded', not {given!r:.80}")
        return max([count_of(name, side, axes) for side in given.values() if not isinstance(side, dict)], default=0)
    if not axes and isinstance(given, int) and not isinstance(given, bool) and 0 <= given <= MOST_COUNTED:
        return given
    if isinstance(given, (str, bytes, dict, set)) or not hasattr(given, "__len__") or getattr(given, "shape", None) == ():
        number = f"the number of items, at most {MOST_COUNTED:,}"
        what = f"a list with one entry per item, {entry_of_axes(axes)}" if axes else number
        raise BatchFormError(f"'{name}' must be {what}, not {given!r:.80}")
    return len(given)


def entry_of_axes(axes: tuple[str, ...]) -> str:
    """What the entry of one item is, in words."""
    return f"{len(axes)} whole numbers ({', '.join(axes)})" if len(axes) > 1 else "a whole number"


def axes_of(name: str, entries: Any, axes: tuple[str, ...], count: int) -> Columns:
    """Entries as one column per axis, a list or an array of ints."""
    if isinstance(entries, dict):
        raise BatchFormError(f"'lengths' and 'padded' of '{name}' must be lists, not {entries!r:.80}")
    if count_of(name, entries, axes) != count:
        raise BatchFormError(f"'{name}' has {count_of(name, entries, axes)} items, another stream of the batch has {count}")
    if not axes:
        return [[0] * count]
    if hasattr(entries, "dtype"):
        found = vectors_here()
        if found is not None:
            try:
                return list(found.axes(name, entries, len(axes)))
            except ValueError as error:
                raise BatchFormError(str(error)) from None
        entries = entries.tolist()
    return (type(entries) is list and int_columns(entries, len(axes))) or item_columns(name, entries, axes)


def int_columns(entries: list[Any], axes: int) -> Columns | None:
    """Lists of ints as columns, at the speed of C; None if something else is among them."""
    several = axes > 1
    try:
        lengths = [length for entry in entries for length in entry] if several else entries
        flat = numbers(lengths)
    except (TypeError, OverflowError):
        return None
    if bool in map(type, lengths) or (several and set(map(len, entries)) != {axes}):
        return None
    return [flat[axis::axes] for axis in range(axes)] if several else [flat]


def item_columns(name: str, entries: Any, axes: tuple[str, ...]) -> Columns:
    """Entries of any form as columns, one by one."""
    several = len(axes) > 1
    rows = [tuple(entry) if several and hasattr(entry, "__len__") else (entry,) for entry in entries]
    for place, (row, entry) in enumerate(zip(rows, entries, strict=True)):
        if len(row) != len(axes) or not all(map(is_length, row)):
            raise BatchFormError(f"item {place} of '{name}' must be {entry_of_axes(axes)}, not {entry!r:.80}")
    return [[int(row[axis]) for row in rows] for axis in range(len(axes))]


def is_length(value: Any) -> bool:
    """Whether a value is a whole number: of Python, of numpy, or a tensor with one."""
    try:
        return not isinstance(value, bool) and "bool" not in str(getattr(value, "dtype", "")) and value.__index__() >= 0
    except (AttributeError, TypeError):
        return False


array_type: Any = None
vector_sums: Any = None


def numbers(lengths: list[Any]) -> Any:
    """Whole numbers of at most 64 bits as an array, at the speed of C.

    Raises:
        TypeError, OverflowError: something else is among them.
    """
    global array_type
    if array_type is None:  # imported where it is used: importing a generated module costs nothing
        from array import array as array_type
    try:
        return array_type("I", lengths)
    except OverflowError:
        return array_type("Q", lengths)


def vectors_here() -> Any:
    """Sums by vectors, which come with symflops; None in a module that stands alone, or without numpy."""
    global vector_sums
    if vector_sums is None:
        try:
            from symflops.runtime import vectors as vector_sums
        except ImportError:
            return None
    return vector_sums


def listed(column: Any) -> list[int]:
    """A column as a list."""
    found: list[int] = column if type(column) is list else column.tolist()
    return found


def differ(one: Any, two: Any) -> bool:
    """Whether two columns differ."""
    return one is not two and listed(one) != listed(two)


def least(one: Any, two: Any) -> Any:
    """The smaller, element by element of what has elements."""
    if hasattr(one, "clip"):
        return one.clip(max=two)
    return two.clip(max=one) if hasattr(two, "clip") else min(one, two)


def most(one: Any, two: Any) -> Any:
    """The larger, element by element of what has elements."""
    if hasattr(one, "clip"):
        return one.clip(min=two)
    return two.clip(min=one) if hasattr(two, "clip") else max(one, two)


def largest(column: Any) -> int:
    """The largest length of a column; 0 if it has none."""
    found = vectors_here() if type(column) is not list and len(column) > 99 else None
    return max(column, default=0) if found is None else next(found.ends([max], [column]))[0]


def exact(product: int, divisor: int) -> int:
    """A quotient of lengths that the model divides without a remainder."""
    quotient, rest = divmod(product, divisor)
    if rest:
        raise ValueError(f"a length of the batch does not divide as the model divides it: {product} by {divisor}")
    return quotient


def too_short_item(
    number: int,
    lengths: list[int],
    rows: Sequence[tuple[int, tuple[str, str, str, int]]],
    left: Callable[[list[int]], int],
    takes: tuple[str, ...] = (),
) -> str:
    """Says which item is too short, its length, and the least one; ``left`` is what the model leaves of an item.

    For an item that the class does not take, it says what the class ``takes``: words, and the axes that count.
    """
    if takes:
        rows = [(place, row) for place, row in rows if row[2] in takes]
        if len(rows) == 1:
            return f"item {number} of '{rows[0][1][1]}' has length {lengths[rows[0][0]]}, and the class takes {takes[0]}"
        names = ", ".join(f"'{name}'" for name in dict.fromkeys(name for _, (_, name, _, _) in rows))
        shown = ", ".join(f"{axis} = {lengths[place]}" for place, (_, _, axis, _) in rows)
        return f"item {number} of {names} ({shown}): the class takes {takes[0]}"
    for place, (_, name, axis, axes) in rows:

        def short(length: int, place: int = place) -> bool:
            return left([*lengths[:place], length, *lengths[place + 1 :]]) < 1

        low, high = 0, 1
        while high < 2**40 and short(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if short(middle) else (low, middle)
        if lengths[place] < high < 2**40:
            what = f"'{axis}' = {lengths[place]}" if axes > 1 else f"length {lengths[place]}"
            return f"item {number} of '{name}' has {what}, and the model needs at least {high}"
    shown = ", ".join(f"{axis} = {lengths[place]}" for place, (_, _, axis, _) in rows)
    told = "is too short for the model, or does not divide as the model divides it"
    return f"item {number} of '{rows[0][1][1]}' ({shown}) {told}"
