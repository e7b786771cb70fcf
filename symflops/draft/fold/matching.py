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
    """An item of a module list: its index in the list, and the range of steps that run it (first, end)."""

    index: int
    first: int
    end: int


def with_carried(first: Sequence[Step], modes: Sequence[Any]) -> list[Step]:
    """Steps of a loop's first item, as a body for all items.

    They read a loop-carried value where later items read the item before. ``modes`` has the :func:`correspondence` of each
    operand.
    """
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
    """Path and items of the first module list that runs several items in order; ("", []) if none does.

    Only steps from ``place`` on and lists below path ``inside`` count.
    """
    tried: set[str] = set()
    for position in range(place, len(steps)):
        for prefix in lists_in(steps[position], inside):
            items = [] if prefix in tried else items_of(steps, position, prefix)
            tried.add(prefix)
            if len(items) > 1:
                return prefix, items
    return "", []


def items_of(steps: Sequence[Step], place: int, prefix: str) -> list[Item]:
    """Items with consecutive indices of the list at path ``prefix``, among the steps from ``place`` on.

    An item has the steps up to the start of the next, also those outside of the list. The last item has as many as the one
    before if they are of the same kinds, else those of its own modules.
    """
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
    """Items of the list at path ``prefix`` that steps run from position ``place`` on, in order.

    They end where the next index is not one higher. The range of an item is from its first step to its last.
    """
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
    """Split a path or parameter name by whether it is within the item with path ``item``.

    If it is that path or below, the pair is ``in`` and what follows the path, with its dot; else ``at`` and the whole name.
    """
    if item and (name == item or name.startswith(f"{item}.")):
        return ("in", name[len(item) :])
    return ("at", name)


def alike(a: str, b: str, at: str, bt: str) -> bool:
    """Whether path ``a`` is to item ``at`` what path ``b`` is to item ``bt``.

    That is: both are equal relative to their item, or have its index in the same place of another list.
    """
    own, other_own = relative(a, at), relative(b, bt)
    if own == other_own or not at or "in" in (own[0], other_own[0]):
        return own == other_own
    x, y = at.rpartition(".")[2], bt.rpartition(".")[2]
    one, other = a.split("."), b.split(".")
    return len(one) == len(other) and all(p == q or (p == x and q == y) for p, q in zip(one, other, strict=True))


def parallel_lists(a: list[Step], b: list[Step], at: str) -> tuple[str, ...]:
    """Paths of other module lists from which both items use the module with the item's own index.

    ``a`` and ``b`` are the steps of two items of one kind, ``at`` is the path of the first.
    """
    names = [pair for one, other in zip(a, b, strict=True) for pair in common_names(one, other)]
    return tuple(dict.fromkeys(common_start(x, y) for x, y in names if relative(x, at)[0] == "at" and x != y))


def common_names(one: Step, other: Step) -> Iterator[tuple[str, str]]:
    """Pairs (of ``one``, of ``other``) of the paths and parameter names of two steps."""
    yield one.path, other.path
    yield from zip(one.parameters, other.parameters, strict=True)
    yield from ((x.name, y.name) for x, y in zip(one.operands, other.operands, strict=True) if x.kind == y.kind == "parameter")


def common_start(x: str, y: str) -> str:
    """Path of the words with which two paths, of equally many words, both begin."""
    return ".".join(
        word for word, _ in takewhile(lambda pair: pair[0] == pair[1], zip(x.split("."), y.split("."), strict=True))
    )


def compare(a: Sequence[Step], b: Sequence[Step], at: str, bt: str) -> list[Any] | None:
    """The :func:`correspondence` of each operand of item ``a`` with that of ``b``; None if the items differ.

    One list for all steps: the operands of the first step, then those of the next. ``at`` and ``bt`` are the paths of the
    items.
    """
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
    """Classify what operand ``x`` of an item and the same operand ``y`` of the next item have in common.

    ``place_a`` and ``place_b`` are the positions of the items' steps by id, ``at`` and ``bt`` the items' paths.

    Returns:
        ``("in", place)`` if each item reads its own step at this position, ``("last", place)`` if it reads that of the item
        before, ``("same", ref)`` if both read one value, ``("own", path)`` if each reads its own parameter; None if none of
        these is the case.
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
    """Initial values of a loop: position of a step in an item -> what the first item reads instead.

    Later items read this step of the item before. None if the first item reads different values for one position.
    ``modes`` has the :func:`correspondence` of each operand.
    """
    found: dict[int, Ref] = {}
    refs = [ref for step in first for ref in step.operands]
    for ref, mode in zip(refs, modes, strict=True):
        if mode[0] == "last" and found.setdefault(mode[1], ref) != ref:
            return None
    return found


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive items of a module list that run equal steps.

    Attributes:
        count: The number of items.
        carried: The loop-carried values: initial value, and id of the first item's step that computes the next.
        modes: The :func:`correspondence` of each operand.
    """

    count: int = 1
    carried: Sequence[tuple[Ref, int]] = ()
    modes: Sequence[Any] = field(default=())


def run_of(bodies: Sequence[list[Step]], names: Sequence[str], place: int, outside: Mapping[int, set[int]]) -> Run:
    """Longest run of equal items from item ``place`` on.

    Args:
        bodies: The steps of each item.
        names: The path of each item.
        place: The first item of the run.
        outside: Id of a step -> the items that read its value; -1 stands for other readers.
    """
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
    """First steps that run again at once, by the same modules with the same parameters.

    Only steps from position ``place`` to ``end`` count as the first. The result has an item for each time that they run,
    numbered from 0; None if no steps repeat.
    """
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
    """Number of times that the ``length`` steps from ``first`` on run in a row; 1 if they do not repeat."""
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
