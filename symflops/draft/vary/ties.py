"""What may move together: numbers of one value, a side of a grid and its tokens, a patch and the sides that it divides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from symflops.draft.vary.sequences import RUN
from symflops.draft.vary.variables import Slot

MOST_OPTIONS = 80


@dataclass(frozen=True, slots=True)
class Variable:
    """Slots that move together: the first leads; another keeps its ratio to it, or its distance.

    What goes ``along`` grows with a power of the lead, and has no name of its own.
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
    ways = (
        alike(slot, fast, others, lists),
        grids(slot, fast, others),
        shares(slot, others),
        unlike(slot, fast, others, lists),
        axial(slot, others),
    )
    plain = [option for way in ways for option in way]
    found = dict.fromkeys([*pictured(slot, fast), *plain[:MOST_OPTIONS], *listed(slot, fast)])
    multiples = tuple(other for other in others if other in fast and slot.value > 1 and other.value % slot.value == 0)
    last = [Variable(slot, multiples)] if len(multiples) > 1 else []
    return [*found, *last]


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
    same = units([other for other in dims if other.value == slot.value and slot.value > 1])
    for unit in units(rows):
        for beside in ((), *same):
            if len(unit) + len(beside) > 1:
                yield Variable(slot, (*beside, *unit))
        if slot.kind == "dimension" and len(unit) > 1:
            yield Variable(slot, (), unit)
    if slot.kind == "number" and slot.side == "config" and 0 < slot.value < 64:
        for tensor in dict.fromkeys(other.key[:-1] for other in dims):
            sides = [other for other in dims if other.key[:-1] == tensor and other.value % slot.value == 0]
            for several in (sides[-2:], sides[-3:], sides[-3:-2]):
                values = {one.value for one in several}
                group = tuple(
                    other for other in dims if other in several or (other.value in values and other.key[:-1] != tensor)
                )
                yield Variable(slot, group)
                yield Variable(slot, tuple(several))


def axial(slot: Slot, others: Sequence[Slot]) -> Iterator[Variable]:
    """With all dimensions of the same value on an axis, and a width."""
    dims = [other for other in others if other.kind == "dimension" and other.key[-1] != 0 and other.value == slot.value > 1]
    widths = [other for other in others if other.side == "config" and other.value > slot.value]
    for beside in units(dims):
        yield from (Variable(slot, (*beside, width)) for width in widths if width.value % slot.value == 0)


def units(dims: Sequence[Slot]) -> list[tuple[Slot, ...]]:
    """Dimensions of one value: those of one axis first, then all."""
    by_axis = {
        (dim.value, dim.key[-1]): tuple(one for one in dims if (one.value, one.key[-1]) == (dim.value, dim.key[-1]))
        for dim in dims
    }
    by_value = {dim.value: tuple(one for one in dims if one.value == dim.value) for dim in dims}
    return list(dict.fromkeys((*by_axis.values(), *by_value.values())))


def shares(slot: Slot, others: Sequence[Slot]) -> Iterator[Variable]:
    """All items of a list, as shares of a width, with that width."""
    if slot.side != "config" or slot.kind != "number" or not isinstance(slot.key[-1], int):
        return
    items = tuple(other for other in others if other.side == "config" and other.key[:-1] == slot.key[:-1])
    if items:
        yield Variable(slot, items)
        total = slot.value + sum(item.value for item in items)
        widths = [other for other in others if other.side == "config" and other.value % total == 0 and other not in items]
        for value in dict.fromkeys(width.value for width in widths):
            yield Variable(slot, (*items, *(width for width in widths if width.value == value)))
        yield from (Variable(slot, (*items, width)) for width in widths)


def unlike(slot: Slot, fast: Sequence[Slot], others: Sequence[Slot], lists: Sequence[Slot]) -> Iterator[Variable]:
    """With one number of another value, which keeps its ratio or its distance; an offset with its period; a longer list."""
    unequal = [other for other in others if other.value != slot.value and other.value > 1 and slot.value > 1]
    yield from (Variable(slot, (other,)) for other in unequal if other.value % slot.value == 0)
    fields = [other for other in unequal if other.side == slot.side == "config" and other.value % slot.value == 0]
    alike = {other.value: tuple(one for one in fields if one.value == other.value) for other in fields}
    yield from (Variable(slot, several) for several in alike.values() if len(several) > 1)
    if slot.value == 1:
        yield from (Variable(slot, (other,)) for other in others if other.kind == "dimension" and other.key[-1] != 0)
    yield from (Variable(other, (slot,)) for other in unequal if slot.value % other.value == 0 and other in fast)
    yield from (Variable(slot, (), (other,)) for other in unequal if other in fast)
    yield from (Variable(slot, (), (other,)) for other in others if related(slot, other))
    if slot.kind == "number" and slot.value < 64:
        yield from (Variable(slot, (), (other,)) for other in lists if other.value > slot.value)


def related(one: Slot, other: Slot) -> bool:
    """Whether two small numbers of a config are called alike but for the last word, as a period and its offset are."""
    words = [str(slot.key[-1]).rpartition("_")[0] for slot in (one, other)]
    small = max(one.value, other.value) < 8
    return small and one.kind == other.kind == "number" and one.key[:-1] == other.key[:-1] and words[0] == words[1] != ""


def pictured(slot: Slot, fast: Sequence[Slot]) -> Iterator[Variable]:
    """The tokens of a picture grow with its sides, or with the square of them; with the square of a patch they become fewer."""
    waiting = [other for other in fast if other != slot and other.value > 1 and other.kind == "dimension"]
    tokens = [other for other in waiting if RUN in other.key]
    sides = tuple(other for other in waiting if other.value == slot.value and other not in tokens)
    for run in tokens if RUN not in slot.key else ():
        rows = tuple((other, 1) for other in waiting if other.key[-1] == 0 and other.value > 1)
        yield Variable(slot, sides, along=((run, 2),))
        yield Variable(slot, along=((run, -2),))
        yield Variable(slot, along=((run, 1), *rows))
        yield from (Variable(slot, along=((run, -2), (other, 2))) for other in waiting if other.value % slot.value**2 == 0)
    if slot.value > 1:
        yield from (Variable(slot, along=((other, 2),)) for other in waiting if other.value % slot.value**2 == 0)


def listed(slot: Slot, fast: Sequence[Slot]) -> Iterator[Variable]:
    """Parts of a whole, which stand in one list, grow with it, or become smaller."""
    if slot.side != "config" or isinstance(slot.key[-1], int):
        return
    lists = dict.fromkeys(other.key[:-1] for other in fast if other.side == "config" and isinstance(other.key[-1], int))
    equal = tuple(other for other in fast if other != slot and other.side == "config" and other.value == slot.value)
    for key in lists:
        parts = [other for other in fast if other.key[:-1] == key]
        if len(parts) > 1:
            yield Variable(slot, (), along=tuple((part, 1) for part in parts))
            if equal:
                yield Variable(slot, equal, along=tuple((part, 1) for part in parts))
            yield Variable(slot, (), along=tuple((part, -1) for part in parts))
