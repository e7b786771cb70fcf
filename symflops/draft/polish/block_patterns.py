"""Turns library blocks into patterns: one flat list of steps per setting of a block's switches.

Expressions are compared as polynomials: ``6*H*d`` equals ``vectors*width`` if these are 6 and ``H*d``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from symflops.draft.polish.entries import BOOLEANS, REFERENCES
from symflops.formula.sparse import CONSTANT, Poly
from symflops.read.spec_files import read_source
from symflops.read.yaml_nodes import HERE, Mapping as MappingNode, Scalar, Sequence as SequenceNode, read_yaml


def multiple(one: Poly, other: Poly) -> int | None:
    """Positive integer ``n`` with ``one == n * other``; None if there is none."""
    (monomial, factor), *_ = other.terms.items() or [(CONSTANT, 1)]
    times, rest = divmod(one.terms.get(monomial, 0), factor)
    return int(times) if not rest and times > 0 and other.scale(times) == one else None


class Substitution(ast.NodeTransformer):
    """Replaces names by expressions."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a name that has a value."""
        return ast.parse(self.values[node.id], mode="eval").body if node.id in self.values else node


def parsed(text: str) -> ast.expr | None:
    """Syntax tree of an expression; None if the text does not parse."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def substitute(text: str, values: Mapping[str, str]) -> str:
    """Expression with names replaced by other expressions; text that does not parse is returned unchanged."""
    tree = parsed(text)
    return text if tree is None else ast.unparse(Substitution(values).visit(tree))


def sum_of(text: str, values: Mapping[str, str] | None = None) -> Poly:
    """Expression as a polynomial, names replaced by ``values``; text that does not parse is a variable.

    >>> sum_of("vectors*width", {"vectors": "6", "width": "H*d"}) == sum_of("6*d*H")
    True
    """
    tree = parsed(text)
    return Poly.atom(text) if tree is None else reduced(Substitution(values or {}).visit(tree))


def reduced(node: ast.expr) -> Poly:
    """Polynomial of a syntax tree; operations other than +, - and * become variables."""
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return Poly.constant(number)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return reduced(left) + reduced(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return reduced(left) - reduced(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return reduced(left) * reduced(right)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if 0 < power < 9:
            return reduced(left) ** power
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return reduced(operand).scale(-1)
    return Poly.atom(ast.unparse(node))


MOST_SETTINGS = 8  # patterns per block
Value = tuple[str, int]  # a name, and its version: how often it was bound before


@dataclass(frozen=True, slots=True)
class Step:
    """A graph entry split into its path, expressions, operands and results.

    Attributes:
        path: The path of the entry.
        texts: Field -> expression, for fields that name no values.
        reads: Field -> operands, each a name and how often the name was bound before.
        writes: ``to`` or ``add_to`` -> results, in the same form.
    """

    path: str
    texts: Mapping[str, str]
    reads: Mapping[str, tuple[Value, ...]]
    writes: Mapping[str, tuple[Value, ...]]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A library block with one setting of its switches, to be found among the entries of drafts.

    Attributes:
        name: The name of the block.
        parameters: Parameter -> default; None if it has no default.
        switches: Parameter that decides about entries -> ``true``, ``false``, or a word in quotes.
        inputs: The names of the values that the block reads.
        outputs: The values that the block returns.
        steps: The entries of the block.
    """

    name: str
    parameters: Mapping[str, str | None]
    switches: Mapping[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[Value, ...]
    steps: tuple[Step, ...]


def plain_data(node: Any) -> Any:
    """YAML node as dicts, lists and strings; null becomes None."""
    if isinstance(node, MappingNode):
        return {key.text: plain_data(value) for key, value in node.entries}
    if isinstance(node, SequenceNode):
        return [plain_data(item) for item in node.items]
    return None if not isinstance(node, Scalar) or node.text in ("null", "~", "") else node.text


def text_of(value: Any) -> str:
    """Field value as expression text, such as ``[a, b]`` or ``true``."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(text_of, value))}]" if isinstance(value, (list, tuple)) else str(value)


def names_of_field(value: Any) -> tuple[str, ...]:
    """Names in a field that holds one name or a list of names."""
    return (value,) if isinstance(value, str) else tuple(value)


def names_operands(word: str, value: Any, fields: Mapping[str, Any]) -> bool:
    """Whether field ``word`` of an entry names operands; ``bias`` does for attention, not for a linear."""
    return word in REFERENCES and (word != "bias" or (fields.get("op") == "attention" and text_of(value) not in BOOLEANS))


def steps_of(entries: Sequence[Any], versions: dict[str, int]) -> list[Step] | None:
    """Entries as steps; None if an entry has a body.

    ``versions`` maps names to how often they were bound, and is updated.
    """
    if any("graph" in fields for _, fields in entries):
        return None
    return [step_of(path, fields, versions) for path, fields in entries]


def step_of(path: str, fields: Mapping[str, Any], versions: dict[str, int]) -> Step:
    """Entry as a step.

    ``versions`` maps names to how often they were bound, and is increased for those that the entry binds.
    """
    read = {word: names_of_field(value) for word, value in fields.items() if names_operands(word, value, fields)}
    bound = {word: names_of_field(fields[word]) for word in ("to", "add_to") if word in fields}
    texts = {word: text_of(value) for word, value in fields.items() if word not in read and word not in bound}
    reads = versioned(read, versions)
    for names in bound.values():
        versions.update({name: versions.get(name, 0) + 1 for name in names})
    return Step(path, texts, reads, versioned(bound, versions))


def versioned(fields: Mapping[str, tuple[str, ...]], versions: Mapping[str, int]) -> dict[str, tuple[Value, ...]]:
    """Field -> its names as pairs (name, version).

    The version is the number of times that the name was bound so far, from ``versions``; ``fields`` maps fields to names.
    """
    return {word: tuple((name, versions.get(name, 0)) for name in names) for word, names in fields.items()}


def patterns_in(root: Path) -> list[Pattern]:
    """Patterns of all library blocks, except those with optional inputs, a repeat or many switches."""
    found: list[Pattern] = []
    for path in sorted((root / "blocks").glob("*.yaml")):
        data = plain_data(read_yaml(read_source(path, path.name)))
        if not data.get("optional"):
            found += patterns_of(path.stem, data)
    return found


def patterns_of(name: str, data: Mapping[str, Any]) -> Iterator[Pattern]:
    """Patterns of one block, one per distinct setting of its switches."""
    parameters = {one: None if value is None else text_of(value) for one, value in (data.get("params") or {}).items()}
    entries = [without_function(*entry) for entry in entries_in(data)]
    found = conditions(entries)
    switches = {one: settings_of(default, found[one]) for one, default in parameters.items() if one in found}
    if prod(map(len, switches.values())) > MOST_SETTINGS or any("{" in path for path, _ in entries):
        return
    seen = []
    for setting in product(*switches.values()):
        values = dict(zip(switches, setting, strict=True))
        chosen = list(entries_under(entries, values))
        versions: dict[str, int] = {}
        steps = steps_of(chosen, versions)
        if steps is None or any("when" in step.texts for step in steps):
            continue
        if chosen in seen:  # another switch makes this one irrelevant
            continue
        seen.append(chosen)
        outputs = tuple((one, versions.get(one, 0)) for one in data.get("outputs") or ())
        yield Pattern(name, parameters, values, tuple(data.get("inputs") or ()), *shortened(steps, outputs))


def without_function(path: str, fields: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Path and fields of an entry as drafts write it: an activation is ``mul``.

    Its path is left out if a parameter of the block decides it.
    """
    if fields.get("op") != "act":
        return path, fields
    kept = {word: value for word, value in fields.items() if word != "of"}
    return "_" if "{" in path else path, {**kept, "op": "mul"}


def settings_of(default: str | None, tested: set[str]) -> list[str]:
    """Settings of a switch, default first: ``true`` and ``false``, or the words it is compared with.

    ``tested`` has the texts of the values for which conditions test it; words are in quotes.
    """
    words = {default} if default and default.startswith("'") else set()
    return sorted((tested - {*BOOLEANS} if words else tested) | words, key=lambda one: (one != default, one == "false", one))


def conditions(entries: Sequence[Any]) -> dict[str, set[str]]:
    """Name in a ``when`` field or conditional expression -> texts of the values for which it is tested.

    These are ``true`` and ``false``, or words in quotes. ``entries`` are searched with their bodies.
    """
    found: dict[str, set[str]] = {}
    for _, fields in entries:
        trees = [(word, parsed(text_of(value))) for word, value in fields.items() if word != "graph"]
        tests = [tree for word, tree in trees if word == "when"]
        tests += [node.test for _, tree in trees if tree for node in ast.walk(tree) if isinstance(node, ast.IfExp)]
        inner = [tested(test) for test in tests if test]
        for name, settings in [item for one in (*inner, conditions(entries_in(fields))) for item in one.items()]:
            found.setdefault(name, set()).update(settings)
    return found


def tested(test: ast.expr) -> dict[str, set[str]]:
    """Name in a condition -> the texts of the values for which the condition tests it.

    These are ``true`` and ``false`` for a name that is a condition itself, and for a name that is compared with words,
    these words in quotes. Empty for a condition of another form.
    """
    match test:
        case ast.Name(id=name):
            return {name: set(BOOLEANS)}
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return tested(operand)
        case ast.BoolOp(values=parts):
            found = [item for part in parts for item in tested(part).items()]
            return {name: set().union(*(settings for other, settings in found if other == name)) for name, _ in found}
        case ast.Compare(left=ast.Name(id=name), comparators=[right]) if words := words_in(right):
            return {name: {repr(word) for word in words}}
    return {}


def words_in(node: ast.expr) -> list[str]:
    """String constants of a literal or a list of literals; empty for any other expression."""
    items = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    words = [one.value for one in items if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return words if len(words) == len(items) else []


def entries_in(fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Entries of the list ``graph`` of a block or group, as pairs (path, fields); empty if there is no ``graph``."""
    parts = ((entry, *next(iter(entry.items()))) for entry in fields.get("graph", ()))
    return [(path, inner) if len(entry) == 1 and isinstance(inner, dict) else (HERE, entry) for entry, path, inner in parts]


def entries_under(entries: Sequence[Any], values: Mapping[str, str], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Entries that remain under a setting of the switches, with groups inlined.

    Args:
        entries: The entries of the block.
        values: Switch -> its setting; conditions that it decides are removed.
        prefix: The path of the group that has the entries.
    """
    for key, fields in entries:
        path = ".".join(one for one in (prefix, key) if one not in ("", "_")) or "_"
        condition = resolved(text_of(fields["when"]), values) if "when" in fields else "true"
        if condition == "false":
            continue
        kept = {word: value for word, value in fields.items() if word != "when" or condition != "true"}
        if set(kept) == {"graph"}:
            yield from entries_under(entries_in(kept), values, "" if path == "_" else path)
        else:
            yield path, {word: with_settings(word, value, values) for word, value in kept.items()}


def with_settings(word: str, value: Any, values: Mapping[str, str]) -> Any:
    """Value of field ``word`` as text in which switches are replaced by their settings.

    ``values`` maps switches to these. A list of names of values is returned unchanged.
    """
    if isinstance(value, list) and word not in (*REFERENCES, "to"):
        value = text_of(value)
    return resolved(value, values) if isinstance(value, str) else value


def resolved(text: str, values: Mapping[str, str]) -> str:
    """Expression with switches replaced by their values and the conditions on them evaluated."""
    tree = parsed(text)
    return text if tree is None or not values else ast.unparse(Resolve(values).visit(tree))


class Resolve(Substitution):
    """Replaces switches of a block in an expression by their settings, and evaluates what these decide."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Replace ``not`` of a constant by its value."""
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not) and isinstance(operand, ast.Name) and operand.id in BOOLEANS:
            return ast.Name(BOOLEANS[operand.id == "true"])
        return ast.UnaryOp(node.op, operand)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Evaluate ``and`` and ``or``: an operand that decides is the result, neutral operands are dropped."""
        decides = BOOLEANS[isinstance(node.op, ast.And)]
        parts = [self.visit(part) for part in node.values]
        left = [part for part in parts if not (isinstance(part, ast.Name) and part.id in BOOLEANS)]
        if any(isinstance(part, ast.Name) and part.id == decides for part in parts):
            return ast.Name(decides)
        if not left:
            return ast.Name(BOOLEANS[decides == "true"])
        return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Replace a comparison of a string with a string or a list of strings by its value."""
        left, *right = [self.visit(part) for part in (node.left, *node.comparators)]
        mine, theirs = words_in(left), words_in(right[0])
        if len(right) > 1 or not isinstance(left, ast.Constant) or not mine or not theirs:
            return ast.Compare(left, node.ops, right)
        match node.ops[0]:
            case ast.Eq() | ast.In():
                return ast.Name(BOOLEANS[mine[0] not in theirs])
            case ast.NotEq() | ast.NotIn():
                return ast.Name(BOOLEANS[mine[0] in theirs])
        return ast.Compare(left, node.ops, right)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Replace a conditional expression whose test is constant by the branch taken."""
        test = self.visit(node.test)
        if isinstance(test, ast.Name) and test.id in BOOLEANS:
            return self.visit(node.body if test.id == "true" else node.orelse)
        return ast.IfExp(test, self.visit(node.body), self.visit(node.orelse))


def shortened(steps: Sequence[Step], outputs: tuple[Value, ...]) -> tuple[tuple[Value, ...], tuple[Step, ...]]:
    """(Outputs, steps) of a block without its activations; what read an activation reads its operand.

    An activation is a ``mul`` of one operand into one result with the same width and no further fields.
    """
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
