"""Merges names that differ only in numbers: ``resnets.0.conv1`` and ``resnets.1.conv1`` are ``resnets.{0,1}.conv1``."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from math import prod

NUMBER = re.compile(r"\d+")


def folded(names: Sequence[str], alike: Sequence[Hashable] = ()) -> list[tuple[str, tuple[int, ...]]]:
    """Merged names, each with the positions of its names, in order of the first; only names equal in ``alike`` merge.

    >>> folded(["a.0.x", "b", "a.1.x"])
    [('a.{0,1}.x', (0, 2)), ('b', (1,))]
    """
    groups: dict[Hashable, dict[tuple[int, ...], int]] = {}
    for place, name in enumerate(names):
        key = (NUMBER.sub("#", name), alike[place] if alike else None)
        group, numbers = groups.setdefault(key, {}), tuple(map(int, NUMBER.findall(name)))
        if numbers in group:  # the same name twice: two contractions of one module
            groups[key, place] = {numbers: place}
        else:
            group[numbers] = place
    found = [
        (_pattern(names[min(block.values())], list(block)), tuple(sorted(block.values())))
        for group in groups.values()
        for block in _blocks(group)
    ]
    return sorted(found, key=lambda each: each[1][0])


def _blocks(group: dict[tuple[int, ...], int]) -> list[dict[tuple[int, ...], int]]:
    """The group in blocks that each contain all combinations of some numbers."""
    columns = [set(column) for column in zip(*group, strict=True)]
    if prod(map(len, columns)) == len(group):
        return [group]
    column = next(place for place, values in enumerate(columns) if len(values) > 1)
    parts: dict[int, dict[tuple[int, ...], int]] = {}
    for numbers, place in group.items():
        parts.setdefault(numbers[column], {})[numbers] = place
    blocks = [block for part in parts.values() for block in _blocks(part)]
    return _joined(blocks, column)


def _joined(blocks: list[dict[tuple[int, ...], int]], column: int) -> list[dict[tuple[int, ...], int]]:
    """The blocks, merged where they differ only in the number at ``column``."""
    found: dict[Hashable, dict[tuple[int, ...], int]] = {}
    for block in blocks:
        rest = frozenset(numbers[:column] + numbers[column + 1 :] for numbers in block)
        found.setdefault(rest, {}).update(block)
    return list(found.values())


def _pattern(name: str, numbers: list[tuple[int, ...]]) -> str:
    """A name with the set of numbers in each place."""
    columns = iter([sorted(set(column)) for column in zip(*numbers, strict=True)])
    return NUMBER.sub(lambda _: _numbers(next(columns)), name)


def _numbers(values: list[int]) -> str:
    """``3``, ``{0,2}``, or ``{0-3}`` for three or more consecutive numbers."""
    if len(values) == 1:
        return str(values[0])
    if len(values) > 2 and values[-1] - values[0] == len(values) - 1:
        return f"{{{values[0]}-{values[-1]}}}"
    return f"{{{','.join(map(str, values))}}}"
