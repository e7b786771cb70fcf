"""Aligns unequal items of a module list: steps that all of them have, and between those what each kind of item has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from symflops.draft.trace.steps import Step

Key = tuple[str, tuple[Any, ...], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Column:
    """A part of every kind of item, as (first step, end) of each; ``common`` if it is the same in all kinds."""

    common: bool
    spans: tuple[tuple[int, int], ...]


def key_of(step: Step, item: str) -> Key:
    """A step without its operands: its module within the item, what it is, and its numbers."""
    names = (*step.parameters, *(ref.name for ref in step.operands if ref.kind == "parameter"))
    words = tuple(placed(word, item) if isinstance(word, str) else word for word in step.words)
    own = (step.kind, words, step.quiet, len(step.operands), tuple(placed(name, item) for name in names))
    return placed(step.path, item), own, (step.numbers, step.times)


def placed(name: str, item: str) -> str:
    """A name relative to an item; the index of the item within any other name is a star."""
    if name == item or name.startswith(f"{item}."):
        return name[len(item) + 1 :]
    index = item.rpartition(".")[2]
    return "/" + ".".join("*" if word == index else word for word in name.split("."))


def child(key: Key, depth: int) -> str:
    """The module in which a step runs, that many levels below the item."""
    words = key[0].split(".")
    return words[depth] if depth < len(words) else ""


def aligned(kinds: Sequence[Sequence[Key]], starts: Sequence[int], depth: int = 0) -> list[Column]:
    """The columns of several kinds of items; ``starts`` are the places of their first steps."""
    runs = [runs_of(kind, depth) for kind in kinds]
    texts = [[tuple(kind[a:b]) for a, b in spans] for kind, spans in zip(kinds, runs, strict=True)]
    shared = reduce(longest, texts)
    places = [matches(text, shared) for text in texts]
    found: list[Column] = []
    ends = [0] * len(kinds)
    for number in range(len(shared) + 1):
        if number < len(shared):
            spans = [run[place[number]] for run, place in zip(runs, places, strict=True)]
        else:
            spans = [(len(kind), len(kind)) for kind in kinds]
        gap = [(end, first) for end, (first, _) in zip(ends, spans, strict=True)]
        if any(a < b for a, b in gap):
            found += differing([kind[a:b] for kind, (a, b) in zip(kinds, gap, strict=True)], gap, starts, depth)
        if number < len(shared):
            found.append(Column(True, tuple((a + s, b + s) for (a, b), s in zip(spans, starts, strict=True))))
        ends = [b for _, b in spans]
    return found


def matches(text: Sequence[Any], shared: Sequence[Any]) -> list[int]:
    """The places at which a list has the items of a part of it, each the first one after that before."""
    found: list[int] = []
    for wanted in shared:
        found.append(text.index(wanted, found[-1] + 1 if found else 0))
    return found


def differing(
    kinds: Sequence[Sequence[Key]], gap: Sequence[tuple[int, int]], starts: Sequence[int], depth: int
) -> list[Column]:
    """The columns of a part that differs; one module that is mostly the same in all kinds is aligned in turn."""
    first = [start + a for start, (a, _) in zip(starts, gap, strict=True)]
    whole = [Column(False, tuple((a, a + len(kind)) for a, kind in zip(first, kinds, strict=True)))]
    children = {child(key, depth) for kind in kinds for key in kind}
    if len(children) != 1 or "" in children or not all(kinds):
        return whole
    columns = aligned(kinds, first, depth + 1)
    same = sum(column.spans[0][1] - column.spans[0][0] for column in columns if column.common)
    return columns if 2 * same >= max(map(len, kinds)) else whole


def runs_of(kind: Sequence[Key], depth: int) -> list[tuple[int, int]]:
    """The spans of steps in a row that run in one module."""
    found: list[tuple[int, int]] = []
    for place, key in enumerate(kind):
        if found and child(key, depth) and child(kind[place - 1], depth) == child(key, depth):
            found[-1] = (found[-1][0], place + 1)
        else:
            found.append((place, place + 1))
    return found


def longest(a: list[Any], b: list[Any]) -> list[Any]:
    """The longest common subsequence of two lists; an item weighs as much as it is long."""
    table: list[list[int]] = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            same = a[i] == b[j]
            table[i][j] = table[i + 1][j + 1] + len(a[i]) if same else max(table[i + 1][j], table[i][j + 1])
    found: list[Any] = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            found.append(a[i])
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            i += 1
        else:
            j += 1
    return found
