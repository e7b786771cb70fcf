"""Edits a YAML text at the positions of its nodes; the rest of the text keeps its layout and comments.

An edit of its own removes quotes that YAML does not need around lists, formulas and layouts of a spec.
"""

from __future__ import annotations

from collections.abc import Iterator

from symflops.read.yaml_nodes import Mapping, Node, Scalar, Sequence, path_and_fields, read_yaml
from symflops.support.findings import Source, Span, SpecError

PROSE = ("doc", "title", "latex")
NONE = Sequence((), Span(Source("", ""), 1, 1, 1))


def unquoted(text: str) -> str:
    """Remove needless quotes from the text of a spec."""
    source = Source("", text)
    edits = Edits(source)
    quotes(read_yaml(source), edits)
    return edits.text()


def graphs(node: Node) -> Iterator[Sequence]:
    """Yield all graphs of a document: those of its blocks, its own, and those inside their entries.

    A graph comes before the graphs inside its entries.
    """
    if not isinstance(node, Mapping):
        return
    graph, blocks = node.get("graph"), node.get("blocks")
    for block in children(blocks or NONE):
        yield from graphs(block)
    if isinstance(graph, Sequence):
        yield graph
        for item in graph.items:
            _, fields = path_and_fields(item) or (None, item)
            yield from graphs(fields)


def quotes(node: Node, edits: Edits) -> None:
    """Remove needless quotes of expressions and layouts."""
    assert isinstance(node, Mapping)
    for graph in graphs(node):
        for item in graph.items:
            _, fields = path_and_fields(item) or (None, item)
            _fields(fields, edits, edits.is_flow(graph) or edits.is_flow(item))
    for document in (node, *children(node.get("blocks") or NONE)):
        _unquote(document.get("params") if isinstance(document, Mapping) else None, edits, False)
    _unquote(node.get("derived"), edits, False)
    _lengths(node.get("streams"), edits, False)
    for name, words in (("sizes", ("default", "if_null")), ("inputs", ("width", "when", "layout"))):
        for one in children(node.get(name) or NONE):
            if isinstance(one, Mapping):
                for word in words:
                    _unquote(one.get(word), edits, edits.is_flow(one))


def _fields(fields: Node, edits: Edits, inside: bool) -> None:
    """Remove needless quotes in an entry's fields, except in its graph and in documentation.

    ``inside``: whether brackets or braces surround the fields.
    """
    for key, value in fields.entries if isinstance(fields, Mapping) else ():
        if key.text in ("stream", "axes"):
            _lengths(value, edits, inside or edits.is_flow(fields))
        elif key.text not in ("graph", *PROSE):
            _unquote(value, edits, inside or edits.is_flow(fields))


def _lengths(node: Node | None, edits: Edits, inside: bool) -> None:
    """Remove needless quotes of lengths, but not those of names of streams and axes.

    ``inside``: whether brackets or braces surround ``node``.
    """
    if isinstance(node, Mapping):
        for _, value in node.entries:
            (_unquote if isinstance(value, Scalar) else _lengths)(value, edits, inside or edits.is_flow(node))
    for item in node.items if isinstance(node, Sequence) else ():
        if not isinstance(item, Scalar):
            _lengths(item, edits, True)


def _unquote(node: Node | None, edits: Edits, inside: bool) -> None:
    inside = inside or (node is not None and edits.is_flow(node))
    match node:
        case Scalar() if not node.plain and bare(node.text, inside):
            edits.replace(*node.extent, node.text)
        case Sequence() | Mapping():
            for inner in children(node):
                _unquote(inner, edits, inside)


