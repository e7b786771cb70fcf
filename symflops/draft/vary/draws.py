"""Draws random states: many variables at once, in which what divided another number still divides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm
from random import Random

from symflops.draft.vary.variables import WIDE, State, Variable, moved

TURNS = 20


def well_formed(variables: Sequence[Variable], random: Random, share: float, origin: State, most: int) -> State | None:
    """A state that :func:`draw` finds in a few turns, in which no number is more than ``most`` times what it was.

    Numbers that divide each other grow together, so later turns move fewer of them.
    """
    for turn in range(TURNS):
        found = draw(variables, random, share if turn < TURNS // 2 else share / 3, origin)
        if found is not None and all(value <= most * max(WIDE, slot.value) for slot, value in found.items()):
            return found
    return None


def draw(variables: Sequence[Variable], random: Random, share: float, origin: State) -> State | None:
    """A state in which a share of the variables have other values; None if a number of it is not whole."""
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
    """What must divide the lead of a variable: the new values of smaller numbers that divide it in the given subject."""
    lead = variable.lead
    found = []
    for other, value in values.items():
        size = other.lead.value
        if 1 < size < lead.value and lead.value % size == 0 and (lead.kind == "number" or size <= 4):
            twice = (lead.value // size) % 2 == 0
            found.append(size if lead in other.ratio else value * (2 if twice else 1))
    return found


def drawn(variable: Variable, random: Random, step: int, divided: bool) -> int:
    """Another value of a lead, a multiple of ``step`` if smaller numbers divide it."""
    base = variable.lead.value
    if variable.along or any(slot.value % base for slot in variable.ratio):  # these have to come out whole
        parts = [base // part for part in (2, 3) if base % part == 0 and base > part]
        whole = [value for value in (base * 2, base * 3, *parts) if moved({}, [(variable, value)]) is not None]
        return random.choice([base, *whole])
    if base >= WIDE and (divided or (variable.lead.kind == "number" and base % 2 == 0)):
        unit = step if divided else max(1, base // 2)
        low = max(1, base // (2 * unit))
        value = unit * random.randint(low, low + 6)
        return value * 2 if value % 2 and base % 2 == 0 else value
    if base >= WIDE:
        return random.randint(max(2, base // 2), base * 2)
    if divided and base % 2 == 0:
        return step * random.randint(1, 3)
    return random.randint(max(1, base - 1), base + 4)
