"""Converts YAML nodes to plain Python values, for parts of a page without expressions: configs and batches.

Unquoted scalars follow the core rules of YAML 1.2 (``true``, ``null``, ``12``, ``1e-5``); quoted ones are texts.
"""

from __future__ import annotations

import re
from typing import Any

from symflops.read.yaml_nodes import Mapping, Node, Scalar, Sequence
from symflops.support.findings import Reporter

CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
INTEGERS = ((re.compile(r"[-+]?[0-9]+"), 10), (re.compile(r"0o[0-7]+"), 8), (re.compile(r"0x[0-9a-fA-F]+"), 16))
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
INFINITY = re.compile(r"([-+]?)\.(inf|Inf|INF)")
LONGEST = 40


def python_value(node: Node, report: Reporter) -> Any:
    """Convert a node to dicts, lists and scalar values; numbers with too many digits are reported."""
    match node:
        case Mapping():
            return {_key(key): python_value(value, report) for key, value in node.entries}
        case Sequence():
            return [python_value(item, report) for item in node.items]
        case Scalar():
            return _scalar(node, report)


def _key(node: Scalar) -> Any:
    return int(node.text) if node.plain and node.text.isdecimal() and len(node.text) <= LONGEST else node.text


def _scalar(node: Scalar, report: Reporter) -> Any:
    text = node.text
    if not node.plain:
        return text
    if text in CONSTANTS:
        return CONSTANTS[text]
    for pattern, base in INTEGERS:
        if pattern.fullmatch(text):
            if len(text) > LONGEST:
                report.error("bad-number", f"a number has at most {LONGEST} digits", node.span)
                return 0
            return int(text[2:] if base != 10 else text, base)
    infinite = INFINITY.fullmatch(text)
    if infinite:
        return float(f"{infinite[1]}inf")
    return float(text) if FLOAT.fullmatch(text) else text


def frozen(value: object) -> object:
    """Convert lists in a config value to tuples, recursively, so that it is hashable."""
    return tuple(frozen(item) for item in value) if isinstance(value, (list, tuple)) else value
