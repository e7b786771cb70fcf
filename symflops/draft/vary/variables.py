"""The numbers of a subject that may move: whole numbers of the config, dimensions of tensors, lengths of lists."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.draft.vary.sequences import COLUMN, ROWS, RUN, changed, follows, numbers_in

VALUED = ((RUN,), (COLUMN,), (ROWS,))
Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """One number: where it stands (``config`` or ``inputs``, then keys), and what it is in the given subject.

    ``kind`` is ``number``, ``dimension`` (of a tensor among the inputs), or ``length`` (of a list of a config).
    """

    side: str
    key: Key
    value: int
    kind: str = "number"

    @property
    def label(self) -> str:
        """The slot as people write it: ``text_config.hidden_size``, ``hidden_states[1]``."""
        shown = [part for part in self.key if part != "shape" and (part,) not in VALUED]
        text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in shown).lstrip(".")
        if self.key[-2:-1] == (RUN,):
            return f"tokens like {text}"
        return f"len({text})" if self.kind == "length" else text


State = dict[Slot, int]


def slots_of(config: Mapping[str, Any], inputs: Mapping[str, Any]) -> list[Slot]:
    """All numbers of a subject, those of the inputs last."""
    valued = [Slot("inputs", key, value, "dimension") for key, value in numbers_in(inputs)]
    shaped = [slot for slot in dimensions((), inputs) if not follows(inputs, str(slot.key[0]), last_of(slot))]
    return [*numbers("config", (), config), *valued, *shaped]


def last_of(slot: Slot) -> int:
    """The place of a dimension in its tensor; -1 for what is none."""
    return int(slot.key[-1]) if slot.kind == "dimension" and len(slot.key) == 3 else -1


def numbers(side: str, key: Key, value: Any) -> Iterator[Slot]:
    """Whole numbers within plain data, and the lengths of lists."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        yield Slot(side, key, value)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from numbers(side, (*key, str(name)), item)
    elif isinstance(value, (list, tuple)) and value:
        if side == "config" and key:
            yield Slot(side, key, len(value), "length")
        for place, item in enumerate(value):
            yield from numbers(side, (*key, place), item)


def dimensions(key: Key, value: Any) -> Iterator[Slot]:
    """The dimensions of described tensors, and numbers beside them."""
    if isinstance(value, Mapping) and "shape" in value:
        for place, size in enumerate(value["shape"]):
            yield Slot("inputs", (*key, "shape", place), size, "dimension")
    elif isinstance(value, Mapping) and "value" in value:
        return
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from dimensions((*key, str(name)), item)
    elif isinstance(value, (list, tuple)):
        for place, item in enumerate(value):
            yield from dimensions((*key, place), item)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield Slot("inputs", key, value)


def applied(
    config: Mapping[str, Any], inputs: Mapping[str, Any], state: Mapping[Slot, int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A config and inputs in which slots have other values."""
    sides = {"config": copy.deepcopy(dict(config)), "inputs": copy.deepcopy(dict(inputs))}
    moved = {slot: value for slot, value in state.items() if value != slot.value}
    changed(sides["inputs"], {slot.key: value for slot, value in moved.items() if slot.key[-2:-1] in VALUED})
    for slot in sorted(moved, key=lambda slot: slot.kind != "length"):
        if slot.key[-2:-1] not in VALUED:
            put(sides[slot.side], slot, state[slot])
    return sides["config"], sides["inputs"]


def put(data: Any, slot: Slot, value: int) -> None:
    """Write one slot: a list grows by what it repeats, and shrinks at the end; an item that it lacks by then is not written."""
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
    """Whether data is a list without an item at that place."""
    return isinstance(data, (list, tuple)) and isinstance(key, int) and key >= len(data)


def stretched(items: Sequence[Any], length: int) -> list[Any]:
    """A list of another length: its period goes on, or its last item."""
    found = list(items)
    period = next(
        (size for size in range(1, len(found) + 1) if all(a == b for a, b in zip(found, found[size:], strict=False))), 1
    )
    if period == len(found):
        period = 1
    while len(found) < length:
        found.append(found[-period])
    return found[:length]
