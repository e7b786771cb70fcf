"""Joint attention: several streams with own queries, keys and values attend over the tokens of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from symflops.draft.polish.entries import count, rename, results
from symflops.draft.write.values import Val

SIDES = ("query", "key", "value")


def split_joint(entries: list[Any], values: Mapping[str, Val], graph: list[Any], outputs: Sequence[str]) -> None:
    """Rewrite attention over concatenated streams in place: operands and results become lists by stream.

    Args:
        entries: A list of entries, changed in place.
        values: The values of the graph by name.
        graph: The entries of the whole graph, in which no name is bound twice.
        outputs: The names of the graph's outputs.
    """
    for _, fields in entries:
        split_joint(fields.get("graph", []), values, graph, outputs)
    for fields in [fields for _, fields in entries if fields.get("op") == "attention"]:
        joins = joins_of(entries, fields, graph)
        if joins and "bias" not in fields and fields["to"] not in outputs:
            split(entries, fields, joins, values, graph)


def joins_of(entries: Sequence[Any], fields: Mapping[str, Any], graph: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Concatenations that an attention reads as query, key and value.

    Empty if one of these is no concatenation, or has another reader.
    """
    joined = {name: other for _, other in entries for name in results(other) if other.get("along") == "tokens"}
    alone = all(fields[side] in joined and count(graph, fields[side]) == 1 for side in SIDES)
    return [joined[fields[side]] for side in SIDES] if alone else []


def split(
    entries: list[Any], fields: dict[str, Any], joins: list[Mapping[str, Any]], values: Mapping[str, Val], graph: list[Any]
) -> None:
    """Rewrite one attention with lists instead of the concatenations ``joins``, in place.

    Not if the streams of keys and values differ, or if a reader of the result takes more than one stream.
    """
    parts = [join["from"] for join in joins]
    views = {other["to"]: other for _, other in entries if is_part(other, fields["to"])}
    found = by_stream(parts, views, values) if len(views) == count(graph, fields["to"]) else None
    if found is not None:
        fields |= {**dict(zip(SIDES, parts, strict=True)), "to": [next(iter(names), "_") for names in found]}
        gone = {id(one) for one in (*joins, *views.values())}
        entries[:] = [one for one in entries if id(one[1]) not in gone]
        rename(graph, {other: names[0] for names in found for other in names[1:]})


def by_stream(parts: Sequence[list[str]], views: Iterable[str], values: Mapping[str, Val]) -> list[list[str]] | None:
    """Parts of an attention's result by stream of the queries; None if the attention cannot be split.

    Args:
        parts: Names of the concatenated values: queries, keys, values.
        views: Names of the values that are selected from the result.
        values: The values of the graph by name.
    """
    queries, keys, others = (streams_of(names, values) for names in parts)
    taken = dict(zip(views, streams_of(views, values), strict=True))
    if None in (*queries, *keys) or keys != others or any(queries.count(stream) != 1 for stream in taken.values()):
        return None
    return [[name for name, stream in taken.items() if stream == own] for own in queries]


def streams_of(names: Iterable[str], values: Mapping[str, Val]) -> list[Any]:
    """For each name, (rows, tag), which identify the value's stream; None if ``values`` does not have it."""
    return [(values[name].rows, values[name].tag) if name in values else None for name in names]


def is_part(fields: Mapping[str, Any], result: str) -> bool:
    """Whether an entry selects rows of ``result`` at full width."""
    return fields.get("op") == "select" and fields["from"] == result and "width" not in fields
