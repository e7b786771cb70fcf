"""Variations of one field of a config: flipped, null, scaled, other words, other items. No spec is consulted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from symflops.witness.census.fields import ConfigField, value_at
from symflops.witness.census.words import UNHEARD

Changes = Mapping[str, Any]
"""New values by path."""
PARTNERS = 6


def variations(field: ConfigField, value: Any, words: Sequence[str], widths: Sequence[int], random: Random) -> Iterator[Any]:
    """Other values of a field.

    Args:
        field: The field.
        value: Its value in the base config.
        words: Those that the class's source accepts.
        widths: Values for a number that is null in the base: those that the base config has elsewhere.
        random: Draws factors.
    """
    found: list[Any] = []
    if isinstance(value, bool):
        found = [not value]
    elif isinstance(value, int):
        found = _scaled(value, random)
    elif isinstance(value, float):
        found = [value * 2, value / 2, value + 1.0] if value else [0.25, 0.5]
    elif isinstance(value, str):
        found = [*words, UNHEARD]
    elif isinstance(value, (list, tuple)):
        found = list(_lists(list(value), words, random))
    elif value is None:
        found = list(_filled(field, words, widths))
    for other in [*found, None]:
        if other != value or type(other) is not type(value):
            yield other


def _scaled(value: int, random: Random) -> list[int]:
    """Larger and smaller numbers than ``value``."""
    if value in (0, -1):
        return [1, 2, 8]
    down = [value // divisor for divisor in (2, 3) if value > 1 and value % divisor == 0][:1] or [max(value - 1, 0)]
    return list(dict.fromkeys([value * random.choice((2, 2, 3)), *down, value + 1, value + 2, 3 * value]))


def edges(field: ConfigField, value: Any) -> list[Any]:
    """Small numbers, and the next odd one: where a class tests a number as a truth, divides by it, or broadcasts along it."""
    anything = not field.admits("int", "float", "bool", "str", "list", "tuple", "dict")
    if isinstance(value, bool) or not (isinstance(value, int) or (value is None and (anything or field.admits("int")))):
        return []
    found = [0, 1, 2, 3] if value is None else [0, 1, 2, 3, value + 1 + value % 2]
    return [other for other in dict.fromkeys(found) if other != value]


def alike(path: str, value: Any, config: Mapping[str, Any], times: Sequence[int] = (1,)) -> list[int]:
    """The numbers beside one, taken so many ``times``, that divide it.

    Where a class divides the one by the other, one number is left of each head, or one pair, along which it may broadcast.
    """
    if not (_number(value) and value > 1):
        return []
    part = path.rpartition(".")[0]
    beside = [other for other in (value_at(config, part) if part else config).values() if _number(other) and other > 0]
    return sorted(
        {other for factor in times for other in (factor * one for one in beside) if other < value and value % other == 0}
    )


def _lists(value: list[Any], words: Sequence[str], random: Random) -> Iterator[Any]:
    """Lists with other items, one more, one less."""
    if not value:
        yield from ([0], [1], [0, 1], [8])
        return
    if all(isinstance(item, str) for item in value):
        for word in words:
            yield [*value[:-1], word]
        for word in dict.fromkeys([*words, *value]):
            yield [word] * len(value)
    elif all(isinstance(item, bool) for item in value):
        yield [not item for item in value]
        yield [*value[:-1], not value[-1]]
    elif all(isinstance(item, (int, float)) for item in value):
        yield [2 * item for item in value]
        yield [*value[:-1], 2 * value[-1]]
        yield [*value[:-1], value[-1] + 1]
        yield value[::-1]
        yield random.choice(value)
    yield [*value, value[-1]]
    yield value[:-1]
    yield []


def _filled(field: ConfigField, words: Sequence[str], widths: Sequence[int]) -> Iterator[Any]:
    """Values for a field that is null."""
    anything = not field.admits("int", "float", "bool", "str", "list", "tuple", "dict")
    if field.admits("bool") or anything:
        yield from (True, False)
    if field.admits("str", "Literal") or words:
        yield from words
        yield UNHEARD
    if field.admits("int", "float") or anything:
        yield from (2, 8, *widths)
    if field.admits("list", "tuple"):
        yield from ([0], [1], [0, 1])


def partnered(path: str, value: Any, other: Any, config: Mapping[str, Any], fields: Sequence[ConfigField]) -> Iterator[Changes]:
    """Pairs for a number or a list that cannot change alone: related fields of the same part change by the same factor.

    Related are equal numbers first, then those that divide or are divided; for lists, all lists of that length.
    """
    same = [item for item in fields if item.path != path and item.path.rpartition(".")[0] == path.rpartition(".")[0]]
    if isinstance(value, list) and isinstance(other, list) and value and len(other) != len(value):
        lists = [(item.path, value_at(config, item.path)) for item in same]
        twins = {name: list(found) for name, found in lists if isinstance(found, (list, tuple)) and len(found) == len(value)}
        grown = len(other) > len(value)
        if twins and other:
            yield {path: other} | {name: [*found, found[-1]] if grown else found[:-1] for name, found in twins.items()}
        return
    if not (_number(value) and _number(other) and value and other):
        return
    numbers = [(item.path, value_at(config, item.path)) for item in same]
    related = [(name, found) for name, found in numbers if _number(found) and found > 1]
    related.sort(key=lambda pair: (pair[1] != value, pair[1] % value != 0 and value % pair[1] != 0))
    for name, found in related[:PARTNERS]:
        if found * other % value == 0:
            yield {path: other, name: found * other // value}


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
