"""Merges names that differ only in numbers: ``resnets.0.conv1`` and ``resnets.1.conv1`` are ``resnets.{0,1}.conv1``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from math import prod

NUMBER = re.compile(r"\d+")


def merged_names(names: Sequence[str], alike: Sequence[Hashable] = ()) -> list[tuple[str, tuple[int, ...]]]:
    """Merge names that differ only in numbers, as (merged name, positions of the names in ``names``).

    ``alike`` has one value per name; only names with equal values are merged.

    >>> merged_names(["a.0.x", "b", "a.1.x"])
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
    """Split a group (numbers in a name -> position) into full Cartesian products of numbers."""
    columns = [set(column) for column in zip(*group, strict=True)]
    if prod(map(len, columns)) == len(group):
        return [group]
    column = next(place for place, values in enumerate(columns) if len(values) > 1)
    parts: dict[int, dict[tuple[int, ...], int]] = {}
    for numbers, place in group.items():
        parts.setdefault(numbers[column], {})[numbers] = place
    return _joined([block for part in parts.values() for block in _blocks(part)], column)


def _joined(blocks: list[dict[tuple[int, ...], int]], column: int) -> list[dict[tuple[int, ...], int]]:
    """Merge parts of a group that differ only in the number at index ``column``."""
    found: dict[Hashable, dict[tuple[int, ...], int]] = {}
    for block in blocks:
        rest = frozenset(numbers[:column] + numbers[column + 1 :] for numbers in block)
        found.setdefault(rest, {}).update(block)
    return list(found.values())


def _pattern(name: str, numbers: list[tuple[int, ...]]) -> str:
    """Replace each number in a name by all values in its column of ``numbers``."""
    columns = iter([sorted(set(column)) for column in zip(*numbers, strict=True)])
    return NUMBER.sub(lambda _: _numbers(next(columns)), name)


def _numbers(values: list[int]) -> str:
    """Format numbers as ``3``, ``{0,2}``, or ``{0-3}`` for three or more consecutive ones."""
    if len(values) == 1:
        return str(values[0])
    if len(values) > 2 and values[-1] - values[0] == len(values) - 1:
        return f"{{{values[0]}-{values[-1]}}}"
    return f"{{{','.join(map(str, values))}}}"


FEWEST = 4
"""The fewest rows for which a numbered block gets its own heading."""


def blocks(paths: Sequence[str]) -> list[tuple[str, str]]:
    """Split each path into (block, rest of the path).

    A block is a repeat, or the longest prefix with a number at its end that at least ``FEWEST`` paths share.

    >>> blocks(["layers.*.mlp.up", "down.0.conv", "down.0.norm.{a,b}", *(f"down.0.attn.1.{name}" for name in "qkvo")])[1:4]
    [('down.0', 'conv'), ('down.0', 'norm.{a,b}'), ('down.0.attn.1', 'q')]
    """
    counts = Counter(level for path in paths for level in levels(path))
    found = []
    for path in paths:
        group, star, name = path.rpartition(".*.")
        some = [level for place, level in enumerate(levels(path)) if not place or counts[level] >= FEWEST]
        block = f"{group}.*" if star else some[-1] if some else ""
        found.append((block, name if star or not block else path[len(block) + 1 :]))
    return found


def levels(path: str) -> list[str]:
    """Prefixes of a path that end with a number or a set of numbers, shortest first."""
    words = path.split(".")
    return [".".join(words[:end]) for end in range(1, len(words)) if re.fullmatch(r"\d+|\{[\d,-]+\}", words[end - 1])]


Folded = list[tuple[str, tuple[int, ...]]]


def shared(found: Folded, alike: Sequence[Hashable]) -> Folded:
    """Merge names of :func:`merged_names` further, if they differ in one word between dots.

    ``alike`` has one value per original name; only names with equal values are merged.

    >>> shared([("a.q.bias", (0,)), ("a.k.bias", (1,)), ("b", (2,))], "xxx")
    [('a.{q,k}.bias', (0, 1)), ('b', (2,))]
    """
    most = max((name.count(".") for name, _ in found), default=0)
    for back in range(1, most + 2):
        groups: dict[Hashable, Folded] = {}
        for name, places in found:
            words = name.split(".")
            rest = tuple(words[: len(words) - back]), tuple(words[len(words) - back + 1 :])
            plain = len(words) >= back and not NUMBER.fullmatch(words[-back]) and "{" not in words[-back]
            key = (rest, alike[places[0]]) if plain and words[-back] != "*" else (name, places)
            groups.setdefault(key, []).append((name, places))
        found = [_merged(group, back) for group in groups.values()]
    return sorted(found, key=lambda each: each[1][0])


def _merged(group: Folded, back: int) -> tuple[str, tuple[int, ...]]:
    """Merge names that differ only in the word ``back`` from the end: (merged name, all positions)."""
    if len(group) == 1:
        return group[0]
    words = group[0][0].split(".")
    words[-back] = f"{{{','.join(name.split('.')[-back] for name, _ in group)}}}"
    return ".".join(words), tuple(sorted(place for _, places in group for place in places))
