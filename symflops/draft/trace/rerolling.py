"""Rerolls repeated steps without parameters, as of a recurrence over time, into one iteration that runs several times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from symflops.draft.trace.steps import Ref, Step

LONGEST = 8  # steps in one iteration
FEWEST = 3  # iterations


def rerolled(steps: Sequence[Step]) -> list[Step]:
    """The steps with each repetition as its first iteration, whose ``times`` is the number of iterations."""
    found: list[Step] = []
    first_copy: dict[int, int] = {}
    place = 0
    while place < len(steps):
        length, count = repetition(steps, place)
        iterations = [steps[start : start + length] for start in range(place, place + length * count, length)]
        place += length * count
        if count == 1:
            found += iterations[0]
            continue
        copies = list(zip(*iterations, strict=True))
        first_copy |= {copy.id: group[0].id for group in copies for copy in group}
        found += [united(group, {first.id for first in iterations[0]}, first_copy) for group in copies]
    return [replace(step, operands=tuple(operands_of(step, first_copy))) for step in found]


def united(copies: Sequence[Step], inside: set[int], first_copy: Mapping[int, int]) -> Step:
    """One step for its copies in all iterations; operands in which they differ are appended, and counted in its words."""
    base = copies[0]
    columns = zip(*(step.operands for step in copies), strict=True)
    sources = [sources_of([renamed(ref, first_copy) for ref in refs], base.id, inside) for refs in columns]
    further = [ref for refs in sources for ref in refs[1:]]
    operands = (*(refs[0] for refs in sources), *further)
    return replace(base, operands=operands, times=len(copies), words=(*base.words, len(further)))


def sources_of(refs: Sequence[Ref], reader: int, inside: set[int]) -> list[Ref]:
    """What one operand is in the iterations: constants and later steps of the same iteration only if there is nothing else."""
    known = [ref for ref in dict.fromkeys(refs) if ref.kind != "constant"] or list(refs[:1])
    return [ref for ref in known if not (ref.kind == "step" and ref.id in inside and ref.id >= reader)] or known


def operands_of(step: Step, first_copy: Mapping[int, int]) -> list[Ref]:
    """The operands of a step, with references to first copies; a join reads each once, and never itself."""
    refs = [renamed(ref, first_copy) for ref in step.operands]
    return [ref for ref in dict.fromkeys(refs) if ref.id != step.id] if step.kind == "join" else refs


def renamed(ref: Ref, first_copy: Mapping[int, int]) -> Ref:
    """A reference to the first copy of a step."""
    return replace(ref, id=first_copy.get(ref.id, ref.id)) if ref.kind == "step" else ref


def repetition(steps: Sequence[Step], place: int) -> tuple[int, int]:
    """The number of steps in one iteration and of iterations from ``place`` on; ``(1, 1)`` if nothing repeats there."""
    for length in range(1, LONGEST + 1):
        first = steps[place : place + length]
        if any(step.parameters for step in first) or not any(step.kind in ("matmul", "solve") for step in first):
            continue
        count = 1
        while alike(first, steps[place + count * length : place + (count + 1) * length]):
            count += 1
        if count >= FEWEST:
            return length, count
    return 1, 1


def alike(first: Sequence[Step], other: Sequence[Step]) -> bool:
    """Whether two runs of steps differ in their operands alone."""
    return len(first) == len(other) and all(
        (a.kind, a.path, a.numbers, a.words, len(a.operands)) == (b.kind, b.path, b.numbers, b.words, len(b.operands))
        for a, b in zip(first, other, strict=True)
    )
