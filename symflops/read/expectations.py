"""Reads ``expect``: the figures that a paper states of a model, with the digits that it gives.

Figures beside each other are those of the defaults. Under a name stand those of a variant, or of a published size that differs
from the defaults in its ``config``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from symflops.formula.identifiers import VARIANT
from symflops.ir.spec import Expectation, Name, SizeSpec, VariantSpec
from symflops.ops.kind import Form, words_of
from symflops.read.field_tables import EXPECT
from symflops.read.shapes import Shapes
from symflops.read.variants import DEFAULT, read_size
from symflops.read.yaml_nodes import Mapping as MappingNode, Node, Scalar, python_value

FIGURES = tuple(field.name for field in EXPECT if field.form is Form.NUMBER)
NUMBER = re.compile(r"\d{1,20}(\.\d{1,20})?([eE]\+?\d{1,2})?")
UNIT = re.compile(r"([\d.]+)\s*(?:([kKMBGTP])\w*|(thousand|million|billion|trillion)\b.*)")
POWERS = {"k": 3, "K": 3, "M": 6, "B": 9, "G": 9, "T": 12, "P": 15, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}


def read_expectations(
    node: Node | None, sizes: Sequence[SizeSpec], variants: Sequence[VariantSpec], shapes: Shapes
) -> tuple[Expectation, ...]:
    """Read ``expect`` of a spec with ``sizes`` and ``variants``; mistakes are reported."""
    entries = shapes.mapping(node, "'expect'")
    named = [(key, value) for key, value in entries if key.text not in words_of(EXPECT) and isinstance(value, MappingNode)]
    own = MappingNode(tuple(entry for entry in entries if entry not in named), node.span) if node else None
    found = [_Reader(sizes, variants, shapes).of_size(Name(key.text, key.span), value) for key, value in named]
    if own and own.entries:
        found.insert(0, _Reader(sizes, variants, shapes).of_size(Name(DEFAULT, own.span), own))
    return tuple(found)


class _Reader:
    def __init__(self, sizes: Sequence[SizeSpec], variants: Sequence[VariantSpec], shapes: Shapes) -> None:
        self.sizes, self.shapes = sizes, shapes
        self.variants = {variant.name.text: variant for variant in variants}

    def of_size(self, name: Name, node: MappingNode) -> Expectation:
        """Read the figures of the published size ``name``, or of the defaults."""
        given = self.shapes.known(node, words_of(EXPECT), "'expect'")
        figures = tuple((Name(word, given[word].span), self.figure(given[word])) for word in FIGURES if word in given)
        if not figures and len(given) == len(node.entries):
            self.shapes.report.error("missing-field", f"'{name}' states no figure", name.span, f"such as {FIGURES[0]}: 8.03e9")
        rules = (self.shapes.text(given.get(word), f"'{word}'") for word in ("regime", "convention"))
        regime, convention = (text or default for text, default in zip(rules, ("full", "symflops"), strict=True))
        return Expectation(self.model(name, given), figures, (regime, convention), self.batch(given.get("batch")))

    def model(self, name: Name, given: Mapping[str, Node]) -> VariantSpec:
        """Read the sizes of the published size ``name``: of ``config``, of the variant of that name, or the defaults."""
        if "config" not in given and name.text in self.variants:
            return self.variants[name.text]
        if not VARIANT.match(name.text):
            hint = "lower case letters, digits and underscores"
            self.shapes.report.error("bad-name", f"'{name}' cannot name a published size", name.span, hint)
        elif "config" not in given and name.text != DEFAULT:
            hint = "the config fields that differ from the defaults"
            self.shapes.report.error("missing-field", f"'{name}' is no variant, and needs 'config'", name.span, hint)
        pairs = self.shapes.mapping(given.get("config"), "'config'")
        sizes = (read_size(key, value, self.sizes, self.shapes) for key, value in pairs)
        return VariantSpec(name, tuple(size for size in sizes if size is not None))

    def figure(self, node: Node) -> str:
        """Read a stated figure as its text; another text is reported, and read as 1."""
        text = node.text if isinstance(node, Scalar) else ""
        if NUMBER.fullmatch(text):
            return text
        unit = UNIT.fullmatch(text)
        hint = f"write {unit[1]}e{POWERS[unit[2] or unit[3]]}" if unit else "such as 8.03e9, whose digits are compared"
        self.shapes.report.error("bad-number", f"'{text}' is no figure" if text else "this is no figure", node.span, hint)
        return "1"

    def batch(self, node: Node | None) -> dict[str, Any] | None:
        """Read a batch, stream -> items; None if absent."""
        if node is None:
            return None
        return {key.text: python_value(value, self.shapes.report) for key, value in self.shapes.mapping(node, "'batch'")}
