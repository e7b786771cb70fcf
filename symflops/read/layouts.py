"""Parses layouts of real tensors in a spec: one word per dimension."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from symflops.formula.expression import names, parse_expression
from symflops.formula.language_functions import FUNCTIONS
from symflops.ir.spec import StreamSpec
from symflops.support.findings import Reporter, Span

ITEMS = "b"
"""The word for the batch dimension, which enumerates items."""
WIDTHS = "any other word than batch variables and axes of the stream is the width; a size is written as a product, as"


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


def variables_of(streams: Sequence[StreamSpec], letters: frozenset[str]) -> frozenset[str]:
    """Batch variables of the streams: names in lengths that are not in ``letters``."""
    lengths = (length for stream in streams for part in stream.parts for _, length in part.axes)
    return frozenset(name for length in lengths for name, _ in names(length) if name not in letters)


def axes_of(stream: StreamSpec | None) -> dict[str, str]:
    """Axis -> length, as text, of a stream; empty for None."""
    parts = stream.parts if stream else ()
    return {axis.text: length.text for part in parts for axis, length in part.axes}


def dimensions(words: Sequence[str], scope: Scope, span: Span, report: Reporter) -> tuple[str, ...]:
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
