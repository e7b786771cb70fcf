"""Reads conventions from their YAML pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from symflops.ir.convention import ROLES, Backward, Convention, Exceptional, Rule
from symflops.ops.kind import words_of
from symflops.read.field_tables import BACKWARD, CONVENTION, EXCEPTION, LENGTHS, MASKS, RULE
from symflops.read.reproduced import FIELD, reproduced
from symflops.read.shapes import Shapes
from symflops.read.yaml_nodes import Mapping as MappingNode, Node, Scalar, read_yaml
from symflops.support.files import digest
from symflops.support.findings import Reporter, Source, Span, did_you_mean
from symflops.support.reading import what_counts

NUMBER = re.compile(r"(?=\.?[0-9])[0-9]*\.?[0-9]*(/0*[1-9][0-9]*)?")
MOST_DIGITS = 24
WORDS = {field.name: field.words for field in (*CONVENTION, *RULE) if field.words}


def read_convention(source: Source) -> Convention:
    """Parse a convention from its YAML page.

    Raises:
        SpecError: an unknown field, word or role, or rules that contradict each other.
    """
    report = Reporter()
    reader = _Reader(Shapes(report), report)
    given = reader.shapes.known(read_yaml(source), words_of(CONVENTION), "a convention")
    if "name" not in given:
        report.error("missing-field", "a convention needs a 'name'", Span(source, 1, 1, 2), "name: mine")
    found = reader.convention(given)
    exceptions = tuple(
        reader.exception(node, given) for node in reader.shapes.sequence(given.get("exceptions"), "'exceptions'")
    )
    version = reproduced(given.get(FIELD), report)
    if FIELD in [*given][:-1]:
        hint = "stored programs know a page by what precedes it"
        report.error("bad-shape", f"'{FIELD}' is not the last field of the page", given[FIELD].span, hint)
    report.check()
    return replace(found, exceptions=exceptions, reproduces=version, digest=digest(what_counts(source.text.encode())))


class _Reader:
    def __init__(self, shapes: Shapes, report: Reporter) -> None:
        self.shapes = shapes
        self.report = report

    def convention(self, given: Mapping[str, Node]) -> Convention:
        text = self.shapes.text
        pairs, masks = self.by_class(given.get("pairs"), "pairs", words_of(MASKS), "useful")
        length, lengths = self.by_class(given.get("length"), "length", words_of(LENGTHS), "real")
        if pairs not in ("useful", "all"):
            masks = [(mask, pairs) for mask in words_of(MASKS)]
            pairs = "useful"
        counts = self.word(given, "counts", "work")
        links = (self.shapes.text(item, "'links'") for item in self.shapes.sequence(given.get("links"), "'links'"))
        return Convention(
            text(given.get("name"), "'name'"), pairs, self.word(given, "unseen", "true") == "true", length,
            self.shapes.prose(given.get("doc"), "'doc'"), self.word(given, "unit", "flops"), counts,
            self.experts(given, counts), self.word(given, "tied", "each"), self.backward(given.get("backward")),
            int(self.attention_backward(given)), self.word(given, "attention_width", "own"),
            self.word(given, "counter_errors", "corrected"),
            tuple(masks), tuple(lengths), tuple(self.roles(given.get("roles"), counts)), tuple(links),
            compared=self.word(given, "compared", "false") == "true",
            stored=self.word(given, "stored", "false") == "true",
        )  # fmt: skip

    def exception(self, node: Node, given: Mapping[str, Node]) -> Exceptional:
        """Read an exception for some classes; fields that it lacks have the page's values, ``given``."""
        own = dict(self.shapes.known(node, words_of(EXCEPTION), "an exception"))
        patterns = self.shapes.sequence(own.pop("classes", None), "'classes'")
        classes = tuple(self.shapes.text(item, "'classes'") for item in patterns)
        because = self.shapes.prose(own.pop("because", None), "'because'")
        if not classes or not because:
            self.report.error("missing-field", "an exception needs 'classes' and 'because'", node.span)
        roles, more = given.get("roles"), own.get("roles")
        if isinstance(roles, MappingNode) and isinstance(more, MappingNode):
            kept = [entry for entry in roles.entries if more.get(entry[0].text) is None]
            own["roles"] = MappingNode((*kept, *more.entries), more.span)
        return Exceptional(classes, because, self.convention({**given, **own}))

    def word(self, given: Mapping[str, Node], key: str, otherwise: str) -> str:
        return self.one_of(given[key], key, f"'{key}'") if key in given else otherwise

    def one_of(self, node: Node, key: str, what: str) -> str:
        return self.shapes.one_of(node, WORDS[key], what)

    def by_class(
        self, node: Node | None, key: str, classes: tuple[str, ...], otherwise: str
    ) -> tuple[str, list[tuple[str, str]]]:
        """Read a field that has one word (one of the allowed texts), or a mapping from ``classes`` to words.

        Returns (word for all other classes, list of (class, word)). ``otherwise`` is the word for classes without one.
        """
        if not isinstance(node, MappingNode):
            return (self.one_of(node, key, f"'{key}'") if node is not None else otherwise), []
        given = self.shapes.known(node, classes, f"'{key}'")
        return otherwise, [(name, self.one_of(value, key, f"'{key}' of '{name}'")) for name, value in given.items()]

    def experts(self, given: Mapping[str, Node], counts: str) -> str:
        experts = self.word(given, "experts", "routed")
        if experts == "all" and counts != "parameters":
            hint = "work is that of experts that a token is routed to, or that the class runs"
            self.report.error("contradiction", "'experts: all' belongs to 'counts: parameters'", given["experts"].span, hint)
        return experts

    def attention_backward(self, given: Mapping[str, Node]) -> str:
        node, backward = given.get("attention_backward"), given.get("backward")
        derived = backward is None or (isinstance(backward, Scalar) and backward.text == "derived")
        if node is not None and not derived:
            hint = "leave one of them out"
            self.report.error("contradiction", "'attention_backward' belongs to a derived backward pass", node.span, hint)
        return self.word(given, "attention_backward", "4")

    def number(self, node: Node) -> Fraction:
        """Read a number of at least 0: whole, decimal, or a quotient such as ``3/2``."""
        text = node.text if isinstance(node, Scalar) else ""
        if len(text) > MOST_DIGITS or not NUMBER.fullmatch(text):
            self.report.error("bad-shape", "this is a number from 0 on", node.span, "such as 2, 0.5 or 3/2")
            return Fraction(0)
        above, _, below = text.partition("/")
        return Fraction(above) / int(below or 1)

    def backward(self, node: Node | None) -> Backward | None:
        """Read the backward pass as multiples of the forward pass; None if it is derived, absent or faulty."""
        if node is None or (isinstance(node, Scalar) and node.text == "derived"):
            return None
        if isinstance(node, Scalar):
            multiple = self.number(node)
            return Backward(multiple, multiple, multiple)
        given = {key: self.number(value) for key, value in self.shapes.known(node, words_of(BACKWARD), "'backward'").items()}
        missing = [field.name for field in BACKWARD if field.required and field.name not in given]
        if missing:
            hint = "trained, frozen and other, in multiples of the forward work"
            self.report.error("missing-field", f"'backward' needs '{missing[0]}'", node.span, hint)
            return None
        return Backward(given["trained"], given["frozen"], given["other"], given.get("idle"))

    def roles(self, node: Node | None, counts: str) -> list[tuple[str, Rule]]:
        found = []
        for key, value in self.shapes.mapping(node, "'roles'"):
            if self.known_role(key.text, key):
                rule = self.rule(value)
                self.check(key, value, rule, counts)
                found.append((key.text, rule))
        return found

    def known_role(self, text: str, node: Node) -> bool:
        """Whether ``text`` is a known role, or a role in a region (``vision.norm``); reports it if not."""
        region, _, role = text.rpartition(".")
        for name in (region, role) if region else (role,):
            if not self.in_vocabulary(name, node):
                return False
        if region and ROLES[region].group != "region":
            self.report.error("unknown-role", f"'{region}' is no region", node.span, "a region, a point, a role")
            return False
        return True

    def in_vocabulary(self, name: str, node: Node) -> bool:
        if name not in ROLES:
            hint = did_you_mean(name, ROLES, f"roles: {', '.join(ROLES)}")
            self.report.error("unknown-role", f"there is no role '{name}'", node.span, hint)
        return name in ROLES

    def rule(self, node: Node) -> Rule:
        if isinstance(node, Scalar):
            return Rule(self.one_of(node, "count", "a role"))
        given = self.shapes.known(node, words_of(RULE), "a role")
        rows, beyond = (self.shapes.text(given.get(key), f"'{key}'") or None for key in ("rows", "beyond"))
        for key, name in (("rows", rows), ("beyond", beyond)):
            if name is not None:
                self.in_vocabulary(name, given[key])
        numbers = {key: self.number(given[key]) for key in ("forward", "per_element") if key in given}
        count = self.one_of(given["count"], "count", "'count'") if "count" in given else None
        additions = self.one_of(given["additions"], "additions", "'additions'") if "additions" in given else None
        backward = self.backward(given.get("backward"))
        pairs, weights = (self.one_of(given[key], key, f"'{key}'") if key in given else None for key in ("pairs", "weights"))
        forward, per_element = numbers.get("forward"), numbers.get("per_element")
        return Rule(count, forward, per_element, rows, beyond, backward, additions, pairs, weights)

    def check(self, key: Scalar, node: Node, rule: Rule, counts: str) -> None:
        """Report a rule that contradicts itself or does not fit its role ``key``.

        ``counts`` is what the convention counts: ``work`` or ``parameters``.
        """
        group = ROLES[key.text.rpartition(".")[2]].group
        per_element, matmul = rule.per_element is not None, rule.count == "as_matmul"
        left_out = rule.count == "no" and rule != Rule("no")
        no_work = counts == "work" and group == "elements" and rule.count == "yes" and not per_element
        of_region = group == "region" and "." not in key.text and (per_element or rule.rows is not None)
        problems = (
            (left_out, "is left out and has other rules", "leave out 'count: no', or all else"),
            (matmul and per_element, "counts as a matmul and per element", "one of the two"),
            (matmul and group != "elements", "is matmuls already", "yes or no"),
            (no_work, "has no matmul to count", "as_matmul, or {per_element: FLOPs}"),
            (matmul and counts == "parameters", "counts by its parameters here", "yes or no"),
            (
                rule.weights and counts == "work",
                "has weights that count as work anyway",
                "'counts: parameters', or no 'weights'",
            ),
            (of_region, "is a region", "say this of a role, or of a role in it such as 'vision.norm'"),
        )
        for holds, problem, hint in problems:
            if holds:
                self.report.error("contradiction", f"'{key.text}' {problem}", node.span, hint)
                return
