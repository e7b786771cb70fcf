"""Slots, the numbers of a config and its inputs that may be varied: lists them, and writes new values."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from symflops.draft.vary.sequences import COLUMN, ROWS, RUN, changed, follows, numbers_in

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
    shaped = [slot for slot in numbers("inputs", (), inputs) if not follows(inputs, slot.key)]
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
    changed(sides["inputs"], {slot.key: value for slot, value in moved.items() if slot.key[-2:-1] in OF_VALUES})
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
