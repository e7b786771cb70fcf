"""Finds runs of equal module-list items: compares their steps, modules, and sources of operands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import Any

from symflops.draft.trace.steps import Ref, Step

NUMBER = re.compile(r"\.(\d+)(?=\.|$)")


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a module list: its index, and the range of its steps (first, end)."""

    index: int
    first: int
    end: int


def with_carried(first: Sequence[Step], modes: Sequence[Any]) -> list[Step]:
    """Steps of the first item, with operands from the previous item replaced by carried references."""
    waiting = iter(modes)

    def read(ref: Ref) -> Ref:
        mode, place = next(waiting)
        return Ref("carried", first[place].id) if mode == "last" else ref

    return [replace(step, operands=tuple(map(read, step.operands))) for step in first]


def lists_in(step: Step, inside: str) -> Iterator[str]:
    """Paths of the module lists below ``inside`` that contain a step, outermost first."""
    path = f".{step.path}"
    for match in NUMBER.finditer(path):
        prefix = path[1 : match.start()]
        if prefix and (not inside or prefix.startswith(f"{inside}.")):
            yield prefix


def next_list(steps: Sequence[Step], place: int, inside: str) -> tuple[str, list[Item]]:
    """Path and items of the first module list from ``place`` on that runs several items in order."""
    tried: set[str] = set()
    for position in range(place, len(steps)):
        for prefix in lists_in(steps[position], inside):
            items = [] if prefix in tried else items_of(steps, position, prefix)
            tried.add(prefix)
            if len(items) > 1:
                return prefix, items
    return "", []


def items_of(steps: Sequence[Step], place: int, prefix: str) -> list[Item]:
    """Consecutive items of a list from ``place`` on; each extends to the start of the next."""
    visits = visits_of(steps, place, prefix)
    if len(visits) < 2:
        return visits
    found = [replace(visit, end=following.first) for visit, following in pairwise(visits)]
    # steps between two items belong to the first of them, and as many after the last one
    kinds = [step.kind for step in steps[found[-1].first : found[-1].end]]
    last = visits[-1]
    end = last.first + len(kinds)
    if [step.kind for step in steps[last.first : end]] == kinds and end >= last.end:
        last = replace(last, end=end)
    return [*found, last]


def visits_of(steps: Sequence[Step], place: int, prefix: str) -> list[Item]:
    """Items of a list from ``place`` on, as long as the index increases by one."""
    pattern = re.compile(re.escape(prefix) + r"\.(\d+)(?:\.|$)")
    found: list[Item] = []
    for position in range(place, len(steps)):
        match = pattern.match(steps[position].path)
        if not match:
            continue
        index = int(match.group(1))
        if found and found[-1].index == index:
            found[-1] = replace(found[-1], end=position + 1)
        elif found and index != found[-1].index + 1:
            break
        else:
            found.append(Item(index, position, position + 1))
    return found


def relative(name: str, item: str) -> tuple[str, str]:
    """``("in", rest)`` for a path below an item, else ``("at", name)``."""
    if item and (name == item or name.startswith(f"{item}.")):
        return ("in", name[len(item) :])
    return ("at", name)


def alike(a: str, b: str, at: str, bt: str) -> bool:
    """Whether two paths are equal relative to their items, or use the items' indices in another list."""
    own, other_own = relative(a, at), relative(b, bt)
    if own == other_own or not at or "in" in (own[0], other_own[0]):
        return own == other_own
    x, y = at.rpartition(".")[2], bt.rpartition(".")[2]
    one, other = a.split("."), b.split(".")
    return len(one) == len(other) and all(p == q or (p == x and q == y) for p, q in zip(one, other, strict=True))


def parallel_lists(a: list[Step], b: list[Step], at: str, bt: str) -> tuple[str, ...]:
    """Other lists from which two items use modules of their own index."""
    names = [pair for one, other in zip(a, b, strict=True) for pair in common_names(one, other)]
    return tuple(dict.fromkeys(common_start(x, y) for x, y in names if relative(x, at)[0] == "at" and x != y))


