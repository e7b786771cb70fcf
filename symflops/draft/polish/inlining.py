"""Makes branches read as a person writes them: sums within each case, and conditions on single entries."""

from __future__ import annotations

from typing import Any

from symflops.draft.polish.entries import bound, count, mentioned, results
from symflops.draft.polish.polish import addable, terms


def inlined(entries: list[Any]) -> list[Any]:
    """Entries in which each case of a branch adds for itself, and a group of one entry is that entry with the condition."""
    for _, fields in entries:
        if "graph" in fields:
            fields["graph"] = inlined(fields["graph"])
    while add_in_cases(entries):
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


def add_in_cases(entries: list[Any]) -> bool:
    """Write one sum of what each case of a branch makes as ``add_to`` in each case; False if there is none."""
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
    """The last entries of all cases that make ``term``; none unless each may add it to ``base`` in place of the later sum."""
    cases = [number for number, one in enumerate(entries) if number != place and bound([one], term)]
    if not cases or cases[-1] > place or mentioned(entries[cases[0] + 1 : place], base) or bound([entries[cases[0]]], base):
        return []
    groups = [entries[number][1] for number in cases]
    return [group["graph"][-1][1] for group in groups] if all(ends_with(group, term) for group in groups) else []


def ends_with(group: dict[str, Any], term: str) -> bool:
    """Whether only the last entry of a case makes a value, and may add it to another."""
    if set(group) != {"when", "graph"}:
        return False
    makers = [term in results(fields) for _, fields in group["graph"]]
    return makers[-1] and sum(makers) == 1 and addable(group["graph"][-1][1])
