"""Runs of equal items: of a module list one after another, and of the same modules that run again at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from symflops.draft.fold.matching import Item, compare, initials
from symflops.draft.trace.steps import Ref, Step


@dataclass(frozen=True, slots=True)
class Run:
    """Equal items in a row: the carried values, and how the operands of one correspond to those of the next."""

    count: int = 1
    carried: Sequence[tuple[Ref, int]] = ()
    modes: Sequence[Any] = field(default=())


def run_of(bodies: Sequence[list[Step]], names: Sequence[str], place: int, outside: Mapping[int, set[int]]) -> Run:
    """The run from ``place`` on; ``outside`` are the items that read each step, ``names`` the paths of the items."""
    modes: list[Any] = []
    carried: dict[int, Ref] = {}
    last = place
    while last + 1 < len(bodies):
        found = compare(bodies[last], bodies[last + 1], names[last], names[last + 1])
        if found is None or (modes and found != modes):
            break
        if not modes:
            initial = initials(bodies[last], found)
            if initial is None:
                break
            carried, modes = initial, found
        # only the next item may read what an item made
        if any(not outside.get(step.id, set()) <= {last, last + 1} for step in bodies[last]):
            break
        last += 1
    if last == place:
        return Run()
    return Run(last - place + 1, [(ref, bodies[place][number].id) for number, ref in carried.items()], modes)


def repeated_modules(steps: Sequence[Step], place: int, end: int) -> list[Item] | None:
    """The first turns of the same modules between two places, one directly after another; None if there are none."""
    seen: dict[Any, int] = {}
    for position in range(place, min(end, len(steps))):
        step = steps[position]
        key = (step.path, step.parameters, step.kind)
        first = seen.get(key)
        if step.parameters:
            seen[key] = position
        if first is not None:
            length = position - first
            count = turns_from(steps, first, length)
            if count > 1:
                return [Item(turn, first + turn * length, first + (turn + 1) * length) for turn in range(count)]
    return None


def turns_from(steps: Sequence[Step], first: int, length: int) -> int:
    """How many turns of some steps are equal, with carried values that are one value each; 1 if there is only one turn."""
    count = 1
    modes: list[Any] = []
    while True:
        a, b = (list(steps[first + (count + more) * length :][:length]) for more in (-1, 0))
        found = compare(a, b, "", "") if len(b) == length else None
        if found is None or (modes and found != modes):
            break
        modes = found
        count += 1
    return count if count > 1 and initials(steps[first : first + length], modes) is not None else 1
