"""Guards of lists: the lengths at which a spec is exact, alone or beside another list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symflops.runtime.census import admitted, kind_of, related, texts_in, values_at
from symflops.witness.census.fields import value_at
from symflops.witness.census.survey import EXACT, NONE, WRONG, Row, Survey, plain_lists
from symflops.witness.config_classes import config_class_of
from symflops.witness.defaults import signature_of

MEASURES = ("number", "list")


def lengths_of(path: str, good: Sequence[Any], bad: Sequence[Any], rows: Sequence[Row], survey: Survey) -> dict[str, Any]:
    """The rule about lengths that tells exact variations of a field from wrong ones; empty if there is none.

    Lists may be at least as long as the ``shortest`` exact one, have one of some ``lengths``, or be as long as another list;
    a number may be the length of a list; and a list may hold rising indices below a number.

    Args:
        path: The field.
        good: Its exact values.
        bad: Its wrong values.
        rows: Its variations.
        survey: The census of its class.
    """
    right, wrong = ({len(value) for value in values if kind_of(value) == "list"} for values in (good, bad))
    listed = bool(right and wrong) and not right & wrong
    number = any(kind_of(value) == "number" for value in good)  # which stands for all items
    if listed and not number and max(wrong) < min(right):
        return {"shortest": min(right)}
    found = next(relations(path, rows, survey), None) if bad else None
    if found and not (listed and number):
        return beside(survey.kind, path, *found)
    return {"lengths": sorted(right)} if listed else {}


def parts_of(path: str, rows: Sequence[Row], survey: Survey) -> dict[str, Any]:
    """The number that all exact variations of a field divide, and no wrong one does; empty if there is none."""
    found = next(relations(path, rows, survey, {"number": "part"}), None)
    return beside(survey.kind, path, *found) if found else {}


BESIDE = {"list": "long", "number": "indices"}
"""The relation of a list, or of the number of its entries, to a field of a kind."""


def relations(path: str, rows: Sequence[Row], survey: Survey, words: Mapping[str, str] = BESIDE) -> Iterator[tuple[str, str]]:
    """The relations to another field that hold in all exact variations of a field, and in no wrong one."""
    part = path.rpartition(".")[0]
    told = [row for row in rows if kind_of(row.changes[path]) in MEASURES]
    right, wrong = ([row.config for row in told if row.verdict in kinds] for kinds in ((EXACT, NONE), (WRONG,)))
    right += [base.json for base in survey.bases if kind_of(value_at(base.json, path)) in MEASURES]
    configs = [plain_lists_in(config) for config in (*right, *wrong)]
    inner: Any = (value_at(configs[0], part) if part else configs[0]) if right else None
    for name, value in inner.items() if isinstance(inner, Mapping) else ():
        other = f"{part}.{name}" if part else name
        word = words.get(kind_of(value))
        if word and other != path and not texts_in(value):
            tells = [related(value_at(config, path), {"related": [[word, other]]}, config) for config in configs]
            if tells == [True] * len(right) + [False] * len(wrong):
                yield word, other


def plain_lists_in(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config with lists instead of tuples."""
    return {name: plain_lists_in(value) if isinstance(value, Mapping) else plain_lists(value) for name, value in config.items()}


def beside(kind: Any, path: str, word: str, other: str) -> dict[str, Any]:
    """The guard of a field that has a relation to another one, with what that is where a config leaves it out."""
    known = [value for value in default(kind, other) if kind_of(value) in MEASURES]
    return {"related": [[word, other, *(value if kind_of(value) == "number" else len(value) for value in known)]]}


def left_out(kind: Any, guarded: Mapping[str, Any], words: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What a class takes where a config leaves fields out, unless that is exact whatever else the config holds.

    Where small numbers are guarded, null stands for a number that other sizes make, which is checked as a size.
    """
    found = {}
    for path in dict.fromkeys((*guarded, *words)):
        known = guarded.get(path, {})
        for value in default(kind, path):
            unknown = path in guarded and ("related" in known or not admitted(value, known))
            strange = path in words and not set(texts_in(value)) <= set(words[path])
            if (unknown or strange) and not (value is None and "least" in known):
                found[path] = value
    return found


def default(kind: Any, path: str) -> list[Any]:
    """What a class takes where a config leaves a field out; empty if that is unknown."""
    config_class = config_class_of(kind)
    if hasattr(config_class, "to_dict"):
        found = values_at(config_class().to_dict(), path)
    else:
        found = values_at(signature_of(config_class or kind), path)
    return list(json.loads(json.dumps(found, default=str)))
