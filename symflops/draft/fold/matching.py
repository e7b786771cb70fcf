"""Finds runs of equal items: compares their steps, their modules, and where their values come from."""

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
    """An item of a module list: its index, its first step, and the end of its steps."""

    index: int
    first: int
    end: int


def with_carried(first: Sequence[Step], modes: Sequence[Any]) -> list[Step]:
    """The first item, with what an item gets from the one before marked as carried."""
    waiting = iter(modes)

    def read(ref: Ref) -> Ref:
        mode, place = next(waiting)
        return Ref("carried", first[place].id) if mode == "last" else ref

    return [replace(step, operands=tuple(map(read, step.operands))) for step in first]


def lists_in(step: Step, inside: str) -> Iterator[str]:
    """The paths of the module lists below ``inside`` that a step is in, outermost first."""
    path = f".{step.path}"
    for match in NUMBER.finditer(path):
        prefix = path[1 : match.start()]
        if prefix and (not inside or prefix.startswith(f"{inside}.")):
            yield prefix


def next_list(steps: Sequence[Step], place: int, inside: str) -> tuple[str, list[Item]]:
    """The path and the items of the first module list from ``place`` on with several items in a row."""
    tried: set[str] = set()
    for position in range(place, len(steps)):
        for prefix in lists_in(steps[position], inside):
            items = [] if prefix in tried else items_of(steps, position, prefix)
            tried.add(prefix)
            if len(items) > 1:
                return prefix, items
    return "", []


def items_of(steps: Sequence[Step], place: int, prefix: str) -> list[Item]:
    """The items of a list that run one after another from ``place`` on, each up to the next one."""
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
    """The items of a list that run from ``place`` on, as long as the index goes up by one."""
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
    """A path below an item, or an absolute one."""
    if item and (name == item or name.startswith(f"{item}.")):
        return ("in", name[len(item) :])
    return ("at", name)


def alike(a: str, b: str, at: str, bt: str) -> bool:
    """Whether two paths are the same relative to two items, or have the same index in another list."""
    own, other_own = relative(a, at), relative(b, bt)
    if own == other_own or not at or "in" in (own[0], other_own[0]):
        return own == other_own
    x, y = at.rpartition(".")[2], bt.rpartition(".")[2]
    one, other = a.split("."), b.split(".")
    return len(one) == len(other) and all(p == q or (p == x and q == y) for p, q in zip(one, other, strict=True))


def parallel_lists(a: list[Step], b: list[Step], at: str, bt: str) -> tuple[str, ...]:
    """Other lists from which two items read modules of their own index."""
    names = [pair for one, other in zip(a, b, strict=True) for pair in common_names(one, other)]
    return tuple(dict.fromkeys(common_start(x, y) for x, y in names if relative(x, at)[0] == "at" and x != y))


def common_names(one: Step, other: Step) -> Iterator[tuple[str, str]]:
    """The path and the names of parameters of two steps, in pairs."""
    yield one.path, other.path
    yield from zip(one.parameters, other.parameters, strict=True)
    yield from ((x.name, y.name) for x, y in zip(one.operands, other.operands, strict=True) if x.kind == y.kind == "parameter")


def common_start(x: str, y: str) -> str:
    """The words of two paths of one length up to the first that differs."""
    return ".".join(
        word for word, _ in takewhile(lambda pair: pair[0] == pair[1], zip(x.split("."), y.split("."), strict=True))
    )


def compare(a: Sequence[Step], b: Sequence[Step], at: str, bt: str) -> list[Any] | None:
    """How each operand of two items corresponds, see :func:`correspondence`; None if the items are not equal."""
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
    """What two steps must have in common besides their names."""
    return (step.kind, step.numbers, step.words[:3], step.quiet, step.times, len(step.operands), len(step.parameters))


def correspondence(x: Ref, y: Ref, place_a: Mapping[int, int], place_b: Mapping[int, int], at: str, bt: str) -> Any:
    """How an operand of an item corresponds to that of the next one; None if it does not.

    ``("in", place)`` is made by the item, ``("last", place)`` by the item before, ``("same", ref)`` is one value for all, and
    ``("own", path)`` is a parameter of the item.
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
    """What the first item reads in place of values of an item before; None if that is not one value for each of them."""
    found: dict[int, Ref] = {}
    refs = [ref for step in first for ref in step.operands]
    for ref, mode in zip(refs, modes, strict=True):
        if mode[0] == "last" and found.setdefault(mode[1], ref) != ref:
            return None
    return found


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
