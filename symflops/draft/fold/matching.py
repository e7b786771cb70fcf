"""Whether items of a module list are the same: their steps, their modules, and where their values come from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from symflops.draft.trace.steps import Ref, Step

NUMBER = re.compile(r"\.(\d+)(?=\.|$)")


def handing(first: list[Step], modes: list[Any]) -> list[Step]:
    """The first item, in which what each item gets from the one before is marked as carried."""
    found: list[Step] = []
    place = 0
    for step in first:
        refs = []
        for ref in step.operands:
            mode = modes[place]
            place += 1
            refs.append(Ref("carried", first[mode[1]].id) if mode[0] == "last" else ref)
        found.append(replace(step, operands=tuple(refs)))
    return found


def lists_in(step: Step, inside: str) -> Iterator[str]:
    """The paths of the lists of modules below ``inside`` in which a step is, outermost first."""
    path = f".{step.path}"
    for match in NUMBER.finditer(path):
        prefix = path[1 : match.start()]
        if prefix and (not inside or prefix.startswith(f"{inside}.")):
            yield prefix


def items_of(steps: list[Step], place: int, prefix: str) -> list[tuple[int, int, int]]:
    """The items of a list that run one after another from ``place`` on: (index, first step, end)."""
    pattern = re.compile(re.escape(prefix) + r"\.(\d+)(?:\.|$)")
    visits: list[list[int]] = []
    for position in range(place, len(steps)):
        match = pattern.match(steps[position].path)
        if not match:
            continue
        index = int(match.group(1))
        if visits and visits[-1][0] == index:
            visits[-1][2] = position + 1
        elif visits and index != visits[-1][0] + 1:
            break
        else:
            visits.append([index, position, position + 1])
    if len(visits) < 2:
        return [tuple(visit) for visit in visits]  # type: ignore[misc]
    for visit, following in pairwise(visits):
        visit[2] = following[1]
    # steps between two items belong to the first of them, and as many after the last one
    kinds = [step.kind for step in steps[visits[-2][1] : visits[-2][2]]]
    end = visits[-1][1] + len(kinds)
    if [step.kind for step in steps[visits[-1][1] : end]] == kinds and end >= visits[-1][2]:
        visits[-1][2] = end
    return [tuple(visit) for visit in visits]  # type: ignore[misc]


def relative(name: str, item: str) -> tuple[str, str]:
    """A path below an item, or an absolute one."""
    if item and (name == item or name.startswith(f"{item}.")):
        return ("in", name[len(item) :])
    return ("at", name)


def alike(a: str, b: str, at: str, bt: str) -> bool:
    """Whether two paths are the same, relative to two items; in another list, those of the same index."""
    if relative(a, at) == relative(b, bt):
        return True
    if not at or relative(a, at)[0] == "in" or relative(b, bt)[0] == "in":
        return False
    x, y = at.rpartition(".")[2], bt.rpartition(".")[2]
    one, other = a.split("."), b.split(".")
    return len(one) == len(other) and all(p == q or (p == x and q == y) for p, q in zip(one, other, strict=True))


def beside(a: list[Step], b: list[Step], at: str, bt: str) -> tuple[str, ...]:
    """The lists beside that of two items from which they read modules of the same index."""
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


def compare(a: list[Step], b: list[Step], at: str, bt: str) -> list[Any] | None:
    """How each operand of two items corresponds: ``in`` the item, ``last`` (made by the item before), ``same``; None if not."""
    if len(a) != len(b):
        return None
    place_a = {step.id: number for number, step in enumerate(a)}
    place_b = {step.id: number for number, step in enumerate(b)}
    modes: list[Any] = []
    for one, other in zip(a, b, strict=True):
        if (one.kind, one.numbers, one.words[:3], one.quiet, one.times) != (
            other.kind, other.numbers, other.words[:3], other.quiet, other.times,
        ) or len(one.operands) != len(other.operands):  # fmt: skip
            return None
        if len(one.parameters) != len(other.parameters) or not alike(one.path, other.path, at, bt):
            return None
        if not all(alike(x, y, at, bt) for x, y in zip(one.parameters, other.parameters, strict=True)):
            return None
        refs = list(zip(one.operands, other.operands, strict=True))
        for x, y in refs:
            mode = correspondence(x, y, place_a, place_b, at, bt)
            if mode is None:
                return None
            modes.append(mode)
    return modes


def correspondence(x: Ref, y: Ref, place_a: Mapping[int, int], place_b: Mapping[int, int], at: str, bt: str) -> Any:
    """How one operand of an item corresponds to that of the next."""
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


def initials(first: list[Step], modes: list[Any]) -> dict[int, Ref] | None:
    """What the first item reads where others read what the one before made; None where that is not one value for each."""
    found: dict[int, Ref] = {}
    refs = [ref for step in first for ref in step.operands]
    for ref, mode in zip(refs, modes, strict=True):
        if mode[0] == "last" and found.setdefault(mode[1], ref) != ref:
            return None
    return found
