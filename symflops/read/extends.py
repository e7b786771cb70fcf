"""Implements ``extends``: merges a spec into the base spec that it extends.

- ``sizes``, ``derived``, ``requires``, ``expected``, ``streams``, ``inputs`` and ``blocks`` are merged by name; null removes
  a name.
- ``graph`` edits the base's graph, entry by entry. An entry with a kind (``op``, ``block``, ``repeat``) replaces the entry at
  its path; if several entries have that path, it replaces the one of its kind. An entry without a kind changes single fields,
  and its own ``graph`` edits the entries inside. Null removes an entry. ``after: path`` or ``before: path`` inserts a new one.
  ``_`` names the entry without a path.
- ``outputs`` are the base's unless the spec has its own. Everything else is the spec's own.
"""

from __future__ import annotations

from collections.abc import Iterable

from symflops.ops.kind import words_of
from symflops.read.entries import BlockText
from symflops.read.field_tables import EXTENDS, PLACES
from symflops.read.yaml_nodes import (
    Mapping,
    Node,
    Scalar,
    Sequence,
    is_null,
    joined,
    other_language,
    path_and_fields,
    read_yaml,
)
from symflops.support.findings import Reporter, Source, SpecError, did_you_mean

MERGED = ("sizes", "derived", "requires", "expected", "streams", "inputs", "blocks")
KINDS = ("op", "block", "repeat")
MAX_BASES = 8


def no_bases(name: str) -> Source | None:
    """Find no spec by any name, and return None: the default for ``bases``."""
    return None


def extended(node: Node, bases: BlockText, report: Reporter) -> tuple[Node, tuple[Source, ...]]:
    """Merge a document with the specs that it extends; return (document, sources of these specs, nearest first).

    Args:
        node: The document, with or without ``extends``.
        bases: Finds the text of a spec by its name.
        report: Receives the findings.
    """
    return _extended(node, bases, report, ())


def _extended(node: Node, bases: BlockText, report: Reporter, seen: tuple[str, ...]) -> tuple[Node, tuple[Source, ...]]:
    name = node.get(EXTENDS.name) if isinstance(node, Mapping) else None
    if not isinstance(node, Mapping) or name is None:
        return node, ()
    text = name.text if isinstance(name, Scalar) else ""
    source = bases(text) if text and text not in seen and len(seen) < MAX_BASES else None
    if source is None:
        message = f"there is no spec '{text}'" if text not in seen else f"'{text}' extends itself"
        report.error(
            "unknown-spec",
            message,
            name.span,
            "the name of a spec, as 'symflops list' shows them, or of a file beside this one",
        )
        return _without(node, EXTENDS.name), ()
    document = read_yaml(source)
    other = other_language(document, source)
    if other is not None:
        raise SpecError([other])
    base, more = _extended(document, bases, report, (*seen, text))
    if not isinstance(base, Mapping):
        return _without(node, EXTENDS.name), (source, *more)
    return _Merging(report).document(base, _without(node, EXTENDS.name)), (source, *more)


def _without(node: Mapping, *keys: str) -> Mapping:
    return Mapping(tuple((key, value) for key, value in node.entries if key.text not in keys), node.span)


