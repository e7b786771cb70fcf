"""Queries on the entries of a plan: all of them with their places, what they read, and what they make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from symflops.draft.trace.steps import Branch, Loop, Ref, Step


def walk(entries: Iterable[Any], at: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Every entry with its place, and after a loop or a branch the entries inside."""
    for place, one in enumerate(entries):
        yield (*at, place), one
        if isinstance(one, Loop):
            yield from walk(one.body, (*at, place))
        elif isinstance(one, Branch):
            for case, inside in enumerate(one.cases):
                yield from walk(inside, (*at, place, case))


def steps_in(entries: Iterable[Any]) -> list[Step]:
    """All steps, those in loops and branches too."""
    return [one for _, one in walk(entries) if isinstance(one, Step)]


def operands_of(entry: Any) -> Iterable[Ref]:
    """What one entry reads, without the entries inside."""
    if isinstance(entry, Loop):
        return [init for init, _ in entry.carried]
    if isinstance(entry, Branch):
        return [ref for choice in entry.choices for ref in choice.sources]
    operands: tuple[Ref, ...] = entry.operands
    return operands


def refs_of(entries: Iterable[Any]) -> list[Ref]:
    """Everything that entries read."""
    return [ref for _, one in walk(entries) for ref in operands_of(one)]


def readers_of(entries: Sequence[Any], later: Sequence[Ref]) -> dict[int, list[int]]:
    """For each value the steps that read it; -1 stands for a loop, a branch, or what comes later."""
    found: dict[int, list[int]] = {}
    for entry in entries:
        for ref in dict.fromkeys(refs_of([entry])):
            found.setdefault(ref.id, []).append(entry.id if isinstance(entry, Step) else -1)
    for ref in later:
        found.setdefault(ref.id, []).append(-1)
    return found


def values_in(entries: Sequence[Any]) -> set[int]:
    """The values that entries make."""
    chosen = {choice.id for entry in entries if isinstance(entry, Branch) for choice in entry.choices}
    return chosen | {step.id for step in steps_in(entries)}


def parameters_of(step: Step) -> tuple[str, ...]:
    """The parameters that a step reads."""
    return (*step.parameters, *(ref.name for ref in step.operands if ref.kind == "parameter"))


def names_read(entries: Iterable[Any]) -> Iterator[str]:
    """The names of the parameters that steps read, for every item of a loop."""
    for entry in entries:
        if isinstance(entry, Step):
            yield from parameters_of(entry)
        elif isinstance(entry, Loop):
            yield from (name for part in entry.body for name in names_in_loop(part, entry))


def names_in_loop(part: Any, loop: Loop) -> Iterator[str]:
    """The names of the parameters that one part of a loop's body reads, for every item that has it."""
    if isinstance(part, Branch):
        for number, (case, item) in enumerate(zip(part.cases, part.items, strict=True)):
            places = [loop.start + place for place, one in enumerate(part.chosen) if one == number]
            yield from of_items(list(names_read(case)), loop, item, places)
    else:
        every = range(loop.start, loop.start + loop.count)
        yield from of_items(list(names_read([part])), loop, loop.start, [] if loop.shared else every)


def of_items(names: list[str], loop: Loop, item: int, places: Sequence[int]) -> Iterator[str]:
    """Names of parameters of one item of a loop, then those of the items at ``places``."""
    yield from names
    for prefix in (loop.prefix, *loop.others):
        first = f"{prefix}.{item}."
        yield from (f"{prefix}.{at}.{name[len(first) :]}" for at in places for name in names if name.startswith(first))
