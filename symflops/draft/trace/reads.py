"""What entries of a plan read and make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symflops.draft.trace.steps import Branch, Loop, Ref, Step


def readers_of(entries: Sequence[Any], later: Sequence[Ref]) -> dict[int, list[int]]:
    """For each value the steps that read it, -1 for what comes later."""
    found: dict[int, list[int]] = {}
    for entry in entries:
        refs = entry.operands if isinstance(entry, Step) else refs_of([entry])
        for ref in dict.fromkeys(refs):
            found.setdefault(ref.id, []).append(entry.id if isinstance(entry, Step) else -1)
    for ref in later:
        found.setdefault(ref.id, []).append(-1)
    return found


def refs_of(entries: Sequence[Any]) -> list[Ref]:
    """Everything that entries read."""
    found: list[Ref] = []
    for entry in entries:
        if isinstance(entry, Loop):
            found += [init for init, _ in entry.carried]
            found += refs_of(entry.body)
        elif isinstance(entry, Branch):
            found += [ref for choice in entry.choices for ref in choice.sources]
            for case in entry.cases:
                found += refs_of(case)
        else:
            found += entry.operands
    return found


def steps_in(entries: Sequence[Any]) -> list[Step]:
    """All steps of entries, those in loops and branches too."""
    found: list[Step] = []
    for entry in entries:
        if isinstance(entry, Loop):
            found += steps_in(entry.body)
        elif isinstance(entry, Branch):
            for case in entry.cases:
                found += steps_in(case)
        else:
            found.append(entry)
    return found


def values_in(entries: Sequence[Any]) -> set[int]:
    """The values that entries make."""
    chosen = {choice.id for entry in entries if isinstance(entry, Branch) for choice in entry.choices}
    return chosen | {step.id for step in steps_in(entries)}


def names_read(entries: Sequence[Any]) -> list[str]:
    """The names of the parameters that steps read, of every item of a loop."""
    found: list[str] = []
    for entry in entries:
        if isinstance(entry, Step):
            found += (*entry.parameters, *(ref.name for ref in entry.operands if ref.kind == "parameter"))
        elif isinstance(entry, Loop):
            for part in entry.body:
                if isinstance(part, Branch):
                    for number, (case, item) in enumerate(zip(part.cases, part.items, strict=True)):
                        places = [entry.start + place for place, one in enumerate(part.chosen) if one == number]
                        found += of_items(names_read(case), entry, item, places)
                else:
                    places = [] if entry.shared else list(range(entry.start, entry.start + entry.count))
                    found += of_items(names_read([part]), entry, entry.start, places)
    return found


def of_items(names: list[str], loop: Loop, item: int, places: Sequence[int]) -> list[str]:
    """Names of parameters of one item of a loop as those of others."""
    found = list(names)
    for prefix in (loop.prefix, *loop.others):
        first = f"{prefix}.{item}."
        for place in places:
            found += [f"{prefix}.{place}.{name[len(first) :]}" for name in names if name.startswith(first)]
    return found
