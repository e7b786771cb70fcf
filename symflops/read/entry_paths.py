"""The paths of entries as nodes: an entry is ``path: {fields}``, or fields alone at the path around it."""

from __future__ import annotations

from symflops.read.yaml_nodes import Mapping, Node, Scalar

HERE = "_"
"""Stands for the path around an entry where a path must be said: in an edit of an entry without a path."""
ENTRY = ("op", "block", "repeat", "graph")


def path_and_fields(item: Node) -> tuple[Scalar, Node] | None:
    """The path of an entry, :data:`HERE` if it has none, and its fields; None if it is not an entry.

    Its only key is a path if fields stand under it: ``block: {repeat: L, ...}`` is at the path ``block``. A null under a path
    removes an entry of the base.
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
    """The entry of a path and fields, at the place of ``item``."""
    return fields if path.text == HERE else Mapping(((path, fields),), item.span)


def is_null(node: Node) -> bool:
    """Whether a node is an empty value."""
    return isinstance(node, Scalar) and node.plain and node.text in ("null", "~", "")
