"""Simplifies entries: removes copies, fuses sums (``add_to``) and products (``gate``), inlines groups.

Joint attention, over the concatenated tokens of several streams, gets lists of operands and results by stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from symflops.draft.fit.symbols import numbered
from symflops.draft.polish.entries import (
    GATED,
    bound,
    count,
    flat,
    kept_by,
    made,
    maker,
    mentioned,
    needed_later,
    rename,
    results,
)
from symflops.draft.write.values import Val


def polished(entries: list[Any], kept: set[str]) -> list[Any]:
    """Simplify entries and bodies in place, without a change of meaning; returns ``entries``.

    ``kept`` are the names of values that are read outside of ``entries``.
    """
    for _, fields in entries:
        if "graph" in fields:
            fields["graph"] = polished(fields["graph"], kept_by(entries, fields, kept))
    while remove_copy(entries, kept) or fuse_sum(entries, kept) or fuse_gate(entries, kept):
        pass
    return entries


def tidied(entries: list[Any], outputs: list[str], kept: set[str]) -> list[str]:
    """Renumber value names to the shortest free ones, in order of definition; returns the renamed outputs.

    Names in ``kept`` are those of inputs and stay. An entry that names no result binds its path.
    """
    taken = kept | {key for key, fields in flat(entries) if "to" not in fields}
    chosen: dict[str, str] = {}
    for name in made(entries):
        if name in kept or name in chosen:
            continue
        chosen[name] = numbered(name.rstrip("0123456789") or name, taken)
        taken.add(chosen[name])
    rename(entries, chosen)
    return [chosen.get(name, name) for name in outputs]


def remove_copy(entries: list[Any], kept: set[str]) -> bool:
    """Remove one copy of a value and rename its source to its name; returns False if no copy can go."""
    for place, (_, fields) in enumerate(entries):
        source = fields.get("from")
        if not has_no_other_fields(fields, "add", "to") or not isinstance(source, str) or source in kept:
            continue
        start = maker(entries[:place], source)
        if start is not None and "graph" not in entries[start][1] and is_free(entries, start, place, source, fields["to"]):
            del entries[place]
            rename(entries[start:], {source: fields["to"]})
            return True
    return False


def has_no_other_fields(fields: dict[str, Any], op: str, into: str) -> bool:
    """Whether an entry has the operator ``op`` and, besides, the fields ``from`` and ``into`` alone.

    ``into`` is the name of the field with the result: ``to`` or ``add_to``.
    """
    return fields.get("op") == op and set(fields) == {"op", "from", into}


def is_free(entries: list[Any], start: int, place: int, source: str, target: str) -> bool:
    """Whether value ``source`` of entry ``start`` may take the name of its copy ``target`` at ``place``.

    It may if the two are never needed at once.
    """
    if mentioned(entries[start + 1 : place], target) or sum(source in results(one) for _, one in entries) > 1:
        return False
    return not count(entries[place + 1 :], source) or not bound(entries[place + 1 :], target)


def terms(fields: dict[str, Any], op: str) -> Iterator[tuple[str, str]]:
    """The pair of operands of an entry with operator ``op``, in both orders; nothing for other entries."""
    operands = fields.get("from")
    if fields.get("op") == op and isinstance(operands, list) and len(operands) == 2:
        yield operands[0], operands[1]
        yield operands[1], operands[0]


def only_maker(entries: list[Any], name: str, place: int, kept: set[str]) -> int | None:
    """Index of the entry that makes value ``name``, if the entry at ``place`` alone reads it; else None.

    ``kept`` are the names that are read elsewhere.
    """
    return None if name in kept or count(entries, name) != 1 else maker(entries[:place], name)


def addable(fields: dict[str, Any]) -> bool:
    """Whether an entry may have the field ``add_to`` and does not have it yet."""
    return "add_to" not in fields and "graph" not in fields and ("block" in fields or fields.get("op") in GATED)


def fuse_sum(entries: list[Any], kept: set[str]) -> bool:
    """Replace one sum ``r + x`` by ``add_to: r`` in the entry that makes ``x``; returns False if none."""
    for place, (_, fields) in enumerate(entries):
        for base, term in terms(fields, "add") if has_no_other_fields(fields, "add", "to") else ():
            start = only_maker(entries, term, place, kept)
            if start is None or not addable(entries[start][1]) or not may_add(entries, start, place, base, kept):
                continue
            adder = entries[start][1]
            adder["add_to"] = base
            del adder["to"], entries[place]
            rename(entries[start + 1 :], {fields["to"]: base})
            return True
    return False


def may_add(entries: list[Any], start: int, place: int, base: str, kept: set[str]) -> bool:
    """Whether the sum at ``place`` may move to entry ``start`` and overwrite ``base``.

    It may if nothing needs the old value of ``base`` from there on. ``kept`` are the names that are read elsewhere.
    """
    fields = entries[place][1]
    target = fields["to"]
    if base != fields["from"][0]:  # a second operand may be a parameter or come from outside: neither is overwritten
        source = next((one for _, one in entries[:place] if base in results(one)), None)
        if base not in kept if source is None else source.get("op") == "parameter":
            return False
    if mentioned(entries[start + 1 : place], base) or bound(entries[start : start + 1], base):
        return False
    known = bound(entries[:start], base) or base in kept
    return target == base or (known and target not in kept and not needed_later(entries[place + 1 :], base, kept))


def fuse_gate(entries: list[Any], kept: set[str]) -> bool:
    """Replace one product ``x * g`` by ``gate: g`` in linear or attention ``x``; returns False if none."""
    for place, (_, fields) in enumerate(entries):
        into = "add_to" if "add_to" in fields else "to"
        term, gate = next(terms(fields, "mul"), ("", ""))
        start = only_maker(entries, term, place, kept) if has_no_other_fields(fields, "mul", into) else None
        if start is None or entries[start][1].get("op") not in ("linear", "attention"):
            continue
        product = entries[start][1]
        late = into == "add_to" and mentioned(entries[start + 1 : place], fields[into])
        if "gate" in product or "add_to" in product or bound(entries[start:place], gate) or late:
            continue
        del product["to"], entries[place]
        product |= {"gate": gate, into: fields[into]}
        return True
    return False


def inlined(entries: list[Any]) -> list[Any]:
    """Entries with sums after a branch moved into its cases, and each group of one entry replaced by this entry."""
    for _, fields in entries:
        if "graph" in fields:
            fields["graph"] = inlined(fields["graph"])
    while add_in_cases(entries):
        pass
    return [ungrouped(key, fields) for key, fields in entries]


def ungrouped(key: str, fields: dict[str, Any]) -> Any:
    """Path and fields of an entry; a conditional group of one entry becomes this entry with its condition."""
    if key != "_" or set(fields) != {"when", "graph"} or len(fields["graph"]) != 1:
        return key, fields
    ((inner_key, inner),) = fields["graph"]
    if "when" in inner:
        return key, fields
    graph = {"graph": inner["graph"]} if "graph" in inner else {}
    return inner_key, {**{word: value for word, value in inner.items() if word != "graph"}, "when": fields["when"], **graph}


def add_in_cases(entries: list[Any]) -> bool:
    """Replace one sum with a value that each case of a branch makes by ``add_to`` in the cases.

    A case is one of the conditional groups that make the value. Returns False if there is no such sum.
    """
    for place, (_, fields) in enumerate(entries):
        for base, term in terms(fields, "add"):
            if base != fields.get("to") or term == base or count(entries, term) != 1:
                continue
            adders = last_of_cases(entries, place, base, term)
            for adder in adders:
                del adder["to"]
                adder["add_to"] = base
            if adders:
                del entries[place]
                return True
    return False


def last_of_cases(entries: list[Any], place: int, base: str, term: str) -> list[dict[str, Any]]:
    """Fields of the last entries of the conditional groups before ``place`` that make ``term``.

    Empty if one of them cannot add the value to ``base`` itself.
    """
    cases = [number for number, one in enumerate(entries) if number != place and bound([one], term)]
    if not cases or cases[-1] > place or mentioned(entries[cases[0] + 1 : place], base) or bound([entries[cases[0]]], base):
        return []
    groups = [entries[number][1] for number in cases]
    return [group["graph"][-1][1] for group in groups] if all(ends_with(group, term) for group in groups) else []


def ends_with(group: dict[str, Any], term: str) -> bool:
    """Whether the last entry of a conditional group, and no other, makes ``term`` and can have ``add_to``."""
    if set(group) != {"when", "graph"}:
        return False
    makers = [term in results(fields) for _, fields in group["graph"]]
    return makers[-1] and sum(makers) == 1 and addable(group["graph"][-1][1])


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
    views = {
        other["to"]: other
        for _, other in entries
        if other.get("op") == "select" and other["from"] == fields["to"] and "width" not in other
    }
    found = parts_by_stream(parts, views, values) if len(views) == count(graph, fields["to"]) else None
    if found is not None:
        fields |= {**dict(zip(SIDES, parts, strict=True)), "to": [next(iter(names), "_") for names in found]}
        gone = {id(one) for one in (*joins, *views.values())}
        entries[:] = [one for one in entries if id(one[1]) not in gone]
        rename(graph, {other: names[0] for names in found for other in names[1:]})


def parts_by_stream(parts: Sequence[list[str]], views: Iterable[str], values: Mapping[str, Val]) -> list[list[str]] | None:
    """For each stream of the queries, the names of the values that are selected from the result in this stream.

    None if the attention cannot be split.

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
