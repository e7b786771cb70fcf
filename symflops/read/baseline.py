"""Reads ``baseline``: the spec that a spec is compared with, and formulas for its matching config and batch."""

from __future__ import annotations

from symflops.formula.expression import Expression
from symflops.formula.identifiers import CONFIG_KEY
from symflops.ir.spec import BaselineSpec, Name
from symflops.ops.fields import words_of
from symflops.read.field_tables import BASELINE
from symflops.read.shapes import Shapes
from symflops.read.yaml_nodes import Node, Scalar

Formulas = tuple[tuple[Name, Expression], ...]


def read_baseline(node: Node | None, shapes: Shapes) -> BaselineSpec | None:
    """Read the baseline of a spec, a name or a mapping; None if absent, or faulty, which is reported."""
    if node is None:
        return None
    if isinstance(node, Scalar):
        name = shapes.name(node, "a spec")
        return BaselineSpec(name) if name else None
    given = shapes.known(node, words_of(BASELINE), "a baseline")
    if "spec" not in given:
        shapes.report.error("missing-field", "a baseline needs 'spec'", node.span, "the spec that this one is compared with")
        return None
    name = shapes.name(given["spec"], "a spec")
    batch, lengths = (named(given.get(word), word, shapes) for word in ("batch", "lengths"))
    found = fields(given.get("config"), shapes)
    return BaselineSpec(name, found, batch, lengths) if name else None


def named(node: Node | None, word: str, shapes: Shapes) -> Formulas:
    """Read a mapping from streams or lengths to formulas, as (name, formula) pairs."""
    pairs = shapes.mapping(node, f"'{word}'")
    return shapes.named(((key, value, f"'{key.text}'") for key, value in pairs), "a length")


def fields(node: Node | None, shapes: Shapes) -> Formulas:
    """Read (config field, formula) pairs; faulty ones are reported and dropped."""
    found = []
    for key, value in shapes.mapping(node, "'config'"):
        if not CONFIG_KEY.match(key.text):
            hint = "words of a config joined by points"
            shapes.report.error("bad-key", f"'{key.text}' is not a place in a config", key.span, hint)
            continue
        formula = shapes.expression(value, f"'{key.text}'")
        if formula:
            found.append((Name(key.text, key.span), formula))
    return tuple(found)
