"""Queries on the names that graph entries read and bind; an entry is a pair (path, fields)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

REFERENCES = (
    "from",
    "with",
    "gate",
    "add_to",
    "query",
    "key",
    "value",
    "bias",
    "like",
    "weights",
    "dt",
    "write",
    "decay",
    "right",
    "axes_of",
)
GATED = ("linear", "conv", "matmul", "attention", "mul", "map", "rms_norm", "layer_norm")  # operators that take ``add_to``
BOOLEANS = ("true", "false")


def names_in(fields: Mapping[str, Any], word: str) -> list[str]:
    """Names of values in field ``word`` of an entry; empty if it lacks the field, and for ``bias: true``."""
    value = fields.get(word, [])
    if isinstance(value, str):
        return [] if word == "bias" and value in BOOLEANS else [value]
    return list(value) if isinstance(value, (list, tuple)) else []


def operands(fields: Mapping[str, Any]) -> list[str]:
    """Names of values that the fields of an entry read; its body is not visited."""
    return [name for word in REFERENCES for name in names_in(fields, word)]


def results(fields: Mapping[str, Any]) -> list[str]:
    """Names of values in the ``to`` field of an entry; its body is not visited."""
    return names_in(fields, "to")


def reads(fields: Mapping[str, Any]) -> list[str]:
    """Names of values that an entry or its body reads, once for each time."""
    return [name for _, one in flat([("", fields)]) for name in operands(one)]


def writes(fields: Mapping[str, Any]) -> list[str]:
    """Names of values that an entry or its body writes by ``to`` or ``add_to``, once for each time."""
    return [name for _, one in flat([("", fields)]) for name in (*results(one), *names_in(one, "add_to"))]


def flat(entries: Sequence[Any]) -> Iterator[Any]:
    """Pairs (path, fields) of all entries; the entries of a body follow the entry that has the body."""
    for key, fields in entries:
        yield key, fields
        yield from flat(fields.get("graph", ()))


def made(entries: Sequence[Any]) -> list[str]:
    """Names in the ``to`` fields of entries and their bodies, in order."""
    return [name for _, fields in flat(entries) for name in results(fields)]


def mentioned(entries: Sequence[Any], name: str) -> bool:
    """Whether entries or their bodies read the value ``name`` or write it."""
    return any(name in {*reads(fields), *writes(fields)} for _, fields in entries)


def bound(entries: Sequence[Any], name: str) -> bool:
    """Whether entries or their bodies write the value ``name`` by ``to`` or ``add_to``."""
    return any(name in writes(fields) for _, fields in entries)


def count(entries: Sequence[Any], name: str) -> int:
    """Number of times that entries and their bodies read the value ``name``."""
    return sum(reads(fields).count(name) for _, fields in entries)


def maker(entries: Sequence[Any], name: str) -> int | None:
    """Index of the last entry whose ``to`` has the value ``name``; None if no entry makes it."""
    return next((place for place in reversed(range(len(entries))) if name in results(entries[place][1])), None)


def rename(entries: Sequence[Any], names: Mapping[str, str]) -> None:
    """Rename values of entries and their bodies in place, all at once; ``names`` maps old to new names."""
    for _, fields in flat(entries):
        for word in (*REFERENCES, "to"):
            value = fields.get(word)
            if isinstance(value, list):
                fields[word] = [names.get(one, one) for one in value]
            elif names_in(fields, word):
                fields[word] = names.get(value, value)


def carried(body: Sequence[Any]) -> set[str]:
    """Names that a loop body reads before it writes them: candidates for loop-carried values."""
    found: set[str] = set()
    known: set[str] = set()
    for _, fields in body:
        found.update({*operands(fields), *carried(fields.get("graph", ()))} - known)
        known.update(writes(fields))
    return found


def needed_later(entries: Sequence[Any], name: str, kept: set[str]) -> bool:
    """Whether the current value of ``name`` is still read, by ``entries`` or after them.

    ``kept`` are the names that are read after them.
    """
    for _, fields in entries:
        if name in reads(fields):
            return True
        if "graph" not in fields and name in results(fields):
            return False
    return name in kept


def kept_by(entries: Sequence[Any], fields: Mapping[str, Any], kept: set[str]) -> set[str]:
    """Names that an entry's body writes and that are read outside the body or by its next iteration.

    ``fields`` is the entry, one of ``entries``; ``kept`` are the names that are read outside of these.
    """
    outside = {name for _, other in entries if other is not fields for name in reads(other)}
    return (outside | kept | carried(fields["graph"])) & set(writes(fields))
