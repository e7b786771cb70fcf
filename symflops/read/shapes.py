"""Checks on the shape of a document: mappings, lists, names and texts, each with its diagnostic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence as TypingSequence
from dataclasses import replace
from typing import TypeVar

from symflops.formula.expression import Expression, parse_expression
from symflops.formula.identifiers import PATH, PROSE, why_not_identifier
from symflops.ir.spec import Name, PartSpec, Template
from symflops.read.yaml_nodes import Mapping as MappingNode, Node, Scalar, Sequence
from symflops.support.findings import Reporter, Span, did_you_mean

N = TypeVar("N", bound=Node)
MOST_AXES = 16


class Shapes:
    """Reads nodes of a document as mappings, lists, texts or names; reports nodes of another shape.

    ``what`` is what messages call the node. An absent node (None) is read as an empty mapping, list or text.
    """

    def __init__(self, report: Reporter) -> None:
        self.report = report

    def mapping(self, node: Node | None, what: str) -> tuple[tuple[Scalar, Node], ...]:
        """The (key, value) entries of a mapping; none for an absent or empty node."""
        if isinstance(node, MappingNode):
            return node.entries
        if node is not None and not (isinstance(node, Scalar) and node.text in ("", "null", "~")):
            self.report.error(
                "bad-shape", f"{what} must be a mapping", node.span, "write 'name: value' lines, or {name: value}"
            )
        return ()

    def sequence(self, node: Node | None, what: str) -> tuple[Node, ...]:
        """The items of a list; a text that is not in a list counts as its only item."""
        if isinstance(node, Sequence):
            return node.items
        if node is None or (isinstance(node, Scalar) and node.text == ""):
            return ()
        if isinstance(node, MappingNode):
            self.report.error("bad-shape", f"{what} must be a list", node.span, "start each item with '- '")
            return ()
        return (node,)

    def text(self, node: Node | None, what: str) -> str:
        """The text of a scalar."""
        if isinstance(node, Scalar):
            return node.text
        if node is not None:
            self.report.error("bad-shape", f"{what} must be a text", node.span)
        return ""

    def prose(self, node: Node | None, what: str) -> str:
        """Read documentation text, joined to one line."""
        text = " ".join(self.text(node, what).split())
        if node is not None and not PROSE.match(text):
            hint = "no backslashes, control characters or triple quotes"
            self.report.error("bad-text", f"{what} holds what the generated files could not show", node.span, hint)
            return ""
        return text

    def known(self, node: Node, allowed: Iterable[str], what: str) -> Mapping[str, Node]:
        """The entries of a mapping by key; keys that are not ``allowed`` are reported and dropped."""
        allowed = tuple(allowed)
        found: dict[str, Node] = {}
        for key, value in self.joined(self.mapping(node, what)):
            if key.text in allowed:
                found[key.text] = value
            else:
                hint = did_you_mean(key.text, allowed, f"{what} has {', '.join(allowed)}")
                self.report.error("unknown-field", f"{what} has no field '{key.text}'", key.span, hint)
        return found

    def joined(self, entries: tuple[tuple[Scalar, Node], ...]) -> Iterator[tuple[Scalar, Node]]:
        """Yield the entries of a mapping, and rejoin unquoted texts such as ``f(a, b)`` in braces.

        YAML splits them at the comma. Each is reported.
        """
        rest = list(entries)
        while rest:
            key, value = rest.pop(0)
            if isinstance(value, Scalar) and value.plain and value.text.count("(") > value.text.count(")"):
                parts = [value.text, *(follower.text for follower, _ in rest)]
                whole = (", ".join(parts[: number + 1]) for number in range(1, len(parts)))
                closed = next((place for place, text in enumerate(whole, 1) if text.count("(") == text.count(")")), 0)
                if closed:
                    text = ", ".join(parts[: closed + 1])
                    self.report.error(
                        "bad-expression", f"a comma ends '{value.text}'", value.span, f'quote it: {key.text}: "{text}"'
                    )
                    value, rest = replace(value, text=text, plain=False), rest[closed:]
            yield key, value

    def one_of(self, node: Node, words: tuple[str, ...], what: str) -> str:
        """Read one of ``words``; any other text is reported and reads as the first word."""
        text = self.text(node, what)
        if text in words:
            return text
        hint = did_you_mean(text, words, f"one of {', '.join(words)}")
        self.report.error("unknown-word", f"{what} cannot be '{text}'", node.span, hint)
        return words[0]

    def flag(self, node: Node | None, otherwise: bool = False) -> bool:
        """Read true or false; the value of an absent node is ``otherwise``."""
        if node is None:
            return otherwise
        if not isinstance(node, Scalar) or node.text not in ("true", "false"):
            self.report.error("bad-shape", "this is true or false", node.span)
            return False
        return node.text == "true"

    def count(self, node: Node, what: str) -> int | None:
        """Read a whole number from 1 to 999,999; None after reporting another value."""
        text = node.text if isinstance(node, Scalar) else ""
        if text.isdecimal() and text.isascii() and 0 < int(text) < 10**6:
            return int(text)
        self.report.error("bad-number", f"{what} must be a whole number from 1 on", node.span, "such as 8")
        return None

    def name(self, node: Node, what: str) -> Name | None:
        """Read an identifier; None after reporting another value."""
        if not isinstance(node, Scalar):
            self.report.error("bad-shape", f"{what} must be a name", node.span)
            return None
        reason = why_not_identifier(node.text)
        if reason:
            self.report.error("bad-name", f"'{node.text}' cannot name {what}", node.span, reason)
            return None
        return Name(node.text, node.span)

    def value_names(self, node: Node | None, what: str) -> tuple[Name, ...]:
        """Read value names; paths are allowed, since an operator without ``to`` names its result by its path."""
        names: list[Name] = []
        for item in self.sequence(node, what):
            if isinstance(item, Scalar) and item.text:
                names.append(Name(item.text, item.span))
            else:
                self.report.error("bad-shape", f"{what} must be names of values", item.span)
        return tuple(names)

    def expression(self, node: Node | None, what: str) -> Expression | None:
        """Read a scalar or a list of scalars as an expression; None if absent or faulty."""
        if node is None:
            return None
        if isinstance(node, Sequence):
            return self.parse(*self.listed(node, what))
        if not isinstance(node, Scalar):
            self.report.error("bad-shape", f"{what} must be an expression", node.span)
            return None
        inside = node.span if node.plain else Span(node.span.source, node.span.line, node.span.column + 1, node.span.end - 1)
        return self.parse(node.text, inside)

    def listed(self, node: Sequence, what: str) -> tuple[str, Span]:
        """Return (text, span) of a list of expressions in brackets.

        The text is as in the source if it stands on one line; else the items are joined.
        """
        start, end = node.extent
        text = node.span.source.text[start:end]
        if "\n" not in text and text.startswith("[") and all(isinstance(item, Scalar) and item.plain for item in node.items):
            return text, replace(node.span, end=node.span.column + len(text))
        items = (self.listed(item, what)[0] if isinstance(item, Sequence) else self.text(item, what) for item in node.items)
        return f"[{', '.join(items)}]", node.span

    def parse(self, text: str, span: Span) -> Expression | None:
        """Parse an expression; None after reporting its errors."""
        with self.report.collecting():
            return parse_expression(text, span)
        return None

    def template(self, node: Node, what: str) -> Template:
        """Read a path, split into literal text and expressions in braces."""
        text, span = self.text(node, what), node.span
        pieces: list[str | Expression] = []
        rest, offset = text, 0 if not isinstance(node, Scalar) or node.plain else 1
        while "{" in rest:
            literal, _, tail = rest.partition("{")
            inside, closed, after = tail.partition("}")
            if not closed:
                self.report.error(
                    "bad-path",
                    f"'{text}' opens a brace that it does not close",
                    span,
                    "what is in braces is an expression: blocks.{i}",
                )
                break
            if literal:
                pieces.append(literal)
            self.path(literal, what, span)
            start = offset + len(text) - len(tail)
            parsed = self.parse(inside, span.part(start, start + len(inside)))
            if parsed:
                pieces.append(parsed)
            rest = after
        if rest:
            pieces.append(rest)
            self.path(rest if "{" not in rest else "", what, span)
        return Template(tuple(pieces), text, span)

    def path(self, text: str, what: str, span: Span) -> None:
        """Report ``text`` if it has characters that are not allowed in a path."""
        if not PATH.match(text):
            hint = "letters, digits, '_', '.', '-', and expressions in braces"
            self.report.error("bad-path", f"{text!r} cannot stand in {what}", span, hint)

    def parts(self, node: Node) -> tuple[PartSpec, ...]:
        """Read the axes of a stream: ``[x]``, ``{x: length}``, or a list of mappings for several parts."""
        if isinstance(node, MappingNode):
            return (self.part(node),)
        items = self.few(self.sequence(node, "a stream"))
        if items and all(isinstance(item, MappingNode) for item in items):
            return tuple(self.part(item) for item in items if isinstance(item, MappingNode))
        return (PartSpec(self.named(((item, item, "an axis") for item in items), "an axis")),)

    def part(self, node: MappingNode) -> PartSpec:
        """Read one part of a stream: a mapping from axes to lengths."""
        keys = self.few([key for key, _ in node.entries])
        axes = ((key, value, f"the length of axis '{key.text}'") for key, value in node.entries[: len(keys)])
        return PartSpec(self.named(axes, "an axis"))

    def few(self, items: TypingSequence[N]) -> TypingSequence[N]:
        """The first ``MOST_AXES`` of the axes or parts of a stream; reports if there are more."""
        if len(items) > MOST_AXES:
            hint = "the length of an axis may be a product"
            self.report.error("bad-shape", f"a stream has at most {MOST_AXES} axes or parts", items[MOST_AXES].span, hint)
        return items[:MOST_AXES]

    def named(self, pairs: Iterable[tuple[Node, Node, str]], kind: str) -> tuple[tuple[Name, Expression], ...]:
        """Read (key, value, what messages call the value) into (name, expression).

        ``kind`` is what messages call the key. Faulty pairs are reported and dropped.
        """
        found = ((self.name(key, kind), self.expression(value, what)) for key, value, what in pairs)
        return tuple((name, expression) for name, expression in found if name and expression)