class Edits:
    """Collects edits of one text; :meth:`text` applies them all.

    Attributes:
        source: The unedited text.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.spans: list[tuple[int, int, str]] = []
        self.indents: dict[int, int] = {}
        self.comments: dict[int, list[str]] = {}

    def replace(self, start: int, end: int, text: str) -> None:
        """Replace the characters in ``[start, end)`` by ``text``."""
        self.spans.append((start, end, text))

    def is_flow(self, node: Node) -> bool:
        """Whether a node is a collection in flow style: in brackets or braces."""
        return not isinstance(node, Scalar) and self.source.text[node.extent[0] : node.extent[0] + 1] in ("[", "{")

    def remove(self, mapping: Mapping, key: str) -> None:
        """Delete ``key`` and its value from ``mapping``."""
        position = next(place for place, (name, _) in enumerate(mapping.entries) if name.text == key)
        name, value = mapping.entries[position]
        start, end = name.extent[0], self.end(value)
        if self.is_flow(mapping):
            if position:
                start = self.end(mapping.entries[position - 1][1])
            elif len(mapping.entries) > 1:
                end = mapping.entries[1][0].extent[0]
            return self.replace(start, end, "")
        text = self.source.text
        line, after = self.line(start), (text.find("\n", end) + 1) or len(text)
        alone = not text[line:start].strip() and not text[end:after].strip()
        return self.replace(line, after, "") if alone else self.replace(start, end, "")

    def unwrap(self, item: Mapping, listed: bool) -> None:
        """Replace ``item``, a mapping with the one key ``key: fields``, by its fields.

        ``listed``: whether the list around the item is in brackets.
        """
        ((key, fields),) = item.entries
        first, end = fields.extent[0], self.end(fields)
        if listed or self.is_flow(item):
            self.replace(item.extent[0], first, "")
            return self.replace(end, item.extent[1], "")
        between = self.source.text[key.extent[1] : first]
        told = [line[line.index("#") :].rstrip() for line in between.split("\n") if "#" in line]
        self.comments.setdefault(self.line(key.extent[0]), []).extend(told)
        self.replace(key.extent[0], first, "")
        column = first - self.line(first)
        for line in self.lines_below(first, end, column):
            self.indents[line] = self.indents.get(line, 0) + column - (key.extent[0] - self.line(key.extent[0]))
        return None

    def lines_below(self, start: int, end: int, column: int) -> list[int]:
        """Offsets of the lines after that of ``start`` that are indented by ``column`` or more.

        They go up to ``end``, and on through the comments that follow it with this indent.
        """
        text, found = self.source.text, []
        line = text.find("\n", start) + 1
        while line:
            after = text.find("\n", line) + 1
            words = text[line : after or len(text)]
            inside = bool(words.strip()) and not words[:column].strip()
            if line >= end and not (inside and words.lstrip().startswith("#")):
                break
            found += [line] if inside else []
            line = after
        return found

    def line(self, place: int) -> int:
        """The offset at which the line begins that contains the character at offset ``place``."""
        return self.source.text.rfind("\n", 0, place) + 1

    def end(self, node: Node) -> int:
        """The offset at which a node ends, without trailing space and comments."""
        inner = children(node)
        return node.extent[1] if self.is_flow(node) or not inner else self.end(inner[-1])

    @property
    def line_end(self) -> str:
        """The text's line ending: CRLF or LF."""
        return "\r\n" if "\r\n" in self.source.text else "\n"

    def text(self) -> str:
        """The text with all edits applied."""
        text = self.source.text
        edits = [(line, line + count, "") for line, count in self.indents.items()]
        for line, told in self.comments.items():
            indent = len(text[line:]) - len(text[line:].lstrip(" ")) - self.indents.get(line, 0)
            edits.append((line, line, "".join(f"{' ' * indent}{comment}{self.line_end}" for comment in told)))
        found, place = [], 0
        for start, end, new in sorted([*self.spans, *edits]):
            if start >= place:  # else the line is joined with one above
                found += [text[place:start], new]
                place = end
        return "".join([*found, text[place:]])


def children(node: Node) -> list[Node]:
    """The items of a list, or the values of a mapping; none for a scalar."""
    match node:
        case Sequence():
            return [*node.items]
        case Mapping():
            return [value for _, value in node.entries]
    return []


def bare(text: str, inside: bool) -> bool:
    """Whether YAML reads ``text`` without quotes as the same text, or as a list of texts.

    ``inside``: whether the text is written inside brackets or braces, where a comma ends it.
    """
    if text in ("", "null", "~") or "\n" in text:
        return False
    try:
        node = read_yaml(Source("", f"[{text}]" if inside else f"x: {text}\n"))
    except SpecError:
        return False
    items = children(node)
    return len(items) == 1 and (_is(items[0], text) or (text[0] == "[" and text[-1] == "]" and _is_list(items[0])))


def _is(node: Node, text: str) -> bool:
    return isinstance(node, Scalar) and node.plain and node.text == text


def _is_list(node: Node) -> bool:
    """Whether a node is a list of unquoted texts, or of such lists."""
    plain = (_is_list(item) or (isinstance(item, Scalar) and item.plain) for item in children(node))
    return isinstance(node, Sequence) and all(plain)


def written(text: str, inside: bool) -> str:
    """Format a text as YAML, quoted if necessary; ``inside``: whether brackets or braces surround it."""
    return text if bare(text, inside) else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
