"""Numbers that can be varied in arguments given by value: runs of image tokens, and image sides.

Equal consecutive tokens are a *run*, whose length may change. Other arguments of the same length, and their masks, change
with it at the same position. A tensor with short rows has one number per column. The number of rows may change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

FEW = 4
LEAST = 2
RUN, COLUMN, ROWS = "run", "column", "rows"


def described(inputs: Mapping[str, Any]) -> dict[str, list[list[int]]]:
    """Argument name -> rows, for the arguments given by value that consist of equal rows of integers.

    An argument is given by value if its entry of ``inputs`` has ``value``, a list of rows, not just a shape.
    """
    values = {name: value["value"] for name, value in inputs.items() if isinstance(value, Mapping) and "value" in value}
    return {name: [list(row) for row in rows] for name, rows in values.items() if are_equal_rows(rows)}


def tokens_in(inputs: Mapping[str, Any], name: str) -> int | None:
    """Row length of argument ``name``, which is given by value or by shape; None if it has no rows."""
    rows, value = described(inputs).get(name), inputs.get(name)
    shape: list[int] = value.get("shape", []) if isinstance(value, Mapping) else []
    return len(rows[0]) if rows else shape[1] if len(shape) > 1 else None


def are_equal_rows(value: Any) -> bool:
    """Whether a value is a list of equal, nonempty rows of integers."""
    if not value or not isinstance(value, (list, tuple)) or not all(isinstance(row, (list, tuple)) and row for row in value):
        return False
    return all(list(row) == list(value[0]) for row in value) and all(isinstance(item, int) for item in value[0])


def numbers_in(inputs: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, int], int]]:
    """Pairs (key, number) of the numbers that can be varied in arguments given by value.

    These are the number of rows, and each item of a short row or the length of each run of equal items in a long one. A key
    is (argument name, kind of number, position): ``rows`` with 0, ``column`` with the item's number from 1, or ``run`` with
    the index of the run's first item.
    """
    seen: set[int] = set()
    for name, rows in described(inputs).items():
        row = rows[0]
        yield (name, ROWS, 0), len(rows)
        if len(row) <= FEW:
            yield from (((name, COLUMN, place + 1), item) for place, item in enumerate(row) if item > 0)
        elif len(row) not in seen:
            seen.add(len(row))
            yield from (((name, RUN, start), length) for start, length in runs(row) if length >= LEAST)


def runs(row: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs (start, length) of the runs of equal numbers in a row."""
    start = 0
    for place in range(1, len(row) + 1):
        if place == len(row) or row[place] != row[start]:
            yield start, place - start
            start = place


def follows(inputs: Mapping[str, Any], key: tuple[Any, ...]) -> bool:
    """Whether a dimension of an argument follows from the number of tokens, as that of a mask does.

    ``key`` leads to the dimension in ``inputs``. It must be the second of two, of integers or flags, and equal the length
    of the rows of an argument given by value.
    """
    value = inputs.get(key[0])
    if key[1:] != ("shape", 1) or not isinstance(value, Mapping) or len(value.get("shape", ())) != 2:
        return False
    whole = str(value.get("dtype", "")).startswith(("int", "bool"))
    return whole and value["shape"][1] in {len(rows[0]) for rows in described(inputs).values() if len(rows[0]) > FEW}


def changed(inputs: dict[str, Any], state: Mapping[tuple[Any, ...], int]) -> None:
    """Change numbers of the arguments that ``inputs`` gives as lists of rows; modifies ``inputs``.

    ``state`` has the new numbers: key of :func:`numbers_in` -> number. If the length of a run of equal tokens changes,
    arguments and masks with equally many tokens per row change with it.
    """
    tokens = described(inputs)
    for (name, kind, place), number in sorted(state.items(), key=lambda one: (one[0][1] == ROWS, -int(one[0][2]))):
        if kind == COLUMN:
            for row in tokens[name]:
                row[place - 1] = number
        elif kind == ROWS:
            tokens[name] = [list(tokens[name][0]) for _ in range(number)]
        else:
            stretch(inputs, tokens, name, place, number)
    for name, rows in tokens.items():
        inputs[name] = {**inputs[name], "value": rows}


def stretch(inputs: dict[str, Any], tokens: dict[str, list[list[int]]], name: str, start: int, number: int) -> None:
    """Change the length of a run of equal tokens to ``number``, in place.

    Args:
        inputs: The arguments; masks in it with as many tokens are resized, too.
        tokens: The rows of the arguments given by value; those with as many tokens are resized.
        name: The argument that has the run.
        start: The position of the run's first token.
        number: The new length.
    """
    before = len(tokens[name][0])
    length = next(length for first, length in runs(tokens[name][0]) if first == start)
    now = {**inputs, **{other: {"value": rows} for other, rows in tokens.items()}}
    masks = [other for other in inputs if other not in tokens and follows(now, (other, "shape", 1))]
    for other, rows in tokens.items():
        if len(rows[0]) == before:
            tokens[other] = [[*row[:start], *[row[start]] * number, *row[start + length :]] for row in rows]
    for other in masks:
        shape = inputs[other]["shape"]
        if shape[1] == before:
            inputs[other] = {**inputs[other], "shape": [shape[0], before + number - length]}


def number_at(inputs: Mapping[str, Any], key: tuple[Any, ...]) -> int | None:
    """Number at a key of :func:`numbers_in`; None if no argument given by value has the key."""
    return next((value for other, value in numbers_in(inputs) if other == key), None)
