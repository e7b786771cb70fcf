"""Samples one structure: chooses a base, changes each variable alone, then many at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from symflops.draft.sample.samples import Family, Runner, Sample, executed, key_of, skeleton
from symflops.draft.trace.steps import walk
from symflops.draft.vary.slots import Slot
from symflops.draft.vary.variables import WIDE, Moves, Variable, moved, random_state

SAMPLES = 22
DRAWS = 60
FAR = 16
FEWEST_ITEMS = 5
MOST_ITEMS = 16  # of a list that could be longer
MOST_GROWN = 4
COUNT = 8  # numbers from here on hardly change the structure


def family_of(runner: Runner, moves: Moves, random: Random) -> Family:
    """Draw the samples of a subject: runs of equal structure with other values of the variables.

    A variable that changes the structure alone, but not together with an equal one, is tied to it in ``moves``.
    """
    base = base_of(runner, moves)
    sampler = Sampler(runner, base, skeleton(base.plan))
    sampler.tie(moves)
    samples, structural, unfinished = [base], [], False
    for number, variable in enumerate(moves.variables):
        runner.tell(f"sampling {variable.lead.label} ({number + 1}/{len(moves.variables)})")
        alone = [*sampler.vary_alone(number, variable, moves.steps)]
        samples += alone
        if not alone:
            structural.append(variable)
            unfinished = unfinished or runner.late()
    joint, refused = sampler.vary_jointly([variable for variable in moves.variables if variable not in structural], random)
    return Family([*samples, *joint], refused, structural, unfinished)


@dataclass(frozen=True, slots=True)
class Sampler:
    """Draws samples that have the structure of a base sample.

    Attributes:
        runner: Runs the module.
        base: The base sample.
        structure: The :func:`skeleton` of its plan.
    """

    runner: Runner
    base: Sample
    structure: Any

    def fits(self, sample: Sample) -> bool:
        """Whether a sample has the structure of the base sample, so that only numbers differ."""
        return bool(skeleton(sample.plan) == self.structure)

    def tie(self, moves: Moves) -> None:
        """Tie variables that change the structure unless they stay equal; changes ``moves``."""
        for variable in list(moves.variables):
            if variable in moves.variables and not self.runner.late():
                self.tie_to_equal(variable, moves)

    def tie_to_equal(self, variable: Variable, moves: Moves) -> None:
        """Tie a variable that changes the structure alone to the first equal one with which it does not."""
        lead = variable.lead
        equal = [one for one in moves.variables if one is not variable and one.lead.value == lead.value]
        if lead.within(self.base.state) < 2 or not equal or not lead.of_config or self.keeps(variable):
            return
        for other in equal:
            tied = Variable(lead, (*variable.ratio, *other.slots), variable.delta)
            if not other.delta and self.keeps(tied):
                moves.variables[moves.variables.index(variable)] = tied
                moves.variables.remove(other)
                return

    def keeps(self, variable: Variable) -> bool:
        """Whether the structure stays if the lead is doubled or, if the module rejects that, increased by one."""
        now = variable.lead.within(self.base.state)
        found = (self.runner.moved(self.base, variable, value) for value in (now * 2, now + 1))
        first = next((one for one in found if one is not None), None)
        return first is not None and self.fits(first)

    def vary_alone(self, number: int, variable: Variable, steps: Mapping[Slot, int]) -> Iterator[Sample]:
        """Samples that differ from the base in one variable, in one of them by a large factor if it is a size.

        Args:
            number: The position of the variable among all variables.
            variable: The variable.
            steps: Lead of a variable -> a value that the module is known to accept.
        """
        now = variable.lead.within(self.base.state)
        # consecutive values reveal how a length is rounded
        wanted = 4 if variable.lead.kind == "dimension" else 2 if variable.lead.value < WIDE else 1
        count = 0
        for value in values_alone(variable, now, steps.get(variable.lead, now + 1)):
            if count >= wanted or self.runner.late():
                break
            found = self.at(number, variable, value)
            count += len(found)
            yield from found
        if count and any(slot.of_config and slot.value >= FAR for slot in variable.slots) and not self.runner.late():
            yield from self.at(number, variable, now * FAR)

    def at(self, number: int, variable: Variable, value: int) -> Sequence[Sample]:
        """List of one sample, the base with another value of variable ``number``.

        Empty if the module rejects the value, or the structure is another one.
        """
        found = self.runner.moved(self.base, variable, value, number)
        return [replace(found, variable=number)] if found is not None and self.fits(found) else []

    def vary_jointly(self, free: list[Variable], random: Random) -> tuple[list[Sample], int]:
        """(Samples in which many of the ``free`` variables differ from the base, number of others refused).

        A sample is refused if its structure is not that of the base.
        """
        samples: list[Sample] = []
        tries = refused = 0
        while free and len(samples) < SAMPLES and tries < DRAWS and not self.runner.late():
            tries += 1
            self.runner.tell(f"sampling {len(samples)}/{SAMPLES}")
            state = random_state(free, random, 0.9 if tries % 3 else 0.4, self.base.state, self.runner.most)
            found = self.runner.sample(state)
            if found is not None and self.fits(found):
                samples.append(found)
            elif found is not None:
                refused += 1
        return samples, refused


def values_alone(variable: Variable, now: int, step: int) -> Iterator[int]:
    """Values of a variable's lead to try instead of its present value ``now``.

    The first is ``step``, which the module is known to accept.
    """
    lower = [now - 1] if variable.lead.kind == "dimension" else []
    values = [step, *lower, now + 1, now + 2, now + 3, now * 2, now - 1, now * 3]
    yield from dict.fromkeys(value for value in values if value > 0 and value != now)


def base_of(runner: Runner, moves: Moves) -> Sample:
    """Base sample of a subject: its module lists are long enough to fold, its small counts typical.

    A count is typical if a larger one gives the same structure.
    """
    base = with_long_lists(runner, moves)
    for variable in moves.variables:
        if is_small_count(variable, base, moves) and not runner.late():
            base = stable_base(runner, base, variable)
    return base


def with_long_lists(runner: Runner, moves: Moves) -> Sample:
    """Sample whose module lists are long enough to distinguish first, middle and last items."""
    best = runner.sample({})
    assert best is not None
    chosen: list[tuple[Variable, int]] = []
    for number, variable in enumerate(one for one in moves.variables if is_length(runner, one, moves)):
        if variable.lead.value >= FEWEST_ITEMS:
            continue
        for value in (FEWEST_ITEMS + number % 3, FEWEST_ITEMS):
            found = runner.sample(moved({}, [*chosen, (variable, value)]))
            if found is not None:
                if folds(best, found, runner.sample(moved({}, [*chosen, (variable, value + 1)])), variable, value):
                    best = found
                    chosen.append((variable, value))
                break
    return best


def is_length(runner: Runner, variable: Variable, moves: Moves) -> bool:
    """Whether a variable determines the length of module lists, and small enough to be increased."""
    value = moves.steps.get(variable.lead)
    if value is None or variable.lead in moves.filled or is_levels(variable, moves) or variable.lead.value >= MOST_ITEMS:
        return False
    state = moved({}, [(variable, value)])
    lengths = None if state is None else runner.lists.get(key_of(state))
    return lengths is not None and lengths != runner.lists[()]


def folds(before: Sample, found: Sample, after: Sample | None, variable: Variable, value: int) -> bool:
    """Whether a longer module list folds into a loop, so that one more item adds less to the plan.

    Args:
        before: The sample with the list as it was.
        found: The sample with ``value`` items.
        after: The sample with one more item; without it, the list counts as folded.
        variable: The variable that determines the length of the list.
        value: Its value in ``found``.
    """
    if after is None:
        return True
    first, second, third = (sum(1 for _ in walk(one.plan.entries)) for one in (before, found, after))
    return third == second or (second - first) != (third - second) * (value - variable.lead.within(before.state))


def is_levels(variable: Variable, moves: Moves) -> bool:
    """Whether a variable is a number of levels: the length of a config list whose items vary, too."""
    lengths = [slot.key for slot in variable.slots if slot.kind == "length"]
    return any(slot.key[:-1] in lengths for one in moves.variables for slot in one.slots)


def is_small_count(variable: Variable, base: Sample, moves: Moves) -> bool:
    """Whether a variable may be a count so small that the structure is another one than for larger counts."""
    lead = variable.lead
    counts = lead.first or (lead.of_config and not variable.along)
    return counts and lead.within(base.state) < COUNT and lead not in moves.filled and not is_levels(variable, moves)


def stable_base(runner: Runner, base: Sample, variable: Variable) -> Sample:
    """Base with ``variable`` increased until a further increase preserves the structure; else ``base``.

    A single item of a kind is not folded, while two and three form a loop; likewise for one, two and three batch items.
    """
    before = base
    now = variable.lead.within(base.state)
    for value in range(now + 1, now + MOST_GROWN + 1):
        grown = runner.moved(base, variable, value)
        if grown is None:
            return base
        if skeleton(grown.plan) == skeleton(before.plan):
            item = variable.lead.of_config and variable.lead.of_list
            return before if not item or executed(grown.plan.entries) > executed(before.plan.entries) else base
        before = grown
    return base
