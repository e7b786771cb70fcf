"""Specs as plain trees that can be changed and written again: dictionaries, lists, and texts that know whether they were quoted."""

from __future__ import annotations

import json
import re
from typing import Any

from symflops.read.yaml_nodes import Mapping, Node, Scalar, read_yaml
from symflops.support.findings import Source

PLAIN = re.compile(r"[A-Za-z0-9_.+*/()<>=% -]*[A-Za-z0-9_.+*/()]\Z")


class Text(str):
    """A scalar; ``plain`` when it was written without quotes, which decides what some fields mean."""

    plain = True


def text(value: str, plain: bool = True) -> Text:
    found = Text(value)
    found.plain = plain
    return found


def tree_of(source: str) -> Any:
    """The tree of a document."""
    return _tree(read_yaml(Source("mutant", source)))


def _tree(node: Node) -> Any:
    if isinstance(node, Scalar):
        return text(node.text, node.plain)
    if isinstance(node, Mapping):
        return {key.text: _tree(value) for key, value in node.entries}
    return [_tree(item) for item in node.items]


def written(tree: Any) -> str:
    """The document of a tree, one line per top field."""
    return "".join(f"{key}: {_written(value)}\n" for key, value in tree.items())


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_written(text(key))}: {_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    plain = getattr(value, "plain", True) and (not value or PLAIN.match(value)) and not value.startswith(("-", "%", "*", "=", ">", " "))
    return str(value) if plain else json.dumps(value)
