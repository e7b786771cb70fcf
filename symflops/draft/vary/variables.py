"""Variables, which vary several slots together, and states: one variable changed, or many at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from random import Random

from symflops.draft.vary.slots import Slot

TURNS = 20
WIDE = 8  # numbers from here on may be widths, smaller ones are usually counts
State = dict[Slot, int]


@dataclass(frozen=True, slots=True)
class Variable:
    """Slots (numbers of the config or inputs) that are varied together.

    Attributes:
        lead: The slot that determines the others.
        ratio: Slots at a fixed ratio to the lead.
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
    """What was found about the slots (numbers of the config and inputs) of a module.

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
    """State (slot -> value) with new values for the leads of ``variables`` and the slots tied to them.

    None if a slot would not be a positive integer.
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


def well_formed(variables: Sequence[Variable], random: Random, share: float, origin: State, most: int) -> State | None:
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
        found = draw(variables, random, share if turn < TURNS // 2 else share / 3, origin)
        if found is not None and all(value <= most * max(WIDE, slot.value) for slot, value in found.items()):
            return found
    return None


def draw(variables: Sequence[Variable], random: Random, share: float, origin: State) -> State | None:
    """Random state (slot -> value) in which each variable changes with probability ``share``.

    Other variables are as in ``origin``. None if a slot would not be a positive integer.
    """
    chosen = [variable for variable in variables if random.random() < share] or [random.choice(list(variables))]
    values: dict[Variable, int] = {}
    for variable in sorted(variables, key=lambda variable: variable.lead.value):
        factors = divisors(variable, values)
        step = lcm(*factors)
        if variable in chosen:
            values[variable] = drawn(variable, random, step, bool(factors))
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


def drawn(variable: Variable, random: Random, step: int, divided: bool) -> int:
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
