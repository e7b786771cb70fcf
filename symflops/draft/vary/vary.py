"""Finds what moves: which numbers of a subject can change, alone or together, and draws well-formed samples of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from random import Random
from typing import Any

from symflops.draft.vary.sequences import RUN
from symflops.draft.vary.ties import Moves, Variable, options
from symflops.draft.vary.variables import Slot, State

Trial = Callable[[State], Any]
WIDE = 8


def moved(state: Mapping[Slot, int], variables: Sequence[tuple[Variable, int]]) -> State | None:
    """A state in which each of some variables has another value of its lead; None where a ratio does not come out whole."""
    factors: dict[Slot, Fraction] = {}
    shifts: dict[Slot, int] = {}
    for variable, value in variables:
        base = state.get(variable.lead, variable.lead.value)
        for slot in (variable.lead, *variable.ratio):
            factors[slot] = factors.get(slot, Fraction(1)) * Fraction(value, max(1, base))
        for slot, power in variable.along:
            factors[slot] = factors.get(slot, Fraction(1)) * Fraction(max(1, value), max(1, base)) ** power
        for slot in variable.delta:
            shifts[slot] = shifts.get(slot, 0) + value - base
    found = dict(state)
    for slot in {*factors, *shifts}:
        size = found.get(slot, slot.value) * factors.get(slot, Fraction(1)) + shifts.get(slot, 0)
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
        self.idle: set[Slot] = set()

    def late(self) -> bool:
        """Whether time is up."""
        return time.monotonic() > self.deadline

    def attempt(self, variable: Variable, values: Sequence[int] | None = None) -> str:
        """``moves``, ``inert`` or ``stuck``; ``shrinks`` or ``held`` for one that another one limits.

        A dimension that shrinks moves downwards only; a number that is held takes only what rounding hides.
        """
        accepted = shrinks = False
        most = 0
        lead = variable.lead
        # the next multiple of a number may be that of its double as well
        rounds = lead.side == "config" and lead.value >= WIDE and values is None
        tries = candidates(lead.value) if values is None else values
        for place, value in enumerate(tries):
            if place > 2 and accepted and rounds and not shrinks:
                break
            state = moved({}, [(variable, value)])
            if state is None or self.late():
                continue
            found = self.trial(state)
            if found is None:
                continue
            accepted, most = True, max(most, value)
            if found != self.base:
                self.moves.steps.setdefault(lead, value)
                if value > lead.value or lead.kind != "dimension":
                    self.moves.steps[lead] = value
                    return "moves"
                shrinks = True
            elif value >= lead.value * 2 and not rounds:
                break
        if shrinks:
            return "shrinks"
        if accepted and most < lead.value * 2:
            return "held"
        return "inert" if accepted else "stuck"

    def run(self) -> Moves:
        """Move the batch, then each slot alone, then those that did not with others."""
        waiting = [slot for slot in self.slots if slot.kind != "length"]
        firsts = [slot for slot in waiting if slot.kind == "dimension" and slot.key[-1] == 0]
        if firsts:
            batch = [slot for slot in firsts if slot.value == firsts[0].value]
            rest = tuple((slot, 1) for slot in firsts if slot not in batch)
            for variable in (Variable(batch[0], tuple(batch[1:])), Variable(batch[0], tuple(batch[1:]), along=rest)):
                if self.attempt(variable) == "moves":
                    self.moves.variables.append(variable)
                    waiting = [slot for slot in waiting if slot not in batch]
                    break
        states: dict[Slot, str] = {}
        for number, slot in enumerate(waiting):
            self.tell(f"moving {slot.label} ({number + 1}/{len(waiting)})")
            states[slot] = self.attempt(Variable(slot))
            if states[slot] == "moves":
                self.moves.variables.append(Variable(slot))
            elif states[slot] == "inert":
                self.moves.inert.append(slot)
        self.ties({slot: state for slot, state in states.items() if state in ("stuck", "held", "shrinks")})
        self.doubled()
        return self.moves

    def doubled(self) -> None:
        """Tie a number that cannot be doubled alone to an equal one with which it can, as heads are to those of keys."""
        for place, variable in enumerate(self.moves.variables):
            slot, values = variable.lead, [variable.lead.value * 2]
            if len(variable.slots) > 1 or slot.side != "config" or slot.value < 2 or slot in self.filled or self.late():
                continue
            equal = [one for one in self.moves.inert if one.value == slot.value and one.side == "config"]
            if not equal or self.trial({slot: values[0]}) is not None:
                continue
            for other in equal:
                tied = Variable(slot, (other,))
                if self.attempt(tied, values) == "moves":
                    self.moves.variables[place] = tied
                    self.moves.inert.remove(other)
                    break

    def ties(self, fast: Mapping[Slot, str]) -> None:
        """Move what does not move alone with one other, then with several."""
        done: set[Slot] = set()
        covered: set[Slot] = set()
        for slot, state in sorted(fast.items(), key=lambda one: RUN in one[0].key):  # tokens of a picture follow its sides
            if slot in done or slot in self.filled or self.late():
                continue
            self.tell(f"moving {slot.label} with others")
            found = self.tied(slot, fast)
            if found is None and slot in self.idle:
                covered.add(slot)
                self.moves.inert.append(slot)
                continue
            if found is None and state == "shrinks":
                found = Variable(slot)
            if found:
                if found not in self.moves.variables:
                    self.moves.variables.append(found)
                covered.update(found.slots)
                # the sides that a patch divides may still move by themselves
                done.update(
                    one
                    for one in found.slots
                    if found.lead.side != "config" or one.side == "config" or one.value == found.lead.value
                )
        free = [slot for slot in fast if slot not in covered and slot not in self.filled]
        self.moves.stuck += [slot for slot in free if fast[slot] != "held" or slot.kind == "dimension"]
        self.moves.inert += [slot for slot in free if fast[slot] == "held" and slot.kind != "dimension"]
        self.moves.inert = [slot for slot in self.moves.inert if slot not in covered or slot in self.idle]

    def tied(self, slot: Slot, fast: Mapping[Slot, str]) -> Variable | None:
        """A variable in which a slot moves that does not move alone."""
        for option in options(slot, list(fast), self.slots, self.moves):
            if self.late():
                return None
            lead = option.lead.value
            values = candidates(lead)[:2] if lead < WIDE else [lead * 2, lead + 8]
            if option.along:
                values = [lead * 2, *(lead // part for part in (2, 3) if lead % part == 0 and lead > part)]
            state = self.attempt(option, values)
            if state == "moves" and self.matters(option, slot):
                return option
            if state == "inert" and fast[slot] == "stuck" and slot.kind == "dimension":
                self.idle.add(slot)
        return None

    def matters(self, option: Variable, slot: Slot) -> bool:
        """Whether it is not the others alone that move."""
        state = moved({}, [(option, self.moves.steps[option.lead])])
        return state is not None and self.trial({one: size for one, size in state.items() if one != slot}) != self.trial(state)


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
            other.lead.value
            if variable.lead in other.ratio
            else values[other] * (2 if (base // other.lead.value) % 2 == 0 else 1)
            for other in values
            if 1 < other.lead.value < base
            and base % other.lead.value == 0
            and (variable.lead.kind == "number" or other.lead.value <= 4)
        ]
        step = lcm(*smaller) if smaller else 1
        start = origin.get(variable.lead, base)
        if variable in chosen:
            if variable.along or any(slot.value % base for slot in variable.ratio):  # these have to come out whole
                parts = [base // part for part in (2, 3) if base % part == 0 and base > part]
                whole = [value for value in (base * 2, base * 3, *parts) if moved({}, [(variable, value)]) is not None]
                values[variable] = random.choice([base, *whole])
            elif base >= WIDE and (smaller or (variable.lead.kind == "number" and base % 2 == 0)):
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
            values[variable] = start if start % step == 0 or variable.along else step * max(1, round(start / step))
    return moved({}, [(variable, value) for variable, value in values.items() if value != variable.lead.value])


__all__ = ["Explorer", "Moves", "Variable", "candidates", "draw", "moved", "well_formed"]
