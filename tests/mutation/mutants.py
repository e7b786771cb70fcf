"""Each entry of a spec, and of the blocks that it calls, changed once: what a tired author gets wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.mutation.trees import text

VALUES = ("from", "query", "key", "value", "with", "gate", "add_to", "weights", "bias")
DROPPED = ("with", "gate", "add_to", "when", "affine", "dim", "kv_heads", "no_grad", "shared", "split", "to", "mask", "saves", "weight", "tie")
NUMBERS = ("width", "rows", "heads", "kv_heads", "dim", "hidden", "choose", "experts", "kernel", "stride", "padding", "head_dim", "norm_dim", "repeat", "start")
Place = tuple[Any, ...]


@dataclass(frozen=True)
class Mutant:
    """One change: of which document, at which entry, of what class; ``choices`` are edits of which the first that builds counts."""

    document: str
    entry: str
    kind: str
    choices: tuple[Callable[[Any], None], ...]

    @property
    def id(self) -> str:
        return f"{self.document}: {self.entry}: {self.kind}"

    def trees(self, tree: Any) -> Iterator[Any]:
        """The changed documents."""
        for choice in self.choices:
            changed = copy.deepcopy(tree)
            choice(changed)
            yield changed


def at(tree: Any, place: Place) -> Any:
    """What stands at a place of a tree."""
    for step in place:
        tree = tree[step]
    return tree


def entries(tree: Any, place: Place = ()) -> Iterator[tuple[Place, str, Any]]:
    """Every entry of the graphs below a tree: where its fields are, its path, its fields."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == "graph" and isinstance(value, list):
                for position, item in enumerate(value):
                    ((path, body), *more) = item.items()
                    alone = bool(more) or not isinstance(body, dict)
                    fields, inside = (item, (*place, key, position)) if alone else (body, (*place, key, position, path))
                    yield inside, "_" if alone else path, fields
                    yield from entries(fields, inside)
            elif key == "blocks":
                for name, block in value.items():
                    yield from entries(block, (*place, key, name))


def names_of(given: Any) -> list[str]:
    """The names in a field."""
    return [given] if isinstance(given, str) else [name for item in given for name in names_of(item)]


def everywhere(tree: Any) -> Iterator[tuple[Place, str, Any]]:
    """The entries that every regime runs: not those of a part, which no record has; tests of that regime hold them to the class."""
    parts = {letter for letter, size in (tree.get("sizes") or {}).items() if isinstance(size, dict) and "part" in size}
    left_out: list[Place] = []
    for place, path, body in entries(tree):
        if body.get("repeat") in parts:
            left_out.append(place)
        if not any(place[: len(each)] == each for each in left_out):
            yield place, path, body


def mutants(document: str, tree: Any) -> Iterator[Mutant]:
    """All mutants of a document."""
    names = list(dict.fromkeys([*tree["inputs"], *(name for _, path, body in everywhere(tree) for name in names_of(body.get("to", [path])))]))
    names = [name for name in names if name != "_"]
    seen: dict[str, int] = {}
    for place, path, body in everywhere(tree):
        seen[path] = seen.get(path, 0) + 1
        label = path if seen[path] == 1 else f"{path} ({seen[path]})"
        for kind, *choices in changes(place, path, body, names):
            yield Mutant(document, label, kind, tuple(choices))


def changes(place: Place, path: str, body: Any, names: list[str]) -> Iterator[Any]:
    """The changes of one entry: a class, and the edits that do it."""
    item = place if isinstance(place[-1], int) else place[:-1]
    yield "drop entry", lambda tree: at(tree, item[:-1]).pop(item[-1])
    inside = place
    for field in DROPPED:
        if field in body:
            yield f"drop {field}", lambda tree, field=field: at(tree, inside).pop(field)
    for field in VALUES:
        if field in body and not (field == "bias" and body.get("op") != "attention"):
            yield from swaps(inside, field, body[field], names)
    for field in NUMBERS:
        if isinstance(given := body.get(field), str):
            yield f"{field} + 1", put(inside, field, f"({given}) + 1")
            yield f"{field} * 2", put(inside, field, f"2 * ({given})")
            if field in ("repeat", "start"):
                yield f"{field} - 1", put(inside, field, f"({given}) - 1")
    if body.get("op") in ("linear", "conv"):
        yield "bias", put(inside, "bias", "true" if body.get("bias", "true") == "false" else "false")
    elif "bias" in body and body.get("op") != "attention":
        yield "bias", put(inside, "bias", "false" if body["bias"] != "false" else "true")
    if body.get("op") == "attention":
        yield "mask", put(inside, "mask", "full" if body.get("mask", "full") != "full" else "causal")
    if "when" in body:
        yield "when", put(inside, "when", f"not ({body['when']})")
    if "op" in body and "to" in body:
        yield from results(inside, body["to"])


def results(inside: Place, given: Any) -> Iterator[Any]:
    """``to``: another name, or two results exchanged."""
    if isinstance(given, list):
        for position in range(len(given) - 1):
            new = list(given)
            new[position], new[position + 1] = new[position + 1], new[position]
            yield f"to exchanged at {position}", put(inside, "to", new)
    else:
        yield "to another name", put(inside, "to", "another_name")


def put(inside: Place, field: str, value: Any) -> Callable[[Any], None]:
    """An edit that sets a field."""
    new = value if isinstance(value, list) else text(value, False)

    def edit(tree: Any) -> None:
        at(tree, inside)[field] = new

    return edit


def swaps(inside: Place, field: str, given: Any, names: list[str]) -> Iterator[Any]:
    """A value in a field replaced by another one in scope: the first that fits in width and rows counts."""
    slots = [((field,), given)] if isinstance(given, str) else [((field, n), item) for n, item in enumerate(given) if isinstance(item, str)]
    for slot, old in slots:
        choices = []
        for name in names:
            if name != old:
                choices.append(lambda tree, slot=slot, name=name: at(tree, (*inside, *slot[:-1])).__setitem__(slot[-1], text(name)))
        yield f"swap {field}{'' if len(slot) == 1 else f' {slot[1]}'}", *choices
