"""Mutations of trees: documents of YAML and JSON that stay documents, changed at any level by what their format knows."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from typing import Any

from symflops.ir.convention import ROLES
from symflops.ops.kind import COMMON, Form, words_of
from symflops.ops.table import ALL
from symflops.read.field_tables import (
    ADAPTER,
    BACKWARD,
    BLOCK,
    CALL,
    CONVENTION,
    DOCUMENT,
    EXCEPTION,
    EXTENDS,
    GROUP,
    INPUT,
    PASSES,
    PHASE,
    PLACES,
    RECOMPUTE,
    REGIME,
    REPEAT,
    RULE,
    SIZE,
    STREAM,
)
from symflops.read.peer_pages import CASE, LENGTHS, PAGE
from symflops.read.yaml_nodes import Mapping, Node, Scalar, read_yaml
from symflops.support.findings import Source
from symflops.verify.cases import FIELDS as CASE_FIELDS
from tests.fuzz.mutators import INJECTIONS, NASTY
from tests.fuzz.values import NUMBERS, anything, nested

MOST_BYTES = 900_000


class Map(list):
    """A mapping as pairs of a key and a value, so that a key can stand twice."""


def of_node(node: Node) -> Any:
    """A document of YAML; every scalar is its text."""
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Mapping):
        return Map([key.text, of_node(value)] for key, value in node.entries)
    return [of_node(item) for item in node.items]


def of_yaml(text: str) -> Any:
    return of_node(read_yaml(Source("stock", text)))


def of_json(value: Any) -> Any:
    """A document of JSON."""
    if isinstance(value, dict):
        return Map([key, of_json(item)] for key, item in value.items())
    return [of_json(item) for item in value] if isinstance(value, list) else value


PLAIN = re.compile(r"[A-Za-z_*][\w.*/+() %-]*[\w)*]|[A-Za-z_]|[0-9]+(\.[0-9]+)?")


def yaml_text(value: Any) -> str:
    """A tree as YAML of one line."""
    if isinstance(value, Map):
        return "{" + ", ".join(f"{scalar(key)}: {yaml_text(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(yaml_text, value)) + "]"
    return scalar(value)


def scalar(value: Any) -> str:
    if isinstance(value, str):
        return value if PLAIN.fullmatch(value) and " #" not in value else json.dumps(value, ensure_ascii=len(value) % 2 == 0)
    return json.dumps(value) if not isinstance(value, (dict, list)) else json.dumps(str(value))


def json_text(value: Any) -> str:
    """A tree as JSON."""
    if isinstance(value, Map):
        return "{" + ", ".join(f"{json.dumps(str(key))}: {json_text(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return json.dumps(value)


def to_bytes(tree: Any, as_json: bool) -> bytes:
    if not as_json and isinstance(tree, Map):
        text = "".join(f"{scalar(key)}: {yaml_text(value)}\n" for key, value in tree)
    else:
        text = json_text(tree) if as_json else yaml_text(tree)
    return text.encode("utf-8", "surrogatepass")


FIELDS = {
    "spec": (*DOCUMENT, EXTENDS, *SIZE, *STREAM, *INPUT, *BLOCK, *REPEAT, *GROUP, *CALL, *COMMON, *PLACES, *(field for operator in ALL for field in operator.fields)),
    "regime": (*REGIME, *ADAPTER, *RECOMPUTE, *PASSES, *PHASE),
    "convention": (*CONVENTION, *RULE, *BACKWARD, *EXCEPTION),
}
WORDS = {kind: tuple(dict.fromkeys(words_of(fields))) for kind, fields in FIELDS.items()}
WORDS |= {"block": WORDS["spec"], "case": CASE_FIELDS, "page": (*PAGE, *CASE, *LENGTHS)}
CHOICES = {kind: tuple(dict.fromkeys(word for field in fields for word in field.words)) for kind, fields in FIELDS.items()}
CHOICES["spec"] = CHOICES["block"] = (*CHOICES["spec"], *(operator.name for operator in ALL), *ROLES)
CHOICES["convention"] = (*CHOICES["convention"], *ROLES)
GLOBS = ("*", "*.*", "**", "*.*.*.*", "*q_proj", "*proj*", "*.weight", "*.layers.0.*", "*.layers.::2.*", "*.layers.-1.*", "*.layers.:4.*", "*.layers.1:3.*", "m.*", "m.::2.*", "m.0.*", "?", "[a-z]*", "[!a]*", "[", "*.[", "a" * 400, "*a" * 200, "*.::0.*", "*.:.*", "*.::.*", "*.99999999999999999999.*", "lm_head", "model.layers.*", "*.mlp.*", "")  # fmt: skip
SCALARS = ("0", "1", "2", "-1", "0.5", "3/2", "1000000", "1000001", "9" * 30, "²", "٣", "1e3", "nan", "inf", "true", "false", "null", "yes", "no", "~", "''", "full", "lora", "forward", "decode", "small", "llama")


def slots(tree: Any) -> Iterator[tuple[Any, int]]:
    """Every place of a value: the list that holds it, and where."""
    if isinstance(tree, Map):
        for pair in tree:
            yield pair, 1
            yield from slots(pair[1])
    elif isinstance(tree, list):
        for place, item in enumerate(tree):
            yield tree, place
            yield from slots(item)


def inner(tree: Any, kind: type) -> list[Any]:
    """All mappings, or all lists, of a tree."""
    own = [tree] if type(tree) is kind else []
    items = [pair[1] for pair in tree] if isinstance(tree, Map) else tree if isinstance(tree, list) else []
    return own + [found for item in items for found in inner(item, kind)]


def names(tree: Any) -> list[str]:
    """The keys and short texts of a tree."""
    found = [str(pair[0]) for mapping in inner(tree, Map) for pair in mapping]
    found += [value for holder, place in slots(tree) if isinstance(value := holder[place], str) and len(value) < 40]
    return found or ["x"]


class Mutator:
    """Changes trees of one kind of document."""

    def __init__(self, kind: str, rng: random.Random, as_json: bool = False) -> None:
        self.kind, self.rng, self.as_json = kind, rng, as_json

    def mutated(self, tree: Any) -> bytes:
        """A tree after a few changes, as a file."""
        tree = copy.deepcopy(tree)
        for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3, 5))):
            changed = self.changed(tree)
            tree = tree if changed is None else changed
        return to_bytes(tree, self.as_json)[:MOST_BYTES]

    def changed(self, tree: Any) -> Any:
        """Change a tree in place; returned if it is another one."""
        rng, maps, places = self.rng, inner(tree, Map), list(slots(tree))
        lists = inner(tree, list)
        if not places or rng.random() < 0.01:
            return self.value(tree)
        holder, place = rng.choice(places)
        match rng.randrange(12):
            case 0 | 1:
                holder[place] = self.value(tree)
            case 2:
                other, there = rng.choice(places)
                holder[place] = copy.deepcopy(other[there])
            case 3:
                other, there = rng.choice(self.alike(holder, maps) or places)
                holder[place] = copy.deepcopy(other[there])
            case 4 if maps:
                mapping = rng.choice(maps)
                if mapping:
                    mapping.remove(rng.choice(mapping))
            case 5 if maps:
                rng.choice(maps).append([self.word(tree), self.value(tree)])
            case 6 if maps:
                mapping = rng.choice(maps)
                if mapping:
                    rng.choice(mapping)[0] = self.word(tree)
            case 7 if maps:
                mapping = rng.choice(maps)
                if mapping:
                    mapping.insert(rng.randrange(len(mapping) + 1), copy.deepcopy(rng.choice(mapping)))
            case 8 if lists:
                self.repeated(rng.choice(lists))
            case 9:
                self.renamed(tree, places)
            case 10:
                value = holder[place]
                holder[place] = rng.choice(([value], [value, value], Map([[self.word(tree), value]]), [[value]], []))
            case _:
                holder[place] = self.edited(holder[place], tree)
        return None

    def alike(self, holder: list[Any], maps: list[Any]) -> list[tuple[Any, int]]:
        """The places of values under the same key."""
        key = holder[0] if len(holder) == 2 and isinstance(holder[0], str) else None
        return [(pair, 1) for mapping in maps for pair in mapping if pair[0] == key]

    def word(self, tree: Any) -> str:
        """A key: of the format, of the document, or neither."""
        roll = self.rng.random()
        if roll < 0.55 and WORDS.get(self.kind):
            return self.rng.choice(WORDS[self.kind])
        return self.rng.choice(names(tree)) if roll < 0.85 else self.rng.choice((*NASTY, *INJECTIONS))

    def value(self, tree: Any) -> Any:
        """A value: a word of the format, a name of the document, a number, something nasty, or a piece of structure."""
        rng = self.rng
        roll = rng.random()
        if roll < 0.2:
            return rng.choice(names(tree))
        if roll < 0.4 and CHOICES.get(self.kind):
            return rng.choice(CHOICES[self.kind])
        if roll < 0.55:
            return rng.choice(GLOBS if self.kind == "regime" else SCALARS)
        if roll < 0.75:
            return rng.choice(NUMBERS) if self.as_json else rng.choice(SCALARS)
        if roll < 0.9:
            return rng.choice((*NASTY, *INJECTIONS))
        if roll < 0.92:
            return of_json(nested(rng.choice((20, 63, 64, 65, 200)), rng.random() < 0.5))
        if roll < 0.94:
            return "x" * rng.choice((300, 5000, 70_000))
        return of_json(anything(rng))

    def edited(self, value: Any, tree: Any) -> Any:
        """A value near the one that was there."""
        rng = self.rng
        if isinstance(value, bool):
            return not value
        if isinstance(value, (int, float)):
            return rng.choice((value + 1, value - 1, -value, value * 2, value * 10**12, value / 2 if abs(value) < 1e300 else 0, str(value), float(value) if abs(value) < 1e300 else 0.0, 0, None))
        if isinstance(value, str):
            return rng.choice((value + "x", value[:-1], value.upper(), value + " ", f"{value}.{value}", f"({value})", f"-({value})", f"{value} + 1", f"{value}*0", f"{value} - 10", f"{value}//3", f"{value}/3", value.replace("*", "**"), rng.choice(names(tree))))
        if isinstance(value, list) and value:
            rng.shuffle(value)
            return value if rng.random() < 0.5 else type(value)(value[: rng.randrange(len(value))])
        return self.value(tree)

    def repeated(self, items: list[Any]) -> None:
        """Items of a list said again, at times very often."""
        if items:
            times = self.rng.choice((1, 2, 2, 5, 20, 300, 3000))
            item = self.rng.choice(items)
            times = min(times, 200_000 // (len(str(item)) + 1) + 1)
            items.extend(copy.deepcopy(item) for _ in range(times))

    def renamed(self, tree: Any, places: list[tuple[Any, int]]) -> None:
        """One name said differently, wherever it stands or in one place."""
        old, new = self.rng.choice(names(tree)), self.rng.choice((*names(tree), self.word(tree)))
        whole = self.rng.random() < 0.5
        for holder, place in places:
            if holder[place] == old and (whole or self.rng.random() < 0.3):
                holder[place] = new
        for mapping in inner(tree, Map):
            for pair in mapping:
                if pair[0] == old and whole:
                    pair[0] = new


__all__ = ["Form", "Map", "Mutator", "of_json", "of_yaml"]
