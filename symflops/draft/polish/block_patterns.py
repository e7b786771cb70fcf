"""The blocks of a library as patterns: each a plain list of steps, once for every way in which its switches may stand."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from symflops.diagnostics.findings import Source
from symflops.draft.polish.polish import REFERENCES
from symflops.syntax.yaml_nodes import Mapping as MappingNode
from symflops.syntax.yaml_nodes import Scalar, read_yaml
from symflops.syntax.yaml_nodes import Sequence as SequenceNode

BOOLEANS = ("true", "false")
SWITCHES = 3  # more of them in one block would be too many ways
Value = tuple[str, int]  # a name, and how often it was bound before


@dataclass(frozen=True, slots=True)
class Step:
    """One entry: its path, expressions by field, the values that it reads by field, and those that it binds by field."""

    path: str
    texts: Mapping[str, str]
    reads: Mapping[str, tuple[Value, ...]]
    writes: Mapping[str, tuple[Value, ...]]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A block as steps: its name, parameters with their defaults, how its switches stand, inputs and outputs."""

    name: str
    parameters: Mapping[str, str | None]
    switches: Mapping[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[Value, ...]
    steps: tuple[Step, ...]


def plain(node: Any) -> Any:
    """A document as plain data."""
    if isinstance(node, MappingNode):
        return {key.text: plain(value) for key, value in node.entries}
    if isinstance(node, SequenceNode):
        return [plain(item) for item in node.items]
    return None if not isinstance(node, Scalar) or node.text in ("null", "~", "") else node.text


def text_of(value: Any) -> str:
    """A field as an expression."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(text_of, value))}]" if isinstance(value, (list, tuple)) else str(value)


def named(value: Any) -> tuple[str, ...]:
    """The values that a field names."""
    return (value,) if isinstance(value, str) else tuple(value)


def refers(word: str, value: Any, fields: Mapping[str, Any]) -> bool:
    """Whether a field names values: what is added to scores is one, the bias of a linear is not."""
    return word in REFERENCES and (word != "bias" or (fields.get("op") == "attention" and text_of(value) not in BOOLEANS))


def steps_of(entries: Sequence[Any], versions: dict[str, int]) -> list[Step] | None:
    """Entries as steps; ``versions`` counts how often each name is bound. None where an entry has entries of its own."""
    steps = []
    for path, fields in entries:
        if "graph" in fields:
            return None
        read = {word: named(value) for word, value in fields.items() if refers(word, value, fields)}
        reads = {word: tuple((name, versions.get(name, 0)) for name in names) for word, names in read.items()}
        bound = {word: named(fields[word]) for word in ("to", "add_to") if word in fields}
        for names in bound.values():
            versions.update({name: versions.get(name, 0) + 1 for name in names})
        writes = {word: tuple((name, versions[name]) for name in names) for word, names in bound.items()}
        texts = {word: text_of(value) for word, value in fields.items() if word not in read and word not in bound}
        steps.append(Step(path, texts, reads, writes))
    return steps


def patterns_in(root: Path) -> list[Pattern]:
    """The blocks below a library that are lists of operators and of calls, however their switches stand."""
    found: list[Pattern] = []
    for path in sorted((root / "blocks").glob("*.yaml")):
        data = plain(read_yaml(Source(path.name, path.read_text("utf-8"))))
        if not data.get("optional"):
            found += patterns_of(path.stem, data)
    return found


def patterns_of(name: str, data: Mapping[str, Any]) -> Iterator[Pattern]:
    """One block, once for every way in which its switches may stand."""
    parameters = data.get("params") or {}
    entries = entries_in(data)
    switches = [one for one in parameters if one in asked(entries)]
    if len(switches) > SWITCHES or any("{" in path for path, _ in entries):
        return
    for setting in product(BOOLEANS, repeat=len(switches)):
        values = dict(zip(switches, setting, strict=True))
        chosen = list(entries_under(entries, values))
        versions: dict[str, int] = {}
        steps = steps_of(chosen, versions)
        if steps is None or any("when" in step.texts for step in steps):
            continue
        outputs = tuple((one, versions.get(one, 0)) for one in data.get("outputs") or ())
        yield Pattern(name, parameters, values, tuple(data.get("inputs") or ()), *shortened(steps, outputs))


def asked(entries: Sequence[Any]) -> set[str]:
    """The names that are conditions, or their opposites, of entries and in expressions."""
    found: set[str] = set()
    for _, fields in entries:
        trees = [(word, parsed(text_of(value))) for word, value in fields.items() if word != "graph"]
        tests = [tree for word, tree in trees if word == "when"]
        tests += [node.test for _, tree in trees if tree for node in ast.walk(tree) if isinstance(node, ast.IfExp)]
        for test in tests:
            inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
            found |= {inner.id} if isinstance(inner, ast.Name) else set()
        found |= asked(entries_in(fields))
    return found


def entries_in(fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The entries of a group."""
    return [next(iter(entry.items())) for entry in fields.get("graph", ())]


def entries_under(entries: Sequence[Any], values: Mapping[str, str], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Entries without those that a setting leaves out, and without the conditions that it decides; groups are opened."""
    for key, fields in entries:
        path = ".".join(one for one in (prefix, key) if one not in ("", "_")) or "_"
        condition = decided(text_of(fields["when"]), values) if "when" in fields else "true"
        if condition == "false":
            continue
        kept = {word: value for word, value in fields.items() if word != "when" or condition != "true"}
        if set(kept) == {"graph"}:
            yield from entries_under(entries_in(kept), values, "" if path == "_" else path)
        else:
            yield path, {word: decided(value, values) if isinstance(value, str) else value for word, value in kept.items()}


def parsed(text: str) -> ast.expr | None:
    """An expression as a tree; None where it is none."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def decided(text: str, values: Mapping[str, str]) -> str:
    """An expression in which conditions are decided."""
    tree = parsed(text)
    return text if tree is None or not values else ast.unparse(Decide(values).visit(tree))


class Decide(ast.NodeTransformer):
    """Puts values for switches, and takes one side of what they decide."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A switch by its value."""
        return ast.Name(self.values[node.id]) if node.id in self.values else node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """The opposite of what is decided."""
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not) and isinstance(operand, ast.Name) and operand.id in BOOLEANS:
            return ast.Name(BOOLEANS[operand.id == "true"])
        return ast.UnaryOp(node.op, operand)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """One side where it is decided."""
        test = self.visit(node.test)
        if isinstance(test, ast.Name) and test.id in BOOLEANS:
            return self.visit(node.body if test.id == "true" else node.orelse)
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))


def shortened(steps: Sequence[Step], outputs: tuple[Value, ...]) -> tuple[tuple[Value, ...], tuple[Step, ...]]:
    """Outputs and steps without activations, which a draft does not show: who reads one reads what it is of."""
    same: dict[Value, Value] = {}
    widths: dict[Value, str] = {}
    kept = []
    for step in steps:
        reads = {word: tuple(same.get(one, one) for one in values) for word, values in step.reads.items()}
        (source, *others), targets = reads.get("from", (("", 0),)), step.writes.get("to", ())
        width = step.texts.get("width", widths.get(source, ""))
        widths |= dict.fromkeys(targets, width)
        alone = step.texts.get("op") == "mul" and set(reads) == {"from"} and not others and len(targets) == 1
        if alone and set(step.texts) <= {"op", "width"} and width == widths.get(source, width):
            same[targets[0]] = source
        else:
            kept.append(Step(step.path, step.texts, reads, step.writes))
    return tuple(same.get(one, one) for one in outputs), tuple(kept)
