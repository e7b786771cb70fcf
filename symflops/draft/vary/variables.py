"""Variables, which vary several slots together, and states: one variable changed, or many at random.

Candidate variables tie a slot to others: equal numbers, a grid's side and its tokens, a patch and image sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from random import Random

from symflops.draft.vary.slots import Key, Slot

TURNS = 20
WIDE = 8  # numbers from here on may be widths, smaller ones are usually counts
State = dict[Slot, int]


@dataclass(frozen=True, slots=True)
class Variable:
    """Slots (numbers of the config or inputs) that are varied together.

    Attributes:
        lead: The slot that determines the others.
        ratio: Slots at a fixed ratio to the lead: they grow by its factor.
        delta: Slots at a fixed difference from the lead.
        along: Slots proportional to a power of the lead, with the power; formulas have no symbols for them.
    """

    lead: Slot
    ratio: tuple[Slot, ...] = ()
    delta: tuple[Slot, ...] = ()
    along: tuple[tuple[Slot, int], ...] = ()

    @property
    def slots(self) -> tuple[Slot, ...]:
        """All slots of the variable."""
        return (*self.named, *(slot for slot, _ in self.along))

    @property
    def named(self) -> tuple[Slot, ...]:
        """Slots for which formulas may have a symbol: all but those in ``along``."""
        return (self.lead, *self.ratio, *self.delta)


@dataclass(slots=True)
class Moves:
    """Findings about the slots (numbers of the config and inputs) of a module.

    Attributes:
        variables: Slots that can be varied, alone or together.
        inert: Slots whose values change neither parameters nor contractions.
        stuck: Slots that could not be varied.
        steps: Lead of a variable -> a value that the module accepts and that changes parameters or contractions.
        filled: Slots of fields that were not given and have the class's defaults.
    """

    variables: list[Variable] = field(default_factory=list)
    inert: list[Slot] = field(default_factory=list)
    stuck: list[Slot] = field(default_factory=list)
    steps: dict[Slot, int] = field(default_factory=dict)
    filled: set[Slot] = field(default_factory=set)


def moved(state: Mapping[Slot, int], variables: Sequence[tuple[Variable, int]]) -> State | None:
    """State (slot -> value) ``state`` with other values of variables: pairs (variable, new value of its lead).

    The other slots of each variable follow. None if a slot would not be a positive integer.
    """
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
    for slot in dict.fromkeys((*factors, *shifts)):
        size = slot.within(found) * factors.get(slot, Fraction(1)) + shifts.get(slot, 0)
        if size.denominator != 1 or size < 1:
            return None
        found[slot] = int(size)
    return found


def random_state(variables: Sequence[Variable], random: Random, share: float, origin: State, most: int) -> State | None:
    """Random state (slot -> value) in which no number is over ``most`` times its given value or 8.

    Numbers that divide each other grow together, so later attempts change fewer variables. None if all attempts fail.

    Args:
        variables: The slots that may change.
        random: The source of random numbers.
        share: The probability that a variable changes.
        origin: The state whose values the other variables have.
        most: The largest factor.
    """
    for turn in range(TURNS):
        found = random_attempt(variables, random, share if turn < TURNS // 2 else share / 3, origin)
        if found is not None and all(value <= most * max(WIDE, slot.value) for slot, value in found.items()):
            return found
    return None


def random_attempt(variables: Sequence[Variable], random: Random, share: float, origin: State) -> State | None:
    """Random state (slot -> value) in which each variable changes with probability ``share``.

    Other variables are as in ``origin``. None if a slot would not be a positive integer.
    """
    chosen = [variable for variable in variables if random.random() < share] or [random.choice(list(variables))]
    values: dict[Variable, int] = {}
    for variable in sorted(variables, key=lambda variable: variable.lead.value):
        factors = divisors(variable, values)
        step = lcm(*factors)
        if variable in chosen:
            values[variable] = random_value(variable, random, step, bool(factors))
        else:
            start = variable.lead.within(origin)
            values[variable] = start if start % step == 0 or variable.along else step * max(1, round(start / step))
    return moved({}, [(variable, value) for variable, value in values.items() if value != variable.lead.value])


def divisors(variable: Variable, values: Mapping[Variable, int]) -> list[int]:
    """Numbers that must divide the new value of a variable's lead, so that it stays divisible as given.

    They come from the other variables whose lead's given value divides that of this lead. ``values`` maps variables to the
    new values of their leads.
    """
    lead = variable.lead
    smaller = [other for other in values if 1 < other.lead.value < lead.value and lead.value % other.lead.value == 0]
    return [
        other.lead.value if lead in other.ratio else values[other] * (1 if lead.value // other.lead.value % 2 else 2)
        for other in smaller
        if lead.kind == "number" or other.lead.value <= 4
    ]


def random_value(variable: Variable, random: Random, step: int, divided: bool) -> int:
    """Random value of a variable's lead; if it is ``divided`` by other numbers, a multiple of ``step``."""
    base = variable.lead.value
    even = base % 2 == 0
    if variable.along or any(slot.value % base for slot in variable.ratio):
        return random.choice([base, *whole_values(variable)])
    if base < WIDE:
        return step * random.randint(1, 3) if divided and even else random.randint(max(1, base - 1), base + 4)
    if not divided and (variable.lead.kind != "number" or not even):
        return random.randint(max(2, base // 2), base * 2)
    unit = step if divided else base // 2
    low = max(1, base // (2 * unit))
    value = unit * random.randint(low, low + 6)
    return value * 2 if value % 2 and even else value


def whole_values(variable: Variable) -> list[int]:
    """Twice, three times, half and a third of a lead's given value, if all slots tied to it stay integers."""
    base = variable.lead.value
    parts = [base // part for part in (2, 3) if base % part == 0 and base > part]
    return [value for value in (base * 2, base * 3, *parts) if moved({}, [(variable, value)])]


MOST_OPTIONS = 80
SMALL = 64  # patch sizes and counts are below


@dataclass(frozen=True, slots=True)
class Partners:
    """A slot (number of config or inputs) that cannot be varied alone, and slots that may change with it.

    Attributes:
        slot: The slot.
        coupled: All slots that cannot be varied alone.
        others: The partners: slots other than list lengths that may have to change with the slot, likeliest first.
        lists: The lengths of the config's lists.
    """

    slot: Slot
    coupled: Sequence[Slot]
    others: Sequence[Slot]
    lists: Sequence[Slot]

    @property
    def axes(self) -> list[Slot]:
        """Partners that are tensor dimensions other than the first."""
        return [other for other in self.others if other.axis]

    @property
    def unequal(self) -> list[Slot]:
        """Partners with another value than the slot's, which is not 1 either; empty if the slot is 1."""
        return [other for other in self.others if other.value != self.slot.value and other.value > 1 and self.slot.value > 1]

    def multiples(self, slots: Sequence[Slot], power: int = 1) -> list[Slot]:
        """Those of ``slots`` whose value is a multiple of the slot's value to the given power."""
        return [other for other in slots if other.value % self.slot.value**power == 0]

    def equal(self, slots: Sequence[Slot]) -> tuple[Slot, ...]:
        """Those of ``slots`` that have the slot's value."""
        return tuple(other for other in slots if other.value == self.slot.value)


def options(slot: Slot, coupled: Sequence[Slot], slots: Sequence[Slot], moves: Moves) -> list[Variable]:
    """Variables (slots varied together) to try for ``slot``, likeliest first.

    ``coupled`` are the slots that cannot be varied alone, ``slots`` all slots, ``moves`` what is known about them. The others
    may be dimensions without effect, such as those of a mask, but not config fields without effect.
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
    """Tie the slot to the lengths of lists, and to numbers, that have its value."""
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
    """Tie a grid's side to the dimensions that count the grid's tokens, with or without equal sides."""
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
    """Tie a patch size to the image sides that it divides, with or without equal sides of other tensors."""
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
    """The ``sides`` of a tensor, and those dimensions in ``axes`` of other tensors that equal one of them."""
    values = {one.value for one in sides}
    return tuple(one for one in axes if one in sides or (one.value in values and one.key[:-1] != tensor))


def axial(partners: Partners) -> Iterator[Variable]:
    """Tie the slot to equal dimensions and to a larger config number that is a multiple of its value.

    Each variable has the slot as its lead, and at a fixed ratio a group of dimensions of the slot's value, such as all on
    one axis, and one such number.
    """
    slot = partners.slot
    widths = [other for other in partners.others if other.of_config and other.value > slot.value]
    for beside in units(partners.equal(partners.axes)) if slot.value > 1 else []:
        yield from (Variable(slot, (*beside, width)) for width in partners.multiples(widths))


def units(dims: Sequence[Slot]) -> list[tuple[Slot, ...]]:
    """Groups of ``dims`` that have the same value.

    First come those that also have the same position in the shape of their tensor, then those at any position.
    """
    by_axis = [tuple(one for one in dims if (one.value, one.key[-1]) == (dim.value, dim.key[-1])) for dim in dims]
    return list(dict.fromkeys((*by_axis, *by_value(dims))))


def by_value(slots: Sequence[Slot]) -> list[tuple[Slot, ...]]:
    """Groups of slots that have the same value."""
    return [tuple(one for one in slots if one.value == value) for value in dict.fromkeys(slot.value for slot in slots)]


def shares(partners: Partners) -> Iterator[Variable]:
    """Tie all items of a config list together, also to a number that is a multiple of their sum."""
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
    """Tie the slot in a fixed ratio to a number of another value, or to all config fields of that value."""
    slot, unequal = partners.slot, partners.unequal
    multiples = partners.multiples(unequal)
    yield from (Variable(slot, (other,)) for other in multiples)
    fields = [other for other in multiples if other.of_config and slot.of_config]
    yield from (Variable(slot, several) for several in by_value(fields) if len(several) > 1)
    if slot.value == 1:
        yield from (Variable(slot, (other,)) for other in partners.axes)
    yield from (Variable(other, (slot,)) for other in unequal if slot.value % other.value == 0 and other in partners.coupled)


def differences(partners: Partners) -> Iterator[Variable]:
    """Tie the slot at a fixed difference to another: an offset to its period, a count to a list length."""
    slot = partners.slot
    yield from (Variable(slot, (), (other,)) for other in partners.unequal if other in partners.coupled)
    yield from (Variable(slot, (), (other,)) for other in partners.others if related(slot, other))
    if slot.kind == "number" and slot.value < SMALL:
        yield from (Variable(slot, (), (other,)) for other in partners.lists if other.value > slot.value)


def related(one: Slot, other: Slot) -> bool:
    """Whether the names of two small config numbers differ only in the last word (period and offset)."""
    words = [str(slot.key[-1]).rpartition("_")[0] for slot in (one, other)]
    small = max(one.value, other.value) < 8
    return small and one.kind == other.kind == "number" and one.key[:-1] == other.key[:-1] and words[0] == words[1] != ""


def pictures(partners: Partners) -> Iterator[Variable]:
    """Tie the number of an image's tokens to its side, the side's square, or the patch's inverse square."""
    slot = partners.slot
    dims = [other for other in partners.coupled if other.kind == "dimension" and other.value > 1 and other != slot]
    squares = [(other, 2) for other in partners.multiples(dims, 2)]
    runs = [other for other in dims if other.of_run]
    sides = partners.equal([other for other in dims if other not in runs])
    for run in runs if not slot.of_run else ():
        yield Variable(slot, sides, along=((run, 2),))
        yield Variable(slot, along=((run, -2),))
        yield Variable(slot, along=((run, 1), *((other, 1) for other in dims if other.first)))
        yield from (Variable(slot, along=((run, -2), square)) for square in squares)
    if slot.value > 1:
        yield from (Variable(slot, along=(square,)) for square in squares)


def parts(partners: Partners) -> Iterator[Variable]:
    """Tie the slot, as a total, to the items of a config list, which grow or shrink in proportion."""
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
    """Tie the slot to all multiples of it that cannot be varied alone either."""
    multiples = tuple(other for other in partners.multiples(partners.others) if other in partners.coupled)
    if partners.slot.value > 1 and len(multiples) > 1:
        yield Variable(partners.slot, multiples)
