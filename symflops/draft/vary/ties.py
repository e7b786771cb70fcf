"""Ways in which slots may move together: equal numbers, a side of a grid with its tokens, a patch with the sides it divides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from symflops.draft.vary.slots import Key, Slot
from symflops.draft.vary.variables import Moves, Variable

MOST_OPTIONS = 80
SMALL = 64  # the size of a patch, or a count, is below


@dataclass(frozen=True, slots=True)
class Partners:
    """A slot that does not move alone, and those that it may move with.

    ``coupled`` are all slots that do not move alone; ``others`` are the likely partners, in their order; ``lists`` are lengths.
    """

    slot: Slot
    coupled: Sequence[Slot]
    others: Sequence[Slot]
    lists: Sequence[Slot]

    @property
    def axes(self) -> list[Slot]:
        """Dimensions of tensors but the first one."""
        return [other for other in self.others if other.axis]

    @property
    def unequal(self) -> list[Slot]:
        """Slots of another value; none if the slot is 1, and none that is 1."""
        return [other for other in self.others if other.value != self.slot.value and other.value > 1 and self.slot.value > 1]

    def multiples(self, slots: Sequence[Slot], power: int = 1) -> list[Slot]:
        """Slots that the slot, or a power of it, divides."""
        return [other for other in slots if other.value % self.slot.value**power == 0]

    def firsts(self, dims: Sequence[Slot]) -> list[tuple[Slot, int]]:
        """The first dimensions of tensors, to move along in proportion."""
        return [(other, 1) for other in dims if other.first]

    def equal(self, slots: Sequence[Slot]) -> tuple[Slot, ...]:
        """Slots of the same value."""
        return tuple(other for other in slots if other.value == self.slot.value)


def options(slot: Slot, coupled: Sequence[Slot], slots: Sequence[Slot], moves: Moves) -> list[Variable]:
    """Ways in which ``slot`` may move with others, the likeliest first; ``coupled`` are all slots that do not move alone.

    A dimension that changes nothing alone, such as one of a mask, may have to move along. A field of the config that changes
    nothing need not.
    """
    if slot.value < 1:
        return []
    lists = [other for other in slots if other.kind == "length"]
    others = [
        other for other in slots
        if other not in (slot, *lists) and (other not in moves.inert or other.kind == "dimension")
    ]  # fmt: skip
    others.sort(key=lambda other: (other not in coupled, other.value != slot.value))
    partners = Partners(slot, coupled, others, lists)
    usual = [option for way in (alike, grids, patches, shares, ratios, differences, axial) for option in way(partners)]
    likely = dict.fromkeys([*pictures(partners), *usual[:MOST_OPTIONS], *parts(partners)])
    return [*likely, *everything(partners)]


def alike(partners: Partners) -> Iterator[Variable]:
    """With lists of as many items, and with numbers of the same value."""
    slot, lengths = partners.slot, partners.equal(partners.lists)
    if len(lengths) > 1:
        yield Variable(slot, (), lengths)
    yield from (Variable(slot, (), (other,)) for other in lengths)
    equal = partners.equal(partners.others)
    yield from (Variable(slot, (other,)) for other in equal)
    if len(equal) < 2:
        return
    yield Variable(slot, equal)
    for some in (
        tuple(other for other in equal if other in partners.coupled),
        tuple(other for other in equal if other.kind == "dimension"),
    ):
        if 1 < len(some) < len(equal):
            yield Variable(slot, some)
    yield from (Variable(slot, (a, b)) for place, a in enumerate(equal[:6]) for b in equal[place + 1 : 6])


def grids(partners: Partners) -> Iterator[Variable]:
    """A side of a grid with all dimensions that count the tokens on it, and with equal sides."""
    slot = partners.slot
    rows = [
        other for other in partners.others
        if other.kind == "dimension" and other in partners.coupled and other.value > slot.value
    ]  # fmt: skip
    same = units(partners.equal(partners.axes)) if slot.value > 1 else []
    for unit in units(rows):
        for beside in ((), *same):
            if len(unit) + len(beside) > 1:
                yield Variable(slot, (*beside, *unit))
        if slot.kind == "dimension" and len(unit) > 1:
            yield Variable(slot, (), unit)


def patches(partners: Partners) -> Iterator[Variable]:
    """A patch with the last sides of a tensor that it divides, with and without equal sides of other tensors."""
    slot = partners.slot
    axes = [other for other in partners.axes if other.value > 1]
    if slot.kind != "number" or not slot.of_config or slot.value >= SMALL:
        return
    for tensor in dict.fromkeys(other.key[:-1] for other in axes):
        sides = [other for other in partners.multiples(axes) if other.key[:-1] == tensor]
        for several in (sides[-2:], sides[-3:], sides[-3:-2]):
            yield Variable(slot, everywhere(axes, several, tensor))
            yield Variable(slot, tuple(several))


def everywhere(axes: Sequence[Slot], sides: Sequence[Slot], tensor: Key) -> tuple[Slot, ...]:
    """Sides of a tensor, and dimensions of other tensors that are equal to one of them."""
    values = {one.value for one in sides}
    return tuple(one for one in axes if one in sides or (one.value in values and one.key[:-1] != tensor))


def axial(partners: Partners) -> Iterator[Variable]:
    """With all dimensions of the same value on an axis, and a width."""
    slot = partners.slot
    widths = [other for other in partners.others if other.of_config and other.value > slot.value]
    for beside in units(partners.equal(partners.axes)) if slot.value > 1 else []:
        yield from (Variable(slot, (*beside, width)) for width in partners.multiples(widths))


def units(dims: Sequence[Slot]) -> list[tuple[Slot, ...]]:
    """Dimensions of one value: those of one axis first, then all."""
    by_axis = [tuple(one for one in dims if (one.value, one.key[-1]) == (dim.value, dim.key[-1])) for dim in dims]
    return list(dict.fromkeys((*by_axis, *by_value(dims))))


def by_value(slots: Sequence[Slot]) -> list[tuple[Slot, ...]]:
    """Slots in groups of one value."""
    return [tuple(one for one in slots if one.value == value) for value in dict.fromkeys(slot.value for slot in slots)]


def shares(partners: Partners) -> Iterator[Variable]:
    """All items of a list, as shares of a width, with that width."""
    slot = partners.slot
    fields = [other for other in partners.others if other.of_config]
    items = tuple(other for other in fields if other.key[:-1] == slot.key[:-1])
    if slot.of_config and slot.kind == "number" and slot.of_list and items:
        yield Variable(slot, items)
        total = slot.value + sum(item.value for item in items)
        widths = [other for other in fields if other.value % total == 0 and other not in items]
        yield from (Variable(slot, (*items, *group)) for group in by_value(widths))
        yield from (Variable(slot, (*items, width)) for width in widths)


def ratios(partners: Partners) -> Iterator[Variable]:
    """With a number of another value, or with all fields of that value, in a fixed ratio."""
    slot, unequal = partners.slot, partners.unequal
    multiples = partners.multiples(unequal)
    yield from (Variable(slot, (other,)) for other in multiples)
    fields = [other for other in multiples if other.of_config and slot.of_config]
    yield from (Variable(slot, several) for several in by_value(fields) if len(several) > 1)
    if slot.value == 1:
        yield from (Variable(slot, (other,)) for other in partners.axes)
    yield from (Variable(other, (slot,)) for other in unequal if slot.value % other.value == 0 and other in partners.coupled)


def differences(partners: Partners) -> Iterator[Variable]:
    """With a number of another value at a fixed difference: an offset with its period, a count with a longer list."""
    slot = partners.slot
    yield from (Variable(slot, (), (other,)) for other in partners.unequal if other in partners.coupled)
    yield from (Variable(slot, (), (other,)) for other in partners.others if related(slot, other))
    if slot.kind == "number" and slot.value < SMALL:
        yield from (Variable(slot, (), (other,)) for other in partners.lists if other.value > slot.value)


def related(one: Slot, other: Slot) -> bool:
    """Whether the names of two small numbers of a config differ in the last word alone, as those of a period and its offset."""
    words = [str(slot.key[-1]).rpartition("_")[0] for slot in (one, other)]
    small = max(one.value, other.value) < 8
    return small and one.kind == other.kind == "number" and one.key[:-1] == other.key[:-1] and words[0] == words[1] != ""


def pictures(partners: Partners) -> Iterator[Variable]:
    """The tokens of a picture grow with its sides, or with their square; with the square of a patch they become fewer."""
    slot = partners.slot
    dims = [other for other in partners.coupled if other.kind == "dimension" and other.value > 1 and other != slot]
    squares = [(other, 2) for other in partners.multiples(dims, 2)]
    runs = [other for other in dims if other.of_run]
    sides = partners.equal([other for other in dims if other not in runs])
    for run in runs if not slot.of_run else ():
        yield Variable(slot, sides, along=((run, 2),))
        yield Variable(slot, along=((run, -2),))
        yield Variable(slot, along=((run, 1), *partners.firsts(dims)))
        yield from (Variable(slot, along=((run, -2), square)) for square in squares)
    if slot.value > 1:
        yield from (Variable(slot, along=(square,)) for square in squares)


def parts(partners: Partners) -> Iterator[Variable]:
    """A whole with its parts in one list, which grow with it or shrink."""
    slot, fields = partners.slot, [other for other in partners.coupled if other.of_config]
    if slot.of_list or not slot.of_config:
        return
    equal = partners.equal([other for other in fields if other != slot])
    for key in dict.fromkeys(other.key[:-1] for other in fields if other.of_list):
        growing = tuple((other, 1) for other in partners.coupled if other.key[:-1] == key)
        if len(growing) > 1:
            yield from (Variable(slot, beside, along=growing) for beside in dict.fromkeys(((), equal)))
            yield Variable(slot, along=tuple((item, -1) for item, _ in growing))


def everything(partners: Partners) -> Iterator[Variable]:
    """With all coupled slots that it divides."""
    multiples = tuple(other for other in partners.multiples(partners.others) if other in partners.coupled)
    if partners.slot.value > 1 and len(multiples) > 1:
        yield Variable(partners.slot, multiples)
