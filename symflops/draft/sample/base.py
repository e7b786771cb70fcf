"""Chooses the base sample: its module lists are long enough, and its structure stays when a number grows."""

from __future__ import annotations

from symflops.draft.sample.family import Sample, executed, skeleton
from symflops.draft.sample.runner import Runner, key_of
from symflops.draft.trace.reads import walk
from symflops.draft.vary.variables import Moves, Variable, moved

FEWEST_ITEMS = 5
MOST_ITEMS = 16  # of a list that could be longer
MOST_GROWN = 4
COUNT = 8  # a number from here on hardly changes the structure


def base_of(runner: Runner, moves: Moves) -> Sample:
    """The base sample of a subject."""
    base = with_long_lists(runner, moves)
    for variable in moves.variables:
        if may_settle(variable, base, moves) and not runner.late():
            base = settled(runner, base, variable)
    return base


def with_long_lists(runner: Runner, moves: Moves) -> Sample:
    """A sample whose module lists are long enough to tell first, middle and last items apart."""
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
    """Whether a variable decides how long module lists are."""
    value = moves.steps.get(variable.lead)
    if value is None or variable.lead in moves.filled or is_levels(variable, moves) or variable.lead.value >= MOST_ITEMS:
        return False
    state = moved({}, [(variable, value)])
    lengths = None if state is None else runner.lists.get(key_of(state))
    return lengths is not None and lengths != runner.lists[()]


def folds(before: Sample, found: Sample, after: Sample | None, variable: Variable, value: int) -> bool:
    """Whether a longer list is a loop: with one item more its plan does not grow as much as it did with each of the others."""
    if after is None:
        return True
    first, second, third = (sum(1 for _ in walk(one.plan.entries)) for one in (before, found, after))
    return third == second or (second - first) != (third - second) * (value - variable.lead.within(before.state))


def is_levels(variable: Variable, moves: Moves) -> bool:
    """Whether a variable is the length of lists whose items move: a number of levels, not of layers."""
    lengths = [slot.key for slot in variable.slots if slot.kind == "length"]
    return any(slot.key[:-1] in lengths for one in moves.variables for slot in one.slots)


def may_settle(variable: Variable, base: Sample, moves: Moves) -> bool:
    """Whether a variable may be a small count whose structure differs from that of a larger one."""
    lead = variable.lead
    counts = lead.first or (lead.of_config and not variable.along)
    return counts and lead.within(base.state) < COUNT and lead not in moves.filled and not is_levels(variable, moves)


def settled(runner: Runner, base: Sample, variable: Variable) -> Sample:
    """A base whose structure stays when a variable grows, in place of one whose structure does not.

    One item of a kind stands alone, while two and three are a loop; so do one, two and three samples of a batch.
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
