"""The version of the language of a document, and the two forms of its entries.

An entry is ``path: {fields}``, or fields alone, which stand at the surrounding path.
"""

from __future__ import annotations

from symflops.read.yaml_nodes import Mapping, Node, Scalar
from symflops.support.findings import Diagnostic, Source, Span

LANGUAGE = "2"
HERE = "_"
"""Placeholder for the surrounding path; names an entry without a path in an edit."""
ENTRY = ("op", "block", "repeat", "graph")
"""Fields of which an entry has one: it decides the kind of the entry."""


def other_language(node: Node, source: Source) -> Diagnostic | None:
    """The finding about a document's ``language`` if it is missing or not the current version, else None."""
    given = node.get("language") if isinstance(node, Mapping) else None
    text = given.text if isinstance(given, Scalar) else ""
    if text == LANGUAGE:
        return None
    place = Span(source, 1, 1, 2) if given is None or not text else given.span
    if text in ("", "1"):
        message = "this is written in version 1 of the language" if text else "a spec without 'language' is of version 1"
        hint = f"'symflops migrate {source.path}' rewrites it; a new one begins with 'language: {LANGUAGE}'"
        return Diagnostic("old-language", message, place, hint)
    message = f"there is no version '{text}' of the language"
    hint = f"this symflops reads version {LANGUAGE}: write 'language: {LANGUAGE}', or use a newer symflops"
    return Diagnostic("unknown-language", message, place, hint)


def path_and_fields(item: Node) -> tuple[Scalar, Node] | None:
    """Split an entry into its path (:data:`HERE` if it has none) and fields; None if it is not an entry.

    A single key with a mapping as its value is a path: ``block: {repeat: L, ...}`` is at the path ``block``. Null under a
    path removes an entry of the base.
    """
    if not isinstance(item, Mapping) or not item.entries:
        return None
    (key, value), *others = item.entries
    kind = next((name for name, _ in item.entries if name.text in ENTRY), key)
    if not others and (isinstance(value, Mapping) or is_null(value) or kind.text not in ENTRY):
        return key, value
    if isinstance(value, Mapping) and kind.text not in ENTRY:
        return None
    return Scalar(HERE, kind.span), item


def joined(path: Scalar, fields: Mapping, item: Mapping) -> Mapping:
    """Make an entry from a path and fields, located in the source where ``item`` is."""
    return fields if path.text == HERE else Mapping(((path, fields),), item.span)


def is_null(node: Node) -> bool:
    """Whether a node is null: empty, ``null`` or ``~``."""
    return isinstance(node, Scalar) and node.plain and node.text in ("null", "~", "")
