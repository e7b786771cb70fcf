"""What may move together: numbers of one value, a side of a grid and its tokens, a patch and the sides that it divides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from symflops.draft.slots import Slot

MOST_OPTIONS = 60


@dataclass(frozen=True, slots=True)
class Variable:
    """Slots that move together: the first leads; another keeps its ratio to it, or its distance."""

    lead: Slot
    ratio: tuple[Slot, ...] = ()
    delta: tuple[Slot, ...] = ()

    @property
    def slots(self) -> tuple[Slot, ...]:
        """All slots."""
        return (self.lead, *self.ratio, *self.delta)


@dataclass(slots=True)
class Moves:
    """What was found: variables, slots that change nothing, slots that could not be moved."""

    variables: list[Variable] = field(default_factory=list)
    inert: list[Slot] = field(default_factory=list)
    stuck: list[Slot] = field(default_factory=list)
    steps: dict[Slot, int] = field(default_factory=dict)
    filled: set[Slot] = field(default_factory=set)


def options(slot: Slot, fast: Sequence[Slot], slots: Sequence[Slot], moves: Moves) -> list[Variable]:
    """Ways in which ``slot`` may move with others, the likeliest first; ``fast`` are all that do not move alone.

    Dimensions that change nothing alone, as those of masks, may have to move along; fields of the config that change nothing
    need not.
    """
    if slot.value < 1:
        return []
    lists = [other for other in slots if other.kind == "length"]
    others = [
        other
        for other in slots
        if other != slot and other.kind != "length" and (other not in moves.inert or other.kind == "dimension")
    ]
    others.sort(key=lambda other: (other not in fast, other.value != slot.value))
    found = dict.fromkeys([*alike(slot, fast, others, lists), *grids(slot, fast, others), *unlike(slot, fast, others)])
    multiples = tuple(other for other in others if other in fast and other.value % slot.value == 0)
    last = [Variable(slot, multiples)] if len(multiples) > 1 and slot.value > 1 else []
    return [*list(found)[:MOST_OPTIONS], *last]


def alike(slot: Slot, fast: Sequence[Slot], others: Sequence[Slot], lists: Sequence[Slot]) -> Iterator[Variable]:
    """With lists of as many items, and with numbers of the same value."""
    lengths = [other for other in lists if other.value == slot.value]
    if len(lengths) > 1:
        yield Variable(slot, (), tuple(lengths))
    yield from (Variable(slot, (), (other,)) for other in lengths)
    equal = [other for other in others if other.value == slot.value]
    yield from (Variable(slot, (other,)) for other in equal)
    if len(equal) > 1:
        yield Variable(slot, tuple(equal))
        for held in ([other for other in equal if other in fast], [other for other in equal if other.kind == "dimension"]):
            if 1 < len(held) < len(equal):
                yield Variable(slot, tuple(held))
        yield from (Variable(slot, (a, b)) for place, a in enumerate(equal[:6]) for b in equal[place + 1 : 6])


def grids(slot: Slot, fast: Sequence[Slot], others: Sequence[Slot]) -> Iterator[Variable]:
    """A side of a grid with all dimensions of one value, the tokens on it; a patch with the sides that it divides."""
    dims = [other for other in others if other.kind == "dimension" and other.key[-1] != 0 and other.value > 1]
    rows = [other for other in others if other.kind == "dimension" and other in fast and other.value > slot.value]
    same = tuple(other for other in dims if other.value == slot.value and slot.value > 1)
    for value in dict.fromkeys(other.value for other in rows):
        unit = tuple(other for other in rows if other.value == value)
        for beside in ((), same) if same else ((),):
            if len(unit) + len(beside) > 1:
                yield Variable(slot, (*beside, *unit))
    if slot.kind == "number" and slot.side == "config" and slot.value < 64:
        for tensor in dict.fromkeys(other.key[:-1] for other in dims):
            sides = [other for other in dims if other.key[:-1] == tensor and other.value % slot.value == 0]
            for several in (sides[-2:], sides[-3:], sides[-3:-2]):
                values = {one.value for one in several}
                group = tuple(
                    other for other in dims if other in several or (other.value in values and other.key[:-1] != tensor)
                )
                yield Variable(slot, group)
                yield Variable(slot, tuple(several))


def unlike(slot: Slot, fast: Sequence[Slot], others: Sequence[Slot]) -> Iterator[Variable]:
    """With one number of another value, which keeps its ratio or its distance."""
    unequal = [other for other in others if other.value != slot.value and other.value > 1 and slot.value > 1]
    yield from (Variable(slot, (other,)) for other in unequal if other.value % slot.value == 0)
    if slot.value == 1:
        yield from (Variable(slot, (other,)) for other in others if other.kind == "dimension" and other.key[-1] != 0)
    yield from (Variable(other, (slot,)) for other in unequal if slot.value % other.value == 0 and other in fast)
    yield from (Variable(slot, (), (other,)) for other in unequal if other in fast)
