"""Joint attention: several streams attend over the tokens of all; each brings its own queries, keys and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symflops.draft.polish.entries import count, rename, results
from symflops.draft.write.scopes import Val

SIDES = ("query", "key", "value")


def split_joint(entries: list[Any], values: Mapping[str, Val], graph: list[Any], outputs: Sequence[str]) -> None:
    """Write each attention over concatenated streams with a list for each side and for the results.

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
    """The concatenations that an attention reads, one a side; none unless it is the only reader of each."""
    joined = {name: other for _, other in entries for name in results(other) if other.get("along") == "tokens"}
    alone = all(fields[side] in joined and count(graph, fields[side]) == 1 for side in SIDES)
    return [joined[fields[side]] for side in SIDES] if alone else []


def split(
    entries: list[Any], fields: dict[str, Any], joins: list[Mapping[str, Any]], values: Mapping[str, Val], graph: list[Any]
) -> None:
    """Write one attention with lists, if its sides have the same streams and all readers of its result take one stream."""
    parts = [join["from"] for join in joins]
    views = {other["to"]: other for _, other in entries if is_part(other, fields["to"])}
    if len(views) != count(graph, fields["to"]) or not {*views, *(name for names in parts for name in names)} <= values.keys():
        return
    queries, keys, others = ([stream_of(values[name]) for name in names] for names in parts)
    streams = [stream_of(values[name]) for name in views]
    if keys != others or any(queries.count(stream) != 1 for stream in streams):
        return
    found = [[name for name, own in zip(views, streams, strict=True) if own == stream] for stream in queries]
    gone = {id(one) for one in (*joins, *views.values())}
    fields |= {**dict(zip(SIDES, parts, strict=True)), "to": [names[0] if names else "_" for names in found]}
    entries[:] = [one for one in entries if id(one[1]) not in gone]
    rename(graph, {other: names[0] for names in found for other in names[1:]})


def stream_of(value: Val) -> tuple[Any, ...]:
    """What tells the stream of a value from others."""
    return value.rows, value.tag


def is_part(fields: Mapping[str, Any], result: str) -> bool:
    """Whether an entry takes some rows of a value, in their full width."""
    return fields.get("op") == "view" and fields.get("as") == "select" and fields["from"] == result and "width" not in fields
