"""Which shipped specs stand for the others: those that together use the most of the language for the size of their modules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TEXTS = {path.stem: path.read_text("utf-8") for path in (ROOT / "specs").glob("*/*.yaml") if "." not in path.stem}
SIZES = {path.stem: path.stat().st_size for path in (ROOT / "generated").glob("*/*.py")}
"""Bytes of each generated module: about as long as it takes to derive, print or run."""
LANGUAGE = frozenset(re.findall(r'"([a-z_]+)"', (ROOT / "specs" / "schema.json").read_text("utf-8")))


@cache
def words_of(name: str) -> frozenset[str]:
    """Words of the language that a spec uses, itself or in its blocks and bases: keys, and kinds of operators, masks and types."""
    found = set()
    for key, value in re.findall(r"\b([a-z_]{2,}): *([a-z_]\w*)?", re.sub(r"#.*", "", TEXTS[name])):
        found |= {key, f"{key}: {value}"} if key in ("op", "mask", "type") and value in LANGUAGE else {key}
        if key in ("block", "extends") and value in TEXTS and value != name:
            found |= words_of(value)
    return frozenset(word for word in found if word.partition(":")[0] in LANGUAGE)


@cache
def ranked(names: frozenset[str]) -> tuple[tuple[str, ...], int]:
    """The specs one after another, each with the most words that none before it uses for its bytes, and how many use all words.

    Where all words are used, the count begins anew with the specs that are left.
    """
    left, found, needed = sorted(names), list[str](), 0
    while left:
        missing = set().union(*map(words_of, left))
        if not missing:
            return (*found, *left), needed or len(found)
        while missing and left:
            best = max(left, key=lambda name: len(words_of(name) & missing) / SIZES.get(name, len(TEXTS[name])))
            missing -= words_of(best)
            left.remove(best)
            found.append(best)
        needed = needed or len(found)
    return tuple(found), needed


def spec_of(case: Any) -> str | None:
    """The spec that a case of a test is about: its name, a file that is called so, or the first of several values."""
    first = case[0] if isinstance(case, tuple) and case else case
    name = first if isinstance(first, str) else getattr(first, "stem", None) or getattr(first, "name", None)
    return name if name in TEXTS else None


def spread(cases: Sequence[Any], count: int) -> Iterable[int]:
    """Places of ``count`` cases that differ: of cases about specs those of other specs, as ``ranked`` orders them, else at equal distances."""
    places: dict[str | None, list[int]] = {}
    for place, case in enumerate(cases):
        places.setdefault(spec_of(case), []).append(place)
    if None in places:
        return range(0, len(cases), -(-len(cases) // max(1, count)))
    order = ranked(frozenset(name for name in places if name))[0]
    rounds = max(map(len, places.values()))
    turns = [places[name][(at + turn) % len(places[name])] for turn in range(rounds) for at, name in enumerate(order) if turn < len(places[name])]
    return turns[:count]
