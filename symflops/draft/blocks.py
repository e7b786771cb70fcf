"""Recognises blocks of the library: linears and products in a row that one of them describes, as one call of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symflops.draft.polish import reads
from symflops.ground.diagnostics import Source
from symflops.ground.nodes import Mapping as MappingNode
from symflops.ground.nodes import Scalar, read_yaml
from symflops.ground.nodes import Sequence as SequenceNode

OPERATORS = ("linear", "mul")
FEWEST = 2


@dataclass(frozen=True, slots=True)
class Pattern:
    """A block of plain operators: its name, parameters with their defaults, inputs, and entries as key and fields."""

    name: str
    parameters: Mapping[str, str]
    inputs: tuple[str, ...]
    output: str
    entries: tuple[tuple[str, Mapping[str, Any]], ...]


def plain(node: Any) -> Any:
    """A document as plain data."""
    if isinstance(node, MappingNode):
        return {key.text: plain(value) for key, value in node.entries}
    if isinstance(node, SequenceNode):
        return [plain(item) for item in node.items]
    return node.text if isinstance(node, Scalar) else None


def patterns_in(root: Path) -> list[Pattern]:
    """The blocks below a library that are nothing but linears and products, the longest first."""
    found = []
    for path in sorted((root / "blocks").glob("*.yaml")):
        data = plain(read_yaml(Source(path.name, path.read_text("utf-8"))))
        entries = [next(iter(entry.items())) for entry in data.get("graph", ())]
        simple = all(fields.get("op") in OPERATORS and "when" not in fields and key != "_" for key, fields in entries)
        inputs, outputs = data.get("inputs") or [], data.get("outputs") or []
        if not simple or len(inputs) != 1 or len(outputs) != 1:
            continue
        found.append(Pattern(path.stem, data.get("params") or {}, tuple(inputs), outputs[0], tuple(entries)))
    return sorted(found, key=lambda pattern: -len(pattern.entries))


def operands(fields: Mapping[str, Any]) -> list[str]:
    """What an entry reads under ``from``."""
    value = fields.get("from", [])
    return [value] if isinstance(value, str) else list(value)


def matched(pattern: Pattern, entries: Sequence[Any], place: int) -> tuple[int, str, dict[str, Any]] | None:
    """A call of a block in place of entries from ``place`` on: how many they are, the path, and the fields; None if not."""
    values: dict[str, str] = {}
    bound: dict[str, str] = {}
    prefix: str | None = None
    position = place
    last: Mapping[str, Any] = {}
    for key, wanted in pattern.entries:
        sources = operands(wanted)
        if wanted["op"] == "mul" and len(sources) == 1:  # an activation, which a draft does not show
            values[wanted["to"]] = values.get(sources[0], "")
            continue
        if position >= len(entries) or (last and not set(last) <= {"op", "from", "width", "bias", "to"}):
            return None
        own_key, fields = entries[position]
        if fields.get("op") != wanted["op"]:
            return None
        if wanted["op"] == "linear":
            if not own_key.endswith(key) or (own_key != key and own_key[-len(key) - 1] != "."):
                return None
            path = own_key[: -len(key)].rstrip(".")
            if prefix not in (None, path):
                return None
            prefix = path
        given = operands(fields)
        if len(given) != len(sources):
            return None
        for source, value in zip(sources, given, strict=True):
            if values.setdefault(source, value) != value:
                return None
        for word in ("width", "bias") if wanted["op"] == "linear" else ():
            mine = str(fields.get(word, "true"))
            theirs = str(wanted.get(word, "true"))
            if theirs in pattern.parameters:
                if bound.setdefault(theirs, mine) != mine:
                    return None
            elif theirs != mine:
                return None
        values[wanted["to"]] = fields.get("to", "")
        last = fields
        position += 1
    if not prefix or position - place < FEWEST or not values.get(pattern.inputs[0]):
        return None
    if not set(last) <= {"op", "from", "width", "bias", "to", "gate", "add_to"}:
        return None
    inner = {entries[number][1].get("to") for number in range(place, position - 1)} - {None}
    later = {name for _, fields in entries[position:] for name in reads(fields)}
    if inner & (later | set(reads({word: value for word, value in last.items() if word in ("gate", "add_to")}))):
        return None
    call: dict[str, Any] = {"block": pattern.name, "from": values[pattern.inputs[0]]}
    call |= {name: value for name, value in bound.items() if value != str(pattern.parameters[name])}
    call |= {word: last[word] for word in ("to", "gate", "add_to") if word in last}
    return position - place, prefix, call


def called(entries: list[Any], patterns: Sequence[Pattern]) -> list[Any]:
    """Entries in which runs that a block describes are calls of it."""
    for _, fields in entries:
        if "graph" in fields:
            fields["graph"] = called(fields["graph"], patterns)
    return list(replaced(entries, patterns))


def replaced(entries: list[Any], patterns: Sequence[Pattern]) -> Iterator[Any]:
    """One list of entries with calls of blocks."""
    place = 0
    while place < len(entries):
        calls = [one for pattern in patterns if (one := matched(pattern, entries, place))]
        found = min(calls, key=lambda one: (-one[0], len(one[2])), default=None)
        if found is None:
            yield entries[place]
            place += 1
        else:
            yield found[1], found[2]
            place += found[0]
