"""Slots, the numbers of a subject, and variables: slots that move together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeGuard

from symflops.draft.vary.sequences import COLUMN, ROWS, RUN

OF_VALUES = ((RUN,), (COLUMN,), (ROWS,))
WIDE = 8  # a number from here on may be a width, one below is rather a count
Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """One number of a subject: its place (``config`` or ``inputs``, then keys), and its value as given.

    ``kind`` is ``number``, ``dimension`` (of a tensor among the inputs), or ``length`` (of a list of the config).
    """

    side: str
    key: Key
    value: int
    kind: str = "number"

    @property
    def label(self) -> str:
        """The slot as people write it: ``text_config.hidden_size``, ``hidden_states[1]``."""
        shown = [part for part in self.key if part != "shape" and (part,) not in OF_VALUES]
        text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in shown).lstrip(".")
        if self.key[-2:-1] == (RUN,):
            return f"tokens like {text}"
        return f"len({text})" if self.kind == "length" else text

    @property
    def of_config(self) -> bool:
        """Whether it is in the config."""
        return self.side == "config"

    @property
    def of_list(self) -> bool:
        """Whether it is an item of a list, or a dimension."""
        return isinstance(self.key[-1], int)

    @property
    def of_run(self) -> bool:
        """Whether it is the length of a run of tokens."""
        return RUN in self.key

    @property
    def first(self) -> bool:
        """Whether it is the first dimension of a tensor."""
        return self.kind == "dimension" and self.key[-1] == 0

    @property
    def axis(self) -> bool:
        """Whether it is another dimension of a tensor."""
        return self.kind == "dimension" and self.key[-1] != 0

    def within(self, state: Mapping[Slot, int]) -> int:
        """Its value in a state."""
        return state.get(self, self.value)


State = dict[Slot, int]


@dataclass(frozen=True, slots=True)
class Variable:
    """Slots that move together: ``lead``, and others that keep their ratio to it, or their difference (``delta``).

    What moves ``along`` is proportional to a power of the lead, and gets no name of its own.
    """

    lead: Slot
    ratio: tuple[Slot, ...] = ()
    delta: tuple[Slot, ...] = ()
    along: tuple[tuple[Slot, int], ...] = ()

    @property
    def slots(self) -> tuple[Slot, ...]:
        """All slots."""
        return (*self.named, *(slot for slot, _ in self.along))

    @property
    def named(self) -> tuple[Slot, ...]:
        """The slots that a formula may name."""
        return (self.lead, *self.ratio, *self.delta)


@dataclass(slots=True)
class Moves:
    """Which slots move: variables, ``inert`` slots that change nothing, and ``stuck`` ones that could not be moved.

    ``steps`` has a value of each lead with which the module runs and does other work; ``filled`` are slots of fields that
    nobody gave, with the class's defaults.
    """

    variables: list[Variable] = field(default_factory=list)
    inert: list[Slot] = field(default_factory=list)
    stuck: list[Slot] = field(default_factory=list)
    steps: dict[Slot, int] = field(default_factory=dict)
    filled: set[Slot] = field(default_factory=set)


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def moved(state: Mapping[Slot, int], variables: Sequence[tuple[Variable, int]]) -> State | None:
    """A state in which the leads of variables have other values; None if a number of it is not whole."""
    factors: dict[Slot, Fraction] = {}
    shifts: dict[Slot, int] = {}
    for variable, value in variables:
        base = variable.lead.within(state)
        for slot in (variable.lead, *variable.ratio):
            factors[slot] = factors.get(slot, Fraction(1)) * Fraction(value, max(1, base))
        for slot, power in variable.along:
            factors[slot] = factors.get(slot, Fraction(1)) * Fraction(max(1, value), max(1, base)) ** power
        for slot in variable.delta:
            shifts[slot] = shifts.get(slot, 0) + value - base
    found = dict(state)
    for slot in {*factors, *shifts}:
        size = slot.within(found) * factors.get(slot, Fraction(1)) + shifts.get(slot, 0)
        if size.denominator != 1 or size < 1:
            return None
        found[slot] = int(size)
    return found