def common_names(one: Step, other: Step) -> Iterator[tuple[str, str]]:
    """Paths and parameter names of two steps, in pairs."""
    yield one.path, other.path
    yield from zip(one.parameters, other.parameters, strict=True)
    yield from ((x.name, y.name) for x, y in zip(one.operands, other.operands, strict=True) if x.kind == y.kind == "parameter")


def common_start(x: str, y: str) -> str:
    """Common leading words of two paths of equal length."""
    return ".".join(
        word for word, _ in takewhile(lambda pair: pair[0] == pair[1], zip(x.split("."), y.split("."), strict=True))
    )


def compare(a: Sequence[Step], b: Sequence[Step], at: str, bt: str) -> list[Any] | None:
    """Correspondence of each operand of two items (:func:`correspondence`); None if the items differ."""
    if len(a) != len(b):
        return None
    place_a = {step.id: number for number, step in enumerate(a)}
    place_b = {step.id: number for number, step in enumerate(b)}
    modes: list[Any] = []
    for one, other in zip(a, b, strict=True):
        if key_of(one) != key_of(other) or not alike(one.path, other.path, at, bt):
            return None
        if not all(alike(x, y, at, bt) for x, y in zip(one.parameters, other.parameters, strict=True)):
            return None
        refs = zip(one.operands, other.operands, strict=True)
        modes += [correspondence(x, y, place_a, place_b, at, bt) for x, y in refs]
    return None if None in modes else modes


def key_of(step: Step) -> Any:
    """Comparison key of a step without names: kind, numbers, words, and counts of operands and parameters."""
    return (step.kind, step.numbers, step.words[:3], step.quiet, step.times, len(step.operands), len(step.parameters))


def correspondence(x: Ref, y: Ref, place_a: Mapping[int, int], place_b: Mapping[int, int], at: str, bt: str) -> Any:
    """Classify how an operand of one item corresponds to that of the next; None if it does not.

    ``("in", place)`` is computed by the item itself, ``("last", place)`` by the previous item, ``("same", ref)`` is one value
    for all, and ``("own", path)`` is a parameter of the item.
    """
    if y.kind == "step" and y.id in place_b:
        return ("in", place_b[y.id]) if x.kind == "step" and place_a.get(x.id) == place_b[y.id] else None
    if y.kind == "step" and y.id in place_a and x != y:
        return ("last", place_a[y.id]) if not (x.kind == "step" and x.id in place_a) else None
    if x == y:
        return ("same", x)
    if x.kind == y.kind == "parameter" and alike(x.name, y.name, at, bt):
        kind, text = relative(x.name, at)
        return ("own", text if kind == "in" else "")
    return None


def initials(first: Sequence[Step], modes: Sequence[Any]) -> dict[int, Ref] | None:
    """Initial values of the loop-carried values, by step position; None if one of them is ambiguous."""
    found: dict[int, Ref] = {}
    refs = [ref for step in first for ref in step.operands]
    for ref, mode in zip(refs, modes, strict=True):
        if mode[0] == "last" and found.setdefault(mode[1], ref) != ref:
            return None
    return found


@dataclass(frozen=True, slots=True)
class Run:
    """A run of equal items: its length, carried values, and operand correspondences."""

    count: int = 1
    carried: Sequence[tuple[Ref, int]] = ()
    modes: Sequence[Any] = field(default=())


def run_of(bodies: Sequence[list[Step]], names: Sequence[str], place: int, outside: Mapping[int, set[int]]) -> Run:
    """Run of equal items from ``place`` on; ``outside`` has the readers of each step, ``names`` the paths."""
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
        # only the next item may read values of an item
        if any(not outside.get(step.id, set()) <= {last, last + 1} for step in bodies[last]):
            break
        last += 1
    if last == place:
        return Run()
    return Run(last - place + 1, [(ref, bodies[place][number].id) for number, ref in carried.items()], modes)


def repeated_modules(steps: Sequence[Step], place: int, end: int) -> list[Item] | None:
    """First back-to-back repetitions of the same modules in a range of steps; None if there are none."""
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
    """Number of equal repetitions of ``length`` steps from ``first`` on; 1 if nothing repeats."""
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
