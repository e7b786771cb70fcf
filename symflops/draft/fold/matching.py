"""Compares items of a module list: their steps, their modules, and where their values come from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from symflops.draft.trace.steps import Ref, Step

NUMBER = re.compile(r"\.(\d+)(?=\.|$)")


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a module list: its index, its first step, and the end of its steps."""

    index: int
    first: int
    end: int


def handing(first: Sequence[Step], modes: Sequence[Any]) -> list[Step]:
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
    if relative(a, at) == relative(b, bt):
        return True
    if not at or relative(a, at)[0] == "in" or relative(b, bt)[0] == "in":
        return False
    x, y = at.rpartition(".")[2], bt.rpartition(".")[2]
    one, other = a.split("."), b.split(".")
    return len(one) == len(other) and all(p == q or (p == x and q == y) for p, q in zip(one, other, strict=True))


def beside(a: list[Step], b: list[Step], at: str, bt: str) -> tuple[str, ...]:
    """Other lists from which two items read modules of their own index."""
    found: dict[str, None] = {}
    names = [
        pair
        for one, other in zip(a, b, strict=True)
        for pair in ((one.path, other.path), *zip(one.parameters, other.parameters, strict=True), *of_parameters(one, other))
    ]
    for x, y in names:
        if relative(x, at)[0] == "at" and x != y:
            one, other = x.split("."), y.split(".")
            place = next(number for number, (p, q) in enumerate(zip(one, other, strict=True)) if p != q)
            found[".".join(one[:place])] = None
    return tuple(found)


def of_parameters(one: Step, other: Step) -> Iterator[tuple[str, str]]:
    """The names of parameters that two steps read as values."""
    for x, y in zip(one.operands, other.operands, strict=True):
        if x.kind == y.kind == "parameter":
            yield x.name, y.name


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
        for x, y in zip(one.operands, other.operands, strict=True):
            modes.append(correspondence(x, y, place_a, place_b, at, bt))
            if modes[-1] is None:
                return None
    return modes


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
