"""Makes branches read as a person writes them: sums within each case, and conditions on single entries."""

from __future__ import annotations

from typing import Any

from symflops.draft.polish.polish import GATED, count, own, reads, writes


def inlined(entries: list[Any]) -> list[Any]:
    """Entries in which each case of a branch adds for itself, and a group of one entry is that entry with the condition."""
    for _, fields in entries:
        if "graph" in fields:
            fields["graph"] = inlined(fields["graph"])
    while moved_in(entries):
        pass
    return [single(key, fields) for key, fields in entries]


def single(key: str, fields: dict[str, Any]) -> Any:
    """A group that is nothing but a condition on one entry, as that entry."""
    if key != "_" or set(fields) != {"when", "graph"} or len(fields["graph"]) != 1:
        return key, fields
    ((inner_key, inner),) = fields["graph"]
    if "when" in inner:
        return key, fields
    graph = {"graph": inner["graph"]} if "graph" in inner else {}
    return inner_key, {**{word: value for word, value in inner.items() if word != "graph"}, "when": fields["when"], **graph}


def moved_in(entries: list[Any]) -> bool:
    """One sum of what each case of a branch makes as ``add_to`` of what makes it there."""
    for place, (_, fields) in enumerate(entries):
        operands = fields.get("from")
        if fields.get("op") != "add" or not isinstance(operands, list) or len(operands) != 2 or fields["to"] not in operands:
            continue
        base = fields["to"]
        term = next((one for one in operands if one != base), base)
        cases = [number for number, (_, other) in enumerate(entries) if number != place and term in set(writes(other))]
        if term == base or not cases or cases[-1] > place or count(entries, term) != 1:
            continue
        graphs = [entries[number][1] for number in cases]
        if any(set(graph) != {"when", "graph"} for graph in graphs):
            continue
        makers = [[inner for _, inner in graph["graph"] if term in set(own(inner))] for graph in graphs]
        lasts = [graph["graph"][-1][1] for graph in graphs]
        if any(made != [last] for made, last in zip(makers, lasts, strict=True)) or not all(map(addable, lasts)):
            continue
        between = [other for number, (_, other) in enumerate(entries[cases[0] : place], cases[0]) if number not in cases]
        if any(base in {*reads(other), *writes(other)} for other in between):
            continue
        if any(base in {*reads(graph), *writes(graph)} for graph in graphs[1:]) or base in set(writes(graphs[0])):
            continue
        for last in lasts:
            del last["to"]
            last["add_to"] = base
        del entries[place]
        return True
    return False


def addable(fields: dict[str, Any]) -> bool:
    """Whether an entry may add its result to another value."""
    return "add_to" not in fields and "graph" not in fields and ("block" in fields or fields.get("op") in GATED)
