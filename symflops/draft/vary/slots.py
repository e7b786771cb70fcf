"""Slots, the numbers of a config and its inputs that may be varied: lists them, and writes new values.

In arguments given by value, equal consecutive tokens are a *run*, whose length may change. Other arguments of the same
length, and their masks, change with it at the same position. A tensor with short rows has one number per column. The number
of rows may change.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeGuard

FEW = 4
LEAST = 2
RUN, COLUMN, ROWS = "run", "column", "rows"


def rows_given(inputs: Mapping[str, Any]) -> dict[str, list[list[int]]]:
    """Argument name -> rows, for the arguments given by value that consist of equal rows of integers.

    An argument is given by value if its entry of ``inputs`` has ``value``, a list of rows, not just a shape.
    """
    values = {name: value["value"] for name, value in inputs.items() if isinstance(value, Mapping) and "value" in value}
    return {name: [list(row) for row in rows] for name, rows in values.items() if are_equal_rows(rows)}


def tokens_in(inputs: Mapping[str, Any], name: str) -> int | None:
    """Row length of argument ``name``, which is given by value or by shape; None if it has no rows."""
    rows, value = rows_given(inputs).get(name), inputs.get(name)
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
    for name, rows in rows_given(inputs).items():
        row = rows[0]
        yield (name, ROWS, 0), len(rows)
        if len(row) <= FEW:
            yield from (((name, COLUMN, place + 1), item) for place, item in enumerate(row) if item > 0)
        elif len(row) not in seen:
            seen.add(len(row))
            yield from (((name, RUN, start), length) for start, length in runs(row) if length >= LEAST)


def runs(row: list[int]) -> list[tuple[int, int]]:
    """Pairs (start, length) of the runs of equal numbers in a row, in order."""
    starts = [place for place in range(len(row)) if not place or row[place] != row[place - 1]]
    return [(start, end - start) for start, end in pairwise([*starts, len(row)])]


def follows_tokens(inputs: Mapping[str, Any], key: tuple[Any, ...]) -> bool:
    """Whether a dimension of an argument follows from the number of tokens, as that of a mask does.

    ``key`` leads to the dimension in ``inputs``. It must be the second of two, of integers or flags, and equal the length
    of the rows of an argument given by value.
    """
    value = inputs.get(key[0])
    if key[1:] != ("shape", 1) or not isinstance(value, Mapping) or len(value.get("shape", ())) != 2:
        return False
    whole = str(value.get("dtype", "")).startswith(("int", "bool"))
    return whole and value["shape"][1] in {len(rows[0]) for rows in rows_given(inputs).values() if len(rows[0]) > FEW}


def change_numbers(inputs: dict[str, Any], state: Mapping[tuple[Any, ...], int]) -> None:
    """Change numbers of the arguments that ``inputs`` gives as lists of rows, in place.

    ``state`` has the new numbers: key of :func:`numbers_in` -> number. If the length of a run of equal tokens changes,
    arguments and masks with equally many tokens per row change with it.
    """
    tokens = rows_given(inputs)
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
    masks = [other for other in inputs if other not in tokens and follows_tokens(now, (other, "shape", 1))]
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


OF_VALUES = ((RUN,), (COLUMN,), (ROWS,))
Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """One number of a config or of the call's arguments that can be varied.

    Attributes:
        side: ``config`` or ``inputs``.
        key: The keys and indices that lead to the number.
        value: The number as given.
        kind: ``number``, ``dimension`` (of a tensor among the inputs), or ``length`` (of a list of the config).
    """

    side: str
    key: Key
    value: int
    kind: str = "number"

    @property
    def label(self) -> str:
        """Readable path of the slot, such as ``text_config.hidden_size`` or ``hidden_states[1]``."""
        shown = [part for part in self.key if part != "shape" and (part,) not in OF_VALUES]
        text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in shown).lstrip(".")
        if self.key[-2:-1] == (RUN,):
            return f"tokens like {text}"
        return f"len({text})" if self.kind == "length" else text

    @property
    def of_config(self) -> bool:
        """Whether the slot belongs to the config, not to the inputs."""
        return self.side == "config"

    @property
    def of_list(self) -> bool:
        """Whether the slot is an item of a list, or a dimension."""
        return isinstance(self.key[-1], int)

    @property
    def of_run(self) -> bool:
        """Whether the slot is the length of a run of equal tokens in an argument given by value."""
        return not self.of_config and self.key[1:2] == (RUN,)

    @property
    def first(self) -> bool:
        """Whether the slot is the first dimension of a tensor."""
        return self.kind == "dimension" and self.key[-1] == 0

    @property
    def axis(self) -> bool:
        """Whether the slot is a dimension of a tensor other than the first."""
        return self.kind == "dimension" and self.key[-1] != 0

    def within(self, state: Mapping[Slot, int]) -> int:
        """Value of the slot in a state (changed slot -> value); the value as given if it is not changed."""
        return state.get(self, self.value)


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a value is an integer and not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def slots_of(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> list[Slot]:
    """All slots (numbers that can be varied) of a config, followed by those of the inputs."""
    valued = [Slot("inputs", key, value, "dimension") for key, value in numbers_in(inputs)]
    shaped = [slot for slot in numbers("inputs", (), inputs) if not follows_tokens(inputs, slot.key)]
    return [*numbers("config", (), config), *valued, *shaped]


def numbers(side: str, key: Key, value: Any) -> Iterator[Slot]:
    """Slots (numbers that can be varied) in nested data ``value``, which is at ``key`` of ``side``.

    These are integers, the lengths of lists of the config, and the dimensions of tensors described by shape.
    """
    if side == "inputs" and isinstance(value, Mapping) and not value.keys().isdisjoint(("shape", "value")):
        sizes = enumerate(value.get("shape", ()))
        yield from (Slot(side, (*key, "shape", place), size, "dimension") for place, size in sizes)
    elif isinstance(value, (Mapping, list, tuple)):
        if side == "config" and key and value and not isinstance(value, Mapping):
            yield Slot(side, key, len(value), "length")
        parts = zip(map(str, value), value.values(), strict=True) if isinstance(value, Mapping) else enumerate(value)
        for part, item in parts:
            yield from numbers(side, (*key, part), item)
    elif is_whole(value):
        yield Slot(side, key, value)


def applied(
    config: Mapping[str, Any], inputs: Mapping[str, Any], state: Mapping[Slot, int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Copies (config, inputs) with other numbers.

    ``state`` maps slots, the numbers that can be varied, to their new values; all others stay.
    """
    sides = {"config": copy.deepcopy(dict(config)), "inputs": copy.deepcopy(dict(inputs))}
    moved = {slot: value for slot, value in state.items() if value != slot.value}
    change_numbers(sides["inputs"], {slot.key: value for slot, value in moved.items() if slot.key[-2:-1] in OF_VALUES})
    for slot in sorted(moved, key=lambda slot: slot.kind != "length"):
        if slot.key[-2:-1] not in OF_VALUES:
            put(sides[slot.side], slot, state[slot])
    return sides["config"], sides["inputs"]


def put(data: Any, slot: Slot, value: int) -> None:
    """Set the number at ``slot`` of the nested ``data`` to ``value``, in place.

    The length of a list changes by :func:`stretched`. Nothing is done if a list on the way has become too short.
    """
    *way, last = slot.key
    for key in way:
        if lacking(data, key):
            return
        if isinstance(data, dict) and key not in data:
            data[key] = {}
        if isinstance(data, dict) and isinstance(data[key], tuple):
            data[key] = list(data[key])
        data = data[key]
    if slot.kind == "length":
        data[last] = stretched(data[last], value)
    elif not lacking(data, last):
        data[last] = value


def lacking(data: Any, key: Any) -> bool:
    """Whether ``data`` is a list that is too short to have index ``key``."""
    return isinstance(data, (list, tuple)) and isinstance(key, int) and key >= len(data)


def stretched(items: Sequence[Any], length: int) -> list[Any]:
    """List resized to ``length``: continued with its period, else with its last item; or cut at its end."""
    found = list(items)
    period = next((size for size in range(1, len(found)) if all(a == b for a, b in zip(found, found[size:], strict=False))), 1)
    while len(found) < length:
        found.append(found[-period])
    return found[:length]
