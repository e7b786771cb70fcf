"""Joint attention: queries, keys and values of several streams, one after another, as lists of what each stream brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symflops.draft.polish.polish import count, own, rename
from symflops.draft.write.scopes import Val

SIDES = ("query", "key", "value")


def listed(entries: list[Any], values: Mapping[str, Val], every: list[Any], outputs: Sequence[str]) -> None:
    """Attention over joined tokens whose results are taken apart again, with a list for each side and for the results.

    ``values`` tells rows by name, ``every`` has the entries of the whole graph, in which no name is bound twice.
    """
    for _, fields in entries:
        listed(fields.get("graph", []), values, every, outputs)
    for fields in [fields for _, fields in entries if fields.get("op") == "attention"]:
        taken_apart(entries, fields, values, every, outputs)


def taken_apart(
    entries: list[Any], fields: dict[str, Any], values: Mapping[str, Val], every: list[Any], outputs: Sequence[str]
) -> None:
    """One attention with lists, where its sides are joined for it alone and its result is only read in those parts."""
    joined = {name: other for _, other in entries for name in own(other) if other.get("along") == "tokens"}
    sides = [joined.get(fields[side]) for side in SIDES]
    result = fields["to"]
    if not all(sides) or "bias" in fields or result in outputs or any(count(every, fields[side]) != 1 for side in SIDES):
        return
    parts = [side["from"] for side in sides if side]
    if any(name not in values for names in parts for name in names):
        return
    shapes = [[(values[name].rows, values[name].tag) for name in names] for names in parts]
    views = {other["to"]: number for number, (_, other) in enumerate(entries) if is_part(other, result)}
    if shapes[1] != shapes[2] or len(views) != count(every, result) or any(name not in values for name in views):
        return
    found: list[list[str]] = [[] for _ in parts[0]]
    for name in views:
        fitting = [number for number, shape in enumerate(shapes[0]) if shape == (values[name].rows, values[name].tag)]
        if len(fitting) != 1:
            return
        found[fitting[0]].append(name)
    fields |= dict(zip(SIDES, parts, strict=True))
    fields["to"] = [names[0] if names else "_" for names in found]
    gone = {id(side) for side in sides} | {id(entries[number][1]) for number in views.values()}
    entries[:] = [one for one in entries if id(one[1]) not in gone]
    for names in found:
        for other in names[1:]:
            rename(every, other, names[0])


def is_part(fields: Mapping[str, Any], result: str) -> bool:
    """Whether an entry takes some rows of a value, in their full width."""
    return fields.get("op") == "view" and fields.get("as") == "select" and fields["from"] == result and "width" not in fields
