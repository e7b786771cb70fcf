"""Checks on the shape of a document: mappings, lists, names and texts, each with its diagnostic; layouts of tensors.

A layout has one word per dimension of a real tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence as TypingSequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TypeVar

from symflops.formula.expression import Expression, names, parse_expression
from symflops.formula.identifiers import PATH, PROSE, why_not_identifier
from symflops.formula.language_functions import FUNCTIONS
from symflops.ir.spec import Name, PartSpec, StreamSpec, Template
from symflops.read.yaml_nodes import Mapping as MappingNode, Node, Scalar, Sequence, is_null
from symflops.support.findings import Reporter, Span, did_you_mean

N = TypeVar("N", bound=Node)
MOST_AXES = 16
TRUE, FALSE = ("true", "yes", "on", "y", "1"), ("false", "no", "off", "n", "0", "null", "none")
TEXTS = ("doc", "title")
Entries = tuple[tuple[Scalar, Node], ...]
ITEMS = "b"
"""The word for the batch dimension, which enumerates items."""
WIDTHS = "any other word than batch variables and axes of the stream is the width; a size is written as a product, as"


def split_off(key: Scalar, value: Scalar, rest: TypingSequence[tuple[Scalar, Node]], allowed: TypingSequence[str]) -> int:
    """Count the entries after ``value`` that YAML split off at a comma: to a closing bracket, or all words of a text."""
    if key.text in TEXTS:
        return sum(1 for _ in takewhile(lambda entry: entry[0].text not in allowed and is_null(entry[1]), rest))
    depth = value.text.count("(") - value.text.count(")")
    for place, (follower, _) in enumerate(rest if depth > 0 else (), 1):
        depth += follower.text.count("(") - follower.text.count(")")
        if depth == 0:
            return place
    return 0


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
        for key, value in self.joined(self.mapping(node, what), allowed):
            if key.text in allowed:
                found[key.text] = value
            else:
                hint = did_you_mean(key.text, allowed, f"{what} has {', '.join(allowed)}")
                self.report.error("unknown-field", f"{what} has no field '{key.text}'", key.span, hint)
        return found

    def joined(self, entries: Entries, allowed: TypingSequence[str]) -> Iterator[tuple[Scalar, Node]]:
        """Yield the entries of a mapping, and rejoin unquoted texts in braces: ``f(a, b)``, and ``a, b`` in documentation.

        YAML splits them at the comma. Each is reported.
        """
        rest = list(entries)
        while rest:
            key, value = rest.pop(0)
            cut = split_off(key, value, rest, allowed) if isinstance(value, Scalar) and value.plain else 0
            if cut and isinstance(value, Scalar):
                text = ", ".join([value.text, *(follower.text for follower, _ in rest[:cut])])
                code = "bad-text" if key.text in TEXTS else "bad-expression"
                self.report.error(code, f"a comma ends '{value.text}'", value.span, f'quote it: {key.text}: "{text}"')
                value, rest = replace(value, text=text, plain=False), rest[cut:]
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
            said = node.text.lower() if isinstance(node, Scalar) else ""
            hint = "write true" if said in TRUE else "write false" if said in FALSE else ""
            self.report.error("bad-shape", "this is true or false", node.span, hint)
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


@dataclass(frozen=True, slots=True)
class Scope:
    """Names that a layout may use.

    Attributes:
        variables: The batch variables of all streams.
        letters: The spec's sizes and derived sizes.
        axes: Axis -> length, as text, of the stream of the input that has the layout.
    """

    variables: frozenset[str]
    letters: frozenset[str]
    axes: Mapping[str, str]


def variables_of(streams: TypingSequence[StreamSpec], letters: frozenset[str]) -> frozenset[str]:
    """Batch variables of the streams: names in lengths that are not in ``letters``."""
    lengths = (length for stream in streams for part in stream.parts for _, length in part.axes)
    return frozenset(name for length in lengths for name, _ in names(length) if name not in letters)


def axes_of(stream: StreamSpec | None) -> dict[str, str]:
    """Axis -> length, as text, of a stream; empty for None."""
    parts = stream.parts if stream else ()
    return {axis.text: length.text for part in parts for axis, length in part.axes}


def dimensions(words: TypingSequence[str], scope: Scope, span: Span, report: Reporter) -> tuple[str, ...]:
    """Convert a layout's words, one per dimension, to lengths as texts.

    An axis becomes its length. The second dimension with the length ``r`` becomes ``1*r``.
    """
    found: list[str] = []
    width = ""
    for word in words:
        given = _length(word, scope, span, report)
        if given in found and given in scope.variables:
            given = f"1*{given}"
        elif given.isidentifier() and given not in (ITEMS, *scope.variables):
            if width:
                message = f"the layout '{' '.join(words)}' has two widths, '{width}' and '{word}'"
                report.error("duplicate-name", message, span, f"{WIDTHS} '1*{given}'")
            width = word
        elif given == ITEMS in found:
            report.error("duplicate-name", f"the layout '{' '.join(words)}' names two dimensions '{ITEMS}'", span)
        found.append(given)
    return tuple(found)


def _length(word: str, scope: Scope, span: Span, report: Reporter) -> str:
    """The length that ``word`` stands for, as text without spaces; unknown names are reported."""
    if word in scope.variables or word == ITEMS or "=" in word or word.isdigit():
        return word
    if word in scope.axes:
        length = scope.axes[word].replace(" ", "")
        return f"1*{length}" if length in scope.letters else length
    if not word.isidentifier():
        for name in _unknown(word, scope, span, report):
            hint = f"it has sizes, batch variables ({', '.join(sorted(scope.variables)) or 'none'}) and '{ITEMS}' for the items"
            report.error("unknown-size", f"'{name}' in the layout '{word}' is no length", span, hint)
    return word


def _unknown(word: str, scope: Scope, span: Span, report: Reporter) -> Iterator[str]:
    """Yield the names in the expression ``word`` that are neither in ``scope`` nor functions."""
    with report.collecting():
        expression = parse_expression(word, span)
        calls = (node.func for node in ast.walk(expression.tree) if isinstance(node, ast.Call))
        called = (function.id for function in calls if isinstance(function, ast.Name))
        known = {ITEMS, *scope.variables, *scope.letters}
        yield from (name for name, _ in names(expression) if name not in known)
        yield from (name for name in called if name not in FUNCTIONS)