class _Merging:
    def __init__(self, report: Reporter) -> None:
        self.report = report

    def document(self, base: Mapping, own: Mapping) -> Mapping:
        """Merge the document ``own`` into the spec ``base`` that it extends."""
        entries = list(own.entries)
        for key, theirs in base.entries:
            ours = own.get(key.text)
            if key.text in MERGED and isinstance(theirs, Mapping):
                merged = self.fields(theirs, ours) if isinstance(ours, Mapping) else theirs
                entries = _set(entries, key, merged)
            elif key.text == "graph" and isinstance(theirs, Sequence):
                merged_graph = self.graph(theirs, ours) if isinstance(ours, Sequence) else theirs
                entries = _set(entries, key, merged_graph)
            elif key.text == "outputs" and ours is None:
                entries.append((key, theirs))
        return Mapping(tuple(entries), own.span)

    def fields(self, base: Mapping, own: Mapping) -> Mapping:
        """Merge ``own`` into ``base`` by key; null removes a key."""
        entries = list(base.entries)
        for key, value in own.entries:
            rest = [entry for entry in entries if entry[0].text != key.text]
            entries = rest if is_null(value) else _set(entries, key, value)
        return Mapping(tuple(entries), own.span)

    def graph(self, base: Sequence, own: Sequence) -> Sequence:
        """Apply the edits ``own`` of a graph to the graph ``base``: change, remove and insert entries."""
        items = list(base.items)
        for item in own.items:
            parts = path_and_fields(item)
            if parts is None or not isinstance(item, Mapping):
                self.report.error("bad-entry", "an entry is one path with its fields", item.span, "write '- path: {op: ...}'")
                continue
            path, body = parts
            placed = [key for key in words_of(PLACES) if isinstance(body, Mapping) and body.get(key) is not None]
            if placed and isinstance(body, Mapping):
                self.insert(items, path, body, placed[0])
                continue
            position = self.find(items, path, path, _kind(item))
            if position is None:
                continue
            if is_null(body):
                del items[position]
            else:
                items[position] = self.entry(items[position], path, body, item)
        return Sequence(tuple(items), own.span)

    def entry(self, base: Node, path: Scalar, body: Node, item: Mapping) -> Node:
        """Apply the edit ``item``, with the given path and fields ``body``, to the entry ``base``.

        An edit with ``op``, ``block`` or ``repeat`` replaces the entry; the fields of any other are merged into it.
        """
        _, theirs = path_and_fields(base) or (None, base)
        if not isinstance(body, Mapping) or not isinstance(theirs, Mapping):
            return item
        if any(body.get(kind) is not None for kind in KINDS):
            return item
        entries = list(theirs.entries)
        for key, value in body.entries:
            inner = theirs.get(key.text)
            if key.text == "graph" and isinstance(inner, Sequence) and isinstance(value, Sequence):
                entries = _set(entries, key, self.graph(inner, value))
            else:
                entries = _set(entries, key, value)
        return joined(path, Mapping(tuple(entries), body.span), item)

    def insert(self, items: list[Node], path: Scalar, body: Mapping, place: str) -> None:
        """Insert a new entry with ``path`` and fields ``body`` into ``items``.

        ``place`` is ``after`` or ``before``, the field that names an entry in ``items``.
        """
        anchor = body.get(place)
        position = self.find(items, anchor, path) if isinstance(anchor, Scalar) else None
        if position is not None:
            new = joined(path, _without(body, *words_of(PLACES)), body)
            items.insert(position + (place == "after"), new)

    def find(self, items: list[Node], wanted: Scalar, path: Scalar, kind: tuple[str, str] | None = None) -> int | None:
        """Position in ``items`` of the entry at the path ``wanted``; of several, the one of ``kind``.

        None if there is no such entry or more than one, which is reported.
        """
        found = [position for position, item in enumerate(items) if wanted.text in _paths([item])]
        if len(found) > 1 and kind is not None:
            found = [position for position in found if _kind(items[position]) == kind] or found
        if len(found) == 1:
            return found[0]
        if found:
            message = f"there are {len(found)} entries '{wanted.text}' here"
            self.report.error("ambiguous-entry", message, wanted.span, "replace the entry around them")
            return None
        known = list(dict.fromkeys(_paths(items)))
        hint = did_you_mean(wanted.text, known, "say 'after' or 'before' which entry a new one stands")
        self.report.error("unknown-entry", f"there is no entry '{wanted.text}' to change", wanted.span, hint)
        return None


def _paths(items: Iterable[Node]) -> list[str]:
    return [parts[0].text for parts in map(path_and_fields, items) if parts is not None]


def _kind(item: Node) -> tuple[str, str] | None:
    """(kind, operator or block) of an entry; None for an entry without a kind.

    The kind is the key ``op``, ``block`` or ``repeat``; for a repeat the second text is empty.
    """
    _, body = path_and_fields(item) or (None, None)
    for name in KINDS:
        value = body.get(name) if isinstance(body, Mapping) else None
        if value is not None:
            return name, value.text if isinstance(value, Scalar) and name != "repeat" else ""
    return None


def _set(entries: list[tuple[Scalar, Node]], key: Scalar, value: Node) -> list[tuple[Scalar, Node]]:
    if all(known.text != key.text for known, _ in entries):
        return [*entries, (key, value)]
    return [(key, value) if known.text == key.text else (known, node) for known, node in entries]
