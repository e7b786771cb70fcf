"""Finds what moves: which numbers of a subject can change, alone or together, and draws well-formed samples of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from random import Random
from typing import Any

from symflops.draft.slots import Slot, State

Trial = Callable[[State], Any]
WIDE = 8


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


def moved(state: Mapping[Slot, int], variables: Sequence[tuple[Variable, int]]) -> State | None:
    """A state in which each of some variables has another value of its lead; None where a ratio does not come out whole."""
    factors: dict[Slot, Fraction] = {}
    shifts: dict[Slot, int] = {}
    leads: dict[Slot, int] = {}
    for variable, value in variables:
        base = state.get(variable.lead, variable.lead.value)
        leads[variable.lead] = leads.get(variable.lead, 0) + value - base
        for slot in variable.ratio:
            factors[slot] = factors.get(slot, Fraction(1)) * Fraction(value, max(1, base))
        for slot in variable.delta:
            shifts[slot] = shifts.get(slot, 0) + value - base
    found = dict(state)
    for slot in {*factors, *shifts, *leads}:
        size = found.get(slot, slot.value) * factors.get(slot, Fraction(1)) + shifts.get(slot, 0) + leads.get(slot, 0)
        if size.denominator != 1 or size < 1:
            return None
        found[slot] = int(size)
    return found


def candidates(value: int) -> list[int]:
    """Other values of a number, the likeliest to be accepted first."""
    if value >= WIDE and value % 2 == 0:
        return [value * 2, value + 2, value + 1, value // 2, value + 8]
    return [value + 1, value * 2, value - 1, value + 2] if value > 1 else [value + 1, value + 3]


class Explorer:
    """Moves slots of a subject and looks whether its signature changes."""

    def __init__(
        self, trial: Trial, slots: Sequence[Slot], base: Any, deadline: float, tell: Callable[[str], None], filled: set[Slot]
    ) -> None:
        self.filled = filled
        self.trial, self.slots, self.base, self.deadline, self.tell = trial, list(slots), base, deadline, tell
        self.moves = Moves(filled=filled)

    def late(self) -> bool:
        """Whether time is up."""
        return time.monotonic() > self.deadline

    def attempt(self, variable: Variable, values: Sequence[int] | None = None) -> str:
        """``moves``, ``inert`` or ``stuck``."""
        accepted = False
        for value in values if values is not None else candidates(variable.lead.value):
            state = moved({}, [(variable, value)])
            if state is None or self.late():
                continue
            found = self.trial(state)
            if found is None:
                continue
            accepted = True
            if found != self.base:
                self.moves.steps.setdefault(variable.lead, value)
                return "moves"
            if value >= variable.lead.value * 2:
                break
        return "inert" if accepted else "stuck"

    def run(self) -> Moves:
        """Move the batch, then each slot alone, then stuck ones with others."""
        waiting = [slot for slot in self.slots if slot.kind != "length"]
        lists = [slot for slot in self.slots if slot.kind == "length"]
        firsts = [slot for slot in waiting if slot.kind == "dimension" and slot.key[-1] == 0]
        if firsts:
            batch = [slot for slot in firsts if slot.value == firsts[0].value]
            variable = Variable(batch[0], tuple(batch[1:]))
            if self.attempt(variable) == "moves":
                self.moves.variables.append(variable)
                waiting = [slot for slot in waiting if slot not in batch]
        stuck = []
        for number, slot in enumerate(waiting):
            self.tell(f"moving {slot.label} ({number + 1}/{len(waiting)})")
            state = self.attempt(Variable(slot))
            if state == "moves":
                self.moves.variables.append(Variable(slot))
            elif state == "inert":
                self.moves.inert.append(slot)
            else:
                stuck.append(slot)
        self.ties(stuck, lists)
        return self.moves

    def ties(self, stuck: list[Slot], lists: list[Slot]) -> None:
        """Move stuck slots with one other, then with two, then with all of their value."""
        done: set[Slot] = set()
        for slot in stuck:
            if slot in done or slot in self.filled or self.late():
                continue
            self.tell(f"moving {slot.label} with others")
            found = self.tied(slot, stuck, lists)
            if found:
                self.moves.variables.append(found)
                done.update(found.slots)
        self.moves.stuck += [slot for slot in stuck if slot not in done and slot not in self.filled]

    def tied(self, slot: Slot, stuck: list[Slot], lists: list[Slot]) -> Variable | None:
        """A variable in which a stuck slot moves."""
        others = [other for other in self.slots if other != slot and other not in self.moves.inert and other.kind != "length"]
        others.sort(key=lambda other: (other not in stuck, other.value != slot.value))
        equal = [other for other in others if other.value == slot.value]
        lengths = [other for other in lists if other.value == slot.value]
        options: list[Variable] = []
        if len(lengths) > 1:
            options.append(Variable(slot, (), tuple(lengths)))
        options += [Variable(slot, (), (other,)) for other in lengths]
        options += [Variable(slot, (other,)) for other in equal]
        if len(equal) > 1:
            options.append(Variable(slot, tuple(equal)))
            held = [other for other in equal if other in stuck]
            if 1 < len(held) < len(equal):
                options.append(Variable(slot, tuple(held)))
            options += [Variable(slot, (a, b)) for i, a in enumerate(equal[:6]) for b in equal[i + 1 : 6]]
        unequal = [other for other in others if other.value != slot.value and other.value > 1 and slot.value > 1]
        options += [Variable(slot, (other,)) for other in unequal if other.value % slot.value == 0]
        if slot.value == 1:
            options += [Variable(slot, (other,)) for other in others if other.kind == "dimension" and other.key[-1] != 0]
        options += [Variable(other, (slot,)) for other in unequal if slot.value % other.value == 0 and other in stuck]
        options += [Variable(slot, (), (other,)) for other in unequal if other in stuck]
        for option in options[:60]:
            if self.late():
                return None
            lead = option.lead.value
            values = candidates(lead)[:2] if lead < WIDE else [lead * 2, lead + 8]
            if self.attempt(option, values) == "moves":
                return option
        multiples = tuple(other for other in others if other in stuck and other.value % slot.value == 0)
        if len(multiples) > 1 and slot.value > 1:
            option = Variable(slot, multiples)
            if self.attempt(option, [slot.value * 2]) == "moves":
                return option
        return None


def well_formed(variables: Sequence[Variable], random: Random, share: float, origin: State, most: int) -> State | None:
    """A state that :func:`draw` finds in a few turns, in which no number is more than ``most`` times what it was.

    Numbers that keep dividing each other grow together: later turns move fewer of them.
    """
    for turn in range(20):
        found = draw(variables, random, share if turn < 10 else share / 3, origin)
        if found is not None and all(value <= most * max(WIDE, slot.value) for slot, value in found.items()):
            return found
    return None


def draw(variables: Sequence[Variable], random: Random, share: float, origin: State) -> State | None:
    """A state in which a share of the variables have other values; what divides what in the base case does so still."""
    chosen = [variable for variable in variables if random.random() < share] or [random.choice(list(variables))]
    order = sorted(variables, key=lambda variable: variable.lead.value)
    values: dict[Variable, int] = {}
    for variable in order:
        base = variable.lead.value
        smaller = [
            values[other] * (2 if (base // other.lead.value) % 2 == 0 else 1)
            for other in values
            if 1 < other.lead.value < base
            and base % other.lead.value == 0
            and (variable.lead.kind == "number" or other.lead.value <= 4)
        ]
        step = lcm(*smaller) if smaller else 1
        start = origin.get(variable.lead, base)
        if variable in chosen:
            if base >= WIDE and (smaller or (variable.lead.kind == "number" and base % 2 == 0)):
                unit = step if smaller else max(1, base // 2)
                low = max(1, base // (2 * unit))
                values[variable] = unit * random.randint(low, low + 6)
                if values[variable] % 2 and base % 2 == 0:
                    values[variable] *= 2
            elif base >= WIDE:
                values[variable] = random.randint(max(2, base // 2), base * 2)
            elif smaller and base % 2 == 0:
                values[variable] = step * random.randint(1, 3)
            else:
                values[variable] = random.randint(max(1, base - 1), base + 4)
        else:
            values[variable] = start if start % step == 0 else step * max(1, round(start / step))
    return moved({}, [(variable, value) for variable, value in values.items() if value != variable.lead.value])
