"""Finds values and sizes that a spec defines but nothing reads: allowed, but usually a mistake."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from symflops.formula.expression import Expression, names
from symflops.ir.spec import Block, BlockCall, Entry, Group, Name, OperatorEntry, PartSpec, Repeat, Spec, Template, Tie
from symflops.read.definition_order import reads
from symflops.support.findings import Diagnostic, Span

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SILENT = ("push",)  # operators without a result


def unused(spec: Spec) -> list[Diagnostic]:
    """List a warning for each value and size that the spec's own file defines and nothing reads."""
    found = [*_values(spec.graph, {name.text for name in spec.outputs})]
    for block in {id(block): block for block in _blocks(spec.graph)}.values():
        found += _values(block.body, {name.text for name in block.outputs})
    found += _sizes(spec)
    own = spec.sources[0].path
    return [warning for warning in found if warning.span is not None and warning.span.source.path == own]


def _blocks(entries: Iterable[Entry]) -> Iterator[Block]:
    for entry in entries:
        if isinstance(entry, BlockCall):
            yield entry.block
            yield from _blocks(entry.block.body)
        elif isinstance(entry, (Repeat, Group)):
            yield from _blocks(entry.body)


def _values(entries: tuple[Entry, ...], outputs: set[str]) -> Iterator[Diagnostic]:
    """Yield a warning for each name that ``entries`` bind and neither they nor ``outputs`` read."""
    in_expressions = {name for expression in expressions(entries) for name, _ in names(expression)}  # as in 'width(v)'
    read = outputs.union(*map(reads, entries), in_expressions)
    for name, span, unnamed in _definitions(entries):
        if name in read or (name == "_" and not unnamed):
            continue
        hint = "is an input or an output misspelt? '_' under 'to' says that it is dropped on purpose"
        if unnamed:
            hint = "say under 'to' or 'add_to' where it goes; 'to: _' says that it is dropped on purpose"
        yield Diagnostic("unused-value", f"nothing reads '{name}'", span, hint, "warning")


def _definitions(entries: Iterable[Entry]) -> Iterator[tuple[str, Span, bool]]:
    """Yield (name, span, whether the name is a path) for each result of ``entries``.

    The name is the one under ``to``, or for an operator without ``to`` its path.
    """
    for entry in entries:
        if isinstance(entry, OperatorEntry):
            to, more = entry.fields.get("to") or (), entry.fields.get("add_to")
            yield from ((name.text, name.span, False) for name in to)
            if not to and not more and entry.kind.text not in SILENT:
                yield entry.path.text, entry.span, True
        elif isinstance(entry, BlockCall):
            yield from ((name.text, name.span, False) for name in entry.common.get("to") or ())
        elif isinstance(entry, Group) and entry.experts is not None:
            yield from ((name.text, name.span, False) for name in entry.to)
        elif isinstance(entry, (Repeat, Group)):
            yield from _definitions(entry.body)


def _sizes(spec: Spec) -> Iterator[Diagnostic]:
    words = {name for expression in expressions(spec.graph) for name, _ in names(expression)}
    words |= {name for expression in headers(spec) for name, _ in names(expression)}
    words |= {word for item in spec.inputs if item.layout for text in item.layout.axes for word in WORD.findall(text)}
    for size in (*(size.name for size in (*spec.sizes, *spec.decided)), *(name for name, _ in spec.derived)):
        if size.text not in words:
            hint = "take it away, or use it where the model does"
            yield Diagnostic("unused-size", f"nothing reads the size '{size}'", size.span, hint, "warning")


def headers(spec: Spec) -> Iterator[Expression]:
    """Yield all expressions of a spec outside its graph."""
    yield from (formula for size in spec.sizes for formula in (size.default, size.null) if formula is not None)
    yield from (expression for _, expression in (*spec.derived, *spec.requires, *spec.expected))
    for stream in spec.streams:
        yield from _inside(stream.parts)
    for item in spec.inputs:
        yield from (expression for expression in (item.width, item.when) if expression is not None)


def expressions(entries: Iterable[Entry]) -> Iterator[Expression]:
    """Yield all expressions in ``entries`` and in the blocks that they call."""
    for entry in entries:
        if isinstance(entry, OperatorEntry):
            yield from _inside((entry.path, *entry.fields.values()))
        elif isinstance(entry, BlockCall):
            yield from _inside((entry.path, *entry.common.values(), *entry.parameters.values()))
            yield from _inside(default for _, default in entry.block.parameters)
            yield from expressions(entry.block.body)
        elif isinstance(entry, Repeat):
            yield from _inside((entry.path, entry.count, entry.start, entry.when))
            yield from expressions(entry.body)
        elif isinstance(entry, Group):
            yield from _inside((entry.path, entry.when, entry.no_grad, entry.experts, entry.choose, entry.routed))
            yield from expressions(entry.body)


def _inside(values: Iterable[Any]) -> Iterator[Expression]:
    for value in values:
        match value:
            case Expression():
                yield value
            case Template():
                yield from (piece for piece in value.pieces if isinstance(piece, Expression))
            case Tie():
                yield from _inside((value.to, value.when))
            case PartSpec():
                yield from (length for _, length in value.axes)
            case tuple():
                yield from _inside(value)
            case Name() | None:
                pass
