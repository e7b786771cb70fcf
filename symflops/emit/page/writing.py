"""Words of a page: lists, sentences, and formulas within a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from symflops.emit.page.tree import Code, Emphasis, Group, Inline, Math, Row, Words
from symflops.model.formula import Formula, Sym
from symflops.model.program import Field

NONE: Words = ("—",)
MOST = 8
"""Entries of a list that a page shows whole."""
MANY = 6
"""Entries of a list of values beyond which runs are told."""


def math(*parts: str | Formula) -> Math:
    """A formula within a line."""
    return Math(parts)


def letter(name: str) -> Math:
    """A letter within a line."""
    return Math((Sym(name),))


def equals(name: str, *parts: str | Formula) -> Math:
    """``name = ...`` within a line."""
    return Math((Sym(name), " = ", *parts))


def series(items: Iterable[Words], last: str = ", ", between: str = ", ") -> Words:
    """Items in a sentence, with ``last`` before the last one.

    >>> series([("a",), ("b",), ("c",)], " and ")
    ('a', ', ', 'b', ' and ', 'c')
    """
    found: list[Inline] = []
    listed = list(items)
    for place, item in enumerate(listed):
        if place:
            found.append(last if place == len(listed) - 1 else between)
        found += item
    return tuple(found)


def names(texts: Iterable[str], last: str = " and ") -> Words:
    """Names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    return series([(Code(text),) for text in texts], last)


def sentence(text: str) -> str:
    """A text with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}." if text else ""


def plural(number: int, one: str, several: str) -> str:
    """``one`` or ``several``, as the number says."""
    return one if number == 1 else several


def ended(items: Sequence[Words]) -> tuple[Words, ...]:
    """The items of a list, each with a semicolon, the last with a full stop."""
    return tuple((*item, "." if place == len(items) else ";") for place, item in enumerate(items, 1))


def default(field: Field) -> Words:
    """The default of a size."""
    match field.default:
        case None:
            return ("required" if field.required else "none",)
        case bool():
            return ("true" if field.default else "false",)
        case str():
            return (Code(field.default),)
        case tuple() if len(field.default) > MOST:
            return Code(json.dumps(list(field.default[:3]), default=str)), f" and {len(field.default) - 3} more"
        case tuple():
            return listed(field.default)
    return (Math((field.default,)),)


def listed(items: Sequence[object]) -> Words:
    """The entries of a list; of many the runs of equal ones, and runs that repeat once."""
    if len(items) <= MANY:
        return (Code(json.dumps(list(items), default=str)),)
    period = next(size for size in range(1, len(items) + 1) if list(items[size:]) == list(items[:-size]))
    runs = [(entry, len(list(some))) for entry, some in groupby(items[:period])]
    told = series(
        [(Code(json.dumps(entry, default=str)), *((f" \u00d7 {count}",) if count > 1 else ())) for entry, count in runs]
    )
    return (*told, f", {len(items)} entries" if period == len(items) else f", repeated to {len(items)} entries")


def by_group(rows: Iterable[tuple[str, tuple[Words, ...]]]) -> Iterator[Row]:
    """Rows with a heading above those of each group; an empty group has none."""
    last = ""
    for group, row in rows:
        if group != last:
            yield Group((Emphasis(("in",)), " ", Code(group))) if group else Group()
        last = group
        yield row


def numbered(numbers: Sequence[int], head: str = "") -> str:
    """Numbers, those that follow each other as a range."""
    runs: list[list[int]] = []
    for each in numbers:
        if runs and each == runs[-1][-1] + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    return ", ".join(f"{head}{run[0]}" + (f"\u2013{head}{run[-1]}" if len(run) > 1 else "") for run in runs)


def note_letter(number: int) -> str:
    """a, b, ... z, aa, ab, ..."""
    return (note_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("a") + number % 26)
