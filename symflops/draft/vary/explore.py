"""Finds which slots can be varied, alone or with others: the module runs, and its signature changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from symflops.draft.vary.slots import Slot
from symflops.draft.vary.variables import WIDE, Moves, State, Variable, moved, options

Trial = Callable[[State], Any]
Outcome = Literal["moves", "inert", "stuck", "shrinks", "limited"]


def candidates(value: int) -> list[int]:
    """Values to try in place of ``value``, the likeliest to be accepted first."""
    if value >= WIDE and value % 2 == 0:
        return [value * 2, value + 2, value + 1, value // 2, value + 8]
    return [value + 1, value * 2, value - 1, value + 2] if value > 1 else [value + 1, value + 3]


@dataclass
class Explorer:
    """Finds which slots (numbers of config and inputs) can be varied, alone or tied to others.

    The signature of a module in a state (slot -> value) has the parameter shapes and the sizes of contractions.

    Attributes:
        trial: Runs the module in a state; returns its signature, or None if the module rejects the state.
        slots: All slots.
        base: The signature of the module as given.
        late: Whether time is up.
        tell: Receives progress messages.
        moves: Receives the findings; slots in ``filled``, which have the class's defaults, are not varied with others.
        idle: Dimensions that can change with others, without effect on the signature.
    """

    trial: Trial
    slots: Sequence[Slot]
    base: Any
    late: Callable[[], bool]
    tell: Callable[[str], None]
    moves: Moves
    idle: set[Slot] = field(default_factory=set)

    def run(self) -> None:
        """Vary the batch size, then each slot alone, then the remaining slots together with others."""
        waiting = [slot for slot in self.slots if slot.kind != "length"]
        items = self.vary_batch([slot for slot in waiting if slot.first])
        waiting = [slot for slot in waiting if slot not in items]
        outcomes: dict[Slot, Outcome] = {}
        for number, slot in enumerate(waiting):
            self.tell(f"moving {slot.label} ({number + 1}/{len(waiting)})")
            outcomes[slot] = self.attempt(Variable(slot), candidates(slot.value), slot.of_config and slot.value >= WIDE)
            if outcomes[slot] == "moves":
                self.moves.variables.append(Variable(slot))
            elif outcomes[slot] == "inert":
                self.moves.inert.append(slot)
        self.tie_all({slot: outcome for slot, outcome in outcomes.items() if outcome not in ("moves", "inert")})
        self.tie_doubled()

    def vary_batch(self, firsts: Sequence[Slot]) -> list[Slot]:
        """Vary the batch size: all of ``firsts`` (first dimensions of tensors) that have the same value.

        Returns:
            The slots varied; empty if the module rejects every other value.
        """
        batch = [slot for slot in firsts if slot.value == firsts[0].value]
        rest = tuple((slot, 1) for slot in firsts if slot not in batch)
        for along in ((), rest) if firsts else ():
            variable = Variable(batch[0], tuple(batch[1:]), along=along)
            if self.attempt(variable, candidates(batch[0].value)) == "moves":
                self.moves.variables.append(variable)
                return batch
        return []

    def attempt(self, variable: Variable, values: Sequence[int], rounds: bool = False) -> Outcome:
        """Run the module with other ``values`` of a variable's lead, and classify the outcome.

        ``rounds`` says that other numbers may be rounded up to a multiple of this one, so that doubling it proves nothing.

        Returns:
            ``moves`` if the signature changes, ``shrinks`` if the module accepts only smaller values of a dimension,
            ``inert`` if the signature stays, ``limited`` if it stays but the module rejects values from the double on, and
            ``stuck`` if the module rejects all values.
        """
        shrinks = False
        most, lead = 0, variable.lead
        for place, value in enumerate(values):
            if rounds and place > 2 and most and not shrinks:
                break
            signature = self.signature(variable, value)
            if signature is None:
                continue
            most = max(most, value)
            if signature != self.base:
                if self.store_step(lead, value):
                    return "moves"
                shrinks = True
            elif value >= lead.value * 2 and not rounds:
                break
        if shrinks or not most:
            return "shrinks" if shrinks else "stuck"
        return "limited" if most < lead.value * 2 else "inert"

    def signature(self, variable: Variable, value: int) -> Any:
        """Signature with ``value`` for a variable's lead, its other slots following; None if rejected or out of time."""
        state = moved({}, [(variable, value)])
        return None if state is None or self.late() else self.trial(state)

    def store_step(self, lead: Slot, value: int) -> bool:
        """Store a lead's value that changes the signature; returns False if a dimension only became smaller.

        A smaller dimension is stored only if no other value is known.
        """
        moves = value > lead.value or lead.kind != "dimension"
        if moves or lead not in self.moves.steps:
            self.moves.steps[lead] = value
        return moves

    def tie_doubled(self) -> None:
        """Tie a number that cannot be doubled alone to an equal one, such as heads to key-value heads."""
        for place, variable in enumerate(self.moves.variables):
            slot, doubled = variable.lead, variable.lead.value * 2
            if len(variable.slots) > 1 or not slot.of_config or slot.value < 2 or slot in self.moves.filled or self.late():
                continue
            equal = [one for one in self.moves.inert if one.value == slot.value and one.of_config]
            if not equal or self.trial({slot: doubled}) is not None:
                continue
            for other in equal:
                tied = Variable(slot, (other,))
                if self.attempt(tied, [doubled]) == "moves":
                    self.moves.variables[place] = tied
                    self.moves.inert.remove(other)
                    break

    def tie_all(self, coupled: Mapping[Slot, Outcome]) -> None:
        """Try the slots that cannot be varied alone with others, and add each to ``moves`` by the result.

        It tries one other slot, then several, and adds the variable that works first to ``variables``. A slot for which
        none works becomes a variable of its own if it can only shrink, else inert or stuck. ``coupled`` maps these slots to
        the outcome of varying them alone.
        """
        done: set[Slot] = set()
        covered: set[Slot] = set()
        for slot in sorted(coupled, key=lambda one: one.of_run):  # runs last: image tokens depend on image sides
            if slot in done or slot in self.moves.filled or self.late():
                continue
            self.tell(f"moving {slot.label} with others")
            found = self.found_tie(slot, coupled)
            if found is None and slot in self.idle:
                covered.add(slot)
                self.moves.inert.append(slot)
                continue
            if found is None and coupled[slot] == "shrinks":
                found = Variable(slot)
            if found:
                if found not in self.moves.variables:
                    self.moves.variables.append(found)
                covered.update(found.slots)
                done.update(movable_slots(found))
        self.classify([slot for slot in coupled if slot not in covered and slot not in self.moves.filled], coupled, covered)

    def classify(self, free: Sequence[Slot], coupled: Mapping[Slot, Outcome], covered: set[Slot]) -> None:
        """Add the ``free`` slots, which cannot be varied with others either, to the inert or the stuck ones.

        Args:
            free: These slots; fields that are ``limited`` become inert, all others stuck.
            coupled: The outcome of varying each slot alone.
            covered: Slots varied together with others, which are no longer inert.
        """
        limited = [slot for slot in free if coupled[slot] == "limited" and slot.kind != "dimension"]
        self.moves.stuck += [slot for slot in free if slot not in limited]
        self.moves.inert = [slot for slot in (*self.moves.inert, *limited) if slot not in covered or slot in self.idle]

    def found_tie(self, slot: Slot, coupled: Mapping[Slot, Outcome]) -> Variable | None:
        """First variable in which ``slot`` can be varied together with others; None if there is none."""
        for option in options(slot, list(coupled), self.slots, self.moves):
            if self.late():
                return None
            outcome = self.attempt(option, option_values(option))
            if outcome == "moves" and self.depends_on(option, slot):
                return option
            if outcome == "inert" and coupled[slot] == "stuck" and slot.kind == "dimension":
                self.idle.add(slot)
        return None

    def depends_on(self, option: Variable, slot: Slot) -> bool:
        """Whether the signature is another one if ``slot`` alone of the option's slots keeps its given value."""
        state = moved({}, [(option, self.moves.steps[option.lead])])
        return state is not None and self.trial({one: size for one, size in state.items() if one != slot}) != self.trial(state)


def option_values(option: Variable) -> list[int]:
    """Values to try for the lead of ``option``, the slot that determines the variable's other slots.

    They are the double, and half and a third if these are integers, if other slots are proportional to a power of the lead;
    else the two likeliest.
    """
    lead = option.lead.value
    if option.along:
        return [lead * 2, *(lead // part for part in (2, 3) if lead % part == 0 and lead > part)]
    return candidates(lead)[:2] if lead < WIDE else [lead * 2, lead + 8]


def movable_slots(found: Variable) -> list[Slot]:
    """Slots of the variable ``found`` that need no more attempts.

    If the lead is a config number, these are the config numbers and the dimensions of the same value. Others, such as image
    sides, may have a variable of their own. If the lead is a dimension, these are all slots.
    """
    lead = found.lead
    return [slot for slot in found.slots if not lead.of_config or slot.of_config or slot.value == lead.value]
