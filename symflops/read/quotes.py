"""Removes quotes that YAML does not need around lists, formulas and layouts of a spec."""

from __future__ import annotations

from collections.abc import Iterator

from symflops.read.edits import Edits, bare, children
from symflops.read.entry_paths import path_and_fields
from symflops.read.yaml_nodes import Mapping, Node, Scalar, Sequence, read_yaml
from symflops.support.findings import Source, Span

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
