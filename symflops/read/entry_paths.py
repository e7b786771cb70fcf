"""Splits entry nodes into path and fields: ``path: {fields}``, or fields alone, at the surrounding path."""

from __future__ import annotations

from symflops.read.yaml_nodes import Mapping, Node, Scalar

HERE = "_"
"""Placeholder for the surrounding path; names an entry without a path in an edit."""
ENTRY = ("op", "block", "repeat", "graph")


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
