"""The names that entries read and bind."""

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
GATED = ("linear", "conv", "matmul", "attention", "mul", "map", "rms_norm", "layer_norm")  # operators with ``add_to``
BOOLEANS = ("true", "false")


def names_in(fields: Mapping[str, Any], word: str) -> list[str]:
    """The values that a field names; ``bias: true`` names none."""
    value = fields.get(word, [])
    if isinstance(value, str):
        return [] if word == "bias" and value in BOOLEANS else [value]
    return list(value) if isinstance(value, (list, tuple)) else []


def operands(fields: Mapping[str, Any]) -> list[str]:
    """The names that an entry itself reads, field by field."""
    return [name for word in REFERENCES for name in names_in(fields, word)]


def results(fields: Mapping[str, Any]) -> list[str]:
    """The names that an entry itself binds anew."""
    return names_in(fields, "to")


def reads(fields: Mapping[str, Any]) -> Iterator[str]:
    """The names that an entry and its body read."""
    for _, one in flat([("", fields)]):
        yield from operands(one)


def writes(fields: Mapping[str, Any]) -> Iterator[str]:
    """The names that an entry and its body bind."""
    for _, one in flat([("", fields)]):
        yield from (*results(one), *names_in(one, "add_to"))


def flat(entries: Sequence[Any]) -> Iterator[Any]:
    """All entries, those of bodies too."""
    for key, fields in entries:
        yield key, fields
        yield from flat(fields.get("graph", ()))


def made(entries: Sequence[Any]) -> Iterator[str]:
    """The names that entries and their bodies bind, in order."""
    for _, fields in flat(entries):
        yield from results(fields)


def mentioned(entries: Sequence[Any], name: str) -> bool:
    """Whether entries read or bind a name."""
    return any(name in {*reads(fields), *writes(fields)} for _, fields in entries)


def bound(entries: Sequence[Any], name: str) -> bool:
    """Whether entries or their bodies bind a name."""
    return any(name in writes(fields) for _, fields in entries)


def count(entries: Sequence[Any], name: str) -> int:
    """How often entries read a name."""
    return sum(list(reads(fields)).count(name) for _, fields in entries)


def maker(entries: Sequence[Any], name: str) -> int | None:
    """The place of the last entry that binds a name by itself."""
    return next((place for place in reversed(range(len(entries))) if name in results(entries[place][1])), None)


def rename(entries: Sequence[Any], names: Mapping[str, str]) -> None:
    """Give values other names, all at once."""
    for _, fields in flat(entries):
        for word in (*REFERENCES, "to"):
            value = fields.get(word)
            if isinstance(value, list):
                fields[word] = [names.get(one, one) for one in value]
            elif names_in(fields, word):
                fields[word] = names.get(value, value)


def carried(body: Sequence[Any]) -> set[str]:
    """The names that a body reads before it binds them: the next item reads them again."""
    found: set[str] = set()
    known: set[str] = set()
    for _, fields in body:
        found.update({*operands(fields), *carried(fields.get("graph", ()))} - known)
        known.update(writes(fields))
    return found


def needed_later(entries: Sequence[Any], name: str, kept: set[str]) -> bool:
    """Whether entries read the present value of a name; ``kept`` are names that are read after them."""
    for _, fields in entries:
        if name in reads(fields):
            return True
        if "graph" not in fields and name in results(fields):
            return False
    return name in kept


def kept_by(entries: Sequence[Any], fields: Mapping[str, Any], kept: set[str]) -> set[str]:
    """The names that the body of an entry binds and something outside it reads, or its next item."""
    outside = {name for _, other in entries if other is not fields for name in reads(other)}
    return (outside | kept | carried(fields["graph"])) & set(writes(fields))
