"""read: text of a spec and of the blocks that it calls -> :class:`~symflops.ir.spec.Spec`.

This stage checks only the form: which fields exist, and which text is an expression, a name or a path. One run reports all
errors of form in a file.

Under ``expect`` stand the figures that a paper states of a model, with the digits that it gives: those of the defaults, and
under a name those of a variant, or of a published size that differs from the defaults in its ``config``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from symflops.formula.expression import Expression
from symflops.formula.identifiers import CONFIG_KEY, MODULE, VARIANT, why_not_latex
from symflops.ir.batch import Layout
from symflops.ir.spec import BaselineSpec, Expectation, InputSpec, Name, SizeSpec, Spec, StreamSpec, VariantSpec
from symflops.ops.kind import Form, words_of
from symflops.read.definition_order import check_defaults
from symflops.read.entries import BlockText, Entries
from symflops.read.extends import extended, no_bases
from symflops.read.field_tables import BASELINE, DOCUMENT, EXPECT, INPUT, ITEMS, SIZE, STREAM, TYPES
from symflops.read.shapes import Scope, Shapes, axes_of, dimensions, variables_of
from symflops.read.variants import DEFAULT, read_classes, read_size, read_variants, view
from symflops.read.yaml_nodes import (
    Mapping as MappingNode,
    Node,
    Scalar,
    Sequence as SequenceNode,
    other_language,
    python_value,
    read_yaml,
)
from symflops.support.findings import Reporter, Source, SpecError, SymflopsError, did_you_mean
from symflops.support.reading import parse_json

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


HARMLESS = ("unknown-field", "duplicate-key", "bad-text", "bad-latex")  # findings after which a header can still be built


def read(source: Source, library: BlockText, bases: BlockText = no_bases) -> Spec:
    """Read the spec in ``source``.

    Args:
        source: The text of the spec.
        library: Finds the text of a block by its name; None for an unknown one.
        bases: Finds the text of a spec that this one extends.

    Raises:
        SpecError: with every finding about the form of the spec and its blocks.
    """
    reading = read_through(source, library, bases)
    reading.report.check()
    return reading.spec


class Reading(NamedTuple):
    """The result of :func:`read_through`.

    Attributes:
        spec: The spec, without what could not be read.
        report: The findings.
        buildable: Whether what stands outside the graph is valid enough to build the graph.
    """

    spec: Spec
    report: Reporter
    buildable: bool


def read_through(source: Source, library: BlockText, bases: BlockText = no_bases) -> Reading:
    """Read as much of the spec as possible; arguments as of :func:`read`.

    A faulty entry still defines its names, so that one error does not cause others.

    Raises:
        SpecError: ``source`` is not YAML, or of another version of the language.
    """
    report = Reporter()
    written = read_yaml(source, report)
    other = other_language(written, source)
    if other is not None:
        raise SpecError([other])
    node, extends = extended(written, bases, report)
    document = _Document(report, library)
    spec = document.spec(node, source, bool(extends))
    return Reading(replace(spec, sources=(source, *extends, *spec.sources[1:])), report, document.buildable)


class _Document:
    def __init__(self, report: Reporter, library: BlockText) -> None:
        self.report = report
        self.shapes = Shapes(report)
        self.entries = Entries(report, library)
        self.buildable = False

    def spec(self, node: Node, source: Source, inherits: bool) -> Spec:
        given = self.shapes.known(node, words_of(DOCUMENT), "a spec")
        for field in DOCUMENT:
            if field.required and field.name not in given:
                self.report.error("missing-field", f"a spec needs '{field.name}'", node.span, field.doc)
        name = self.name(given.get("name"))
        self.entries.local |= {block.text: body for block, body in self.shapes.mapping(given.get("blocks"), "'blocks'")}
        before = len(self.report.diagnostics)
        graph = self.entries.graph(given.get("graph"), source)
        inside = len(self.report.diagnostics) - before
        every = self.sizes(given.get("sizes"), inherits or isinstance(given.get("reference"), MappingNode))
        sizes, decided = (tuple(size for size in every if bool(size.keys) is keyed) for keyed in (True, False))
        classes = read_classes(given.get("reference"), decided, self.shapes)
        derived, streams = self.derived(given.get("derived")), self.streams(given.get("streams"))
        letters = frozenset(name.text for name in (*(size.name for size in every), *(letter for letter, _ in derived)))
        spec = Spec(
            name=name,
            title=self.shapes.prose(given.get("title"), "'title'"),
            references=tuple(row.name for row in classes),
            model_types=self.words(given.get("model_type"), "'model_type'"),
            pipelines=self.words(given.get("pipelines"), "'pipelines'"),
            sizes=sizes,
            derived=derived,
            streams=streams,
            inputs=self.inputs(given.get("inputs"), streams, letters),
            graph=graph,
            outputs=self.shapes.value_names(given.get("outputs"), "'outputs'"),
            sources=(source, *sorted(self.entries.sources, key=lambda block: block.path)),
            variants=(variants := read_variants(given.get("variants"), sizes, self.shapes)),
            expect=read_expectations(given.get("expect"), sizes, variants, self.shapes),
            classes=classes,
            decided=decided,
            baseline=read_baseline(given.get("baseline"), self.shapes),
            requires=self.conditions(given.get("requires"), "'requires'"),
            expected=self.conditions(given.get("expected"), "'expected'"),
        )
        outside = (*self.report.diagnostics[:before], *self.report.diagnostics[before + inside :])
        self.buildable = all(finding.code in HARMLESS for finding in outside)
        return view(spec, "") if self.buildable else spec

    def name(self, node: Node | None) -> str:
        name = self.shapes.text(node, "'name'")
        if node is not None and not MODULE.match(name):
            hint = "lower case letters, digits and underscores, for it becomes a file name"
            self.report.error("bad-name", f"'{name}' cannot name a spec", node.span, hint)
        return name

    def words(self, node: Node | None, what: str) -> tuple[str, ...]:
        return tuple(self.shapes.text(item, what) for item in self.shapes.sequence(node, what))

    def sizes(self, node: Node | None, by_class: bool) -> tuple[SizeSpec, ...]:
        """Read the sizes; a size may lack a ``key`` only if classes decide it (``by_class``)."""
        found = (self.size(key, value, by_class) for key, value in self.shapes.mapping(node, "'sizes'"))
        sizes = tuple(size for size in found if size is not None)
        for keyed in (True, False):
            check_defaults([size for size in sizes if bool(size.keys) is keyed], self.report)
        return sizes

    def size(self, key: Scalar, value: Node, by_class: bool) -> SizeSpec | None:
        name = self.shapes.name(key, "a size")
        keys: tuple[Node, ...] = (value,)
        given: dict[str, Node] = {}
        if not isinstance(value, Scalar):
            given = dict(self.shapes.known(value, words_of(SIZE), "a size"))
            keys = self.shapes.sequence(given.get("key"), "'key'")
        texts = []
        for item in keys:
            text = self.shapes.text(item, "'key'")
            if not CONFIG_KEY.match(text):
                hint = "words of a config joined by points"
                self.report.error("bad-key", f"'{text}' is not a place in a config", item.span, hint)
            texts.append(text)
        if not texts and not (by_class and "key" not in given and ("default" in given or "optional" in given)):
            self.report.error("missing-field", f"size '{key.text}' needs 'key'", value.span, "the config field that holds it")
        default, null = (self.shapes.expression(given.get(word), f"'{word}'") for word in ("default", "if_null"))
        latex = self.latex(given.get("latex"))
        doc = self.shapes.prose(given.get("doc"), "'doc'")
        optional = self.shapes.flag(given.get("optional"))
        kind = self.kind(given.get("type"), given.get("default"))
        part = self.shapes.text(given.get("part"), "'part'")
        evaluation = self.shapes.flag(given["evaluation"]) if "evaluation" in given else None
        if evaluation is not None and kind != "flag":
            self.report.error("bad-field", f"'{key.text}' is no flag, which 'evaluation' would set", given["evaluation"].span)
        if null is not None and (optional or default is None):
            reason = "its default says what it is where the config lacks it" if default is None else "it is 'optional'"
            self.report.error("bad-field", f"'{key.text}' cannot have 'if_null'", given["if_null"].span, reason)
        items = self.items(given.get("type"), given.get("default")) if kind == "list" else ""
        return (
            SizeSpec(name, tuple(texts), kind, default, optional, doc, latex, evaluation, null, items, part) if name else None
        )

    def latex(self, node: Node | None) -> str:
        text = self.shapes.text(node, "'latex'")
        reason = why_not_latex(text) if node is not None else None
        if reason and node is not None:
            self.report.error("bad-latex", f"'{text}' cannot stand in a formula", node.span, reason)
            return ""
        return text

    def kind(self, node: Node | None, default: Node | None) -> str:
        """The type of a size: the word ``node``, or if absent, the type of its default."""
        if node is not None:
            word = self.shapes.text(node, "'type'")
            if word not in TYPES:
                self.report.error(
                    "unknown-word", f"there is no type '{word}'", node.span, did_you_mean(word, TYPES, ", ".join(TYPES))
                )
            return TYPES.get(word, "number")
        text = default.text if isinstance(default, Scalar) else ""
        if text in ("true", "false"):
            return "flag"
        if text[:1] in ("'", '"'):
            return "text"
        if text.startswith("[") or (default is not None and not isinstance(default, (Scalar, MappingNode))):
            return "list"
        if text[:1] == "-" and text[1:].isdigit():
            return "position"
        return "rational" if text.count(".") == 1 and text.replace(".", "").isdigit() else "number"

    def items(self, node: Node | None, default: Node | None) -> str:
        """The type of a list's items: the word ``node``, or if absent, the type of the default's items.

        Empty if items can have any type.
        """
        if isinstance(node, Scalar) and node.text in ITEMS:
            return ITEMS[node.text]
        text = default.text.strip() if isinstance(default, Scalar) else ""
        if isinstance(default, SequenceNode):
            text = self.shapes.listed(default, "'default'")[0]
        try:
            kinds = {type(item) for item in parse_json(text.replace("'", '"'), "the default")}
        except (SymflopsError, TypeError):
            return ""
        return {int: "number", str: "text", bool: "flag"}.get(kinds.pop(), "") if len(kinds) == 1 else ""

    def derived(self, node: Node | None) -> tuple[tuple[Name, Expression], ...]:
        pairs = self.shapes.mapping(node, "'derived'")
        return self.shapes.named(((key, value, f"'{key.text}'") for key, value in pairs), "a derived size")

    def conditions(self, node: Node | None, field: str) -> tuple[tuple[Name, Expression], ...]:
        pairs = self.shapes.mapping(node, field)
        found = ((Name(key.text, key.span), self.shapes.expression(value, f"'{key.text}'")) for key, value in pairs)
        return tuple((name, expression) for name, expression in found if expression is not None)

    def streams(self, node: Node | None) -> tuple[StreamSpec, ...]:
        found = []
        for key, value in self.shapes.mapping(node, "'streams'"):
            name = self.shapes.name(key, "a stream")
            over, axes, default = "samples", value, None
            if isinstance(value, MappingNode) and value.get("over") is not None:
                given = self.shapes.known(value, words_of(STREAM), "a stream")
                over = self.shapes.text(given["over"], "'over'")
                axes = given.get("axes") or MappingNode((), value.span)
                default = self.shapes.count(given["default"], "'default'") if "default" in given else None
            if name:
                found.append(StreamSpec(name, over, self.shapes.parts(axes), default))
        return tuple(found)

    def inputs(self, node: Node | None, streams: tuple[StreamSpec, ...], letters: frozenset[str]) -> tuple[InputSpec, ...]:
        found = []
        variables, by_name = variables_of(streams, letters), {stream.name.text: stream for stream in streams}
        for key, value in self.shapes.mapping(node, "'inputs'"):
            name = self.shapes.name(key, "an input")
            given = self.shapes.known(value, words_of(INPUT), "an input")
            stream = self.shapes.name(given["stream"], "a stream") if "stream" in given else None
            width = self.shapes.expression(given.get("width"), "'width'")
            when = self.shapes.expression(given.get("when"), "'when'")
            if name:
                over = self.shapes.text(given.get("over"), "'over'")
                needed = self.shapes.flag(given.get("needed"))
                scope = Scope(variables, letters, axes_of(by_name.get(stream.text) if stream else None))
                found.append(InputSpec(name, stream, width, when, self.layout(given, scope), over, needed))
        return tuple(found)

    def layout(self, given: Mapping[str, Node], scope: Scope) -> Layout | None:
        node = given.get("layout") or given.get("values") or given.get("counts")
        if node is None:
            return None
        words = self.shapes.text(given.get("layout"), "'layout'").split()
        axes = dimensions(words, scope, node.span, self.report)
        values = [self.shapes.text(item, "'values'") for item in self.shapes.sequence(given.get("values"), "'values'")]
        return Layout(axes, tuple(values), self.shapes.text(given.get("counts"), "'counts'"), node.span)
