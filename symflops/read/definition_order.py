"""Findings about names of a spec: read before they are bound, defined by each other in a cycle, or never read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from symflops.formula.expression import Expression, names
from symflops.ir.spec import (
    Block,
    BlockCall,
    Entry,
    Faulty,
    Group,
    Name,
    OperatorEntry,
    PartSpec,
    Repeat,
    SizeSpec,
    Spec,
    Template,
    Tie,
)
from symflops.support.findings import Diagnostic, Label, Reporter, Span, did_you_mean

EARLY = "entries run in the order written: move this one below that, or read a value that is there already"


def assigned(entries: Sequence[Entry]) -> frozenset[str]:
    """Names that ``entries`` may bind to a value, or to whose value they may add a result."""
    found: set[str] = set()
    for entry in entries:
        if isinstance(entry, Faulty):
            found |= set(entry.names)
        elif isinstance(entry, Group) and entry.experts is not None:
            found |= {name.text for name in entry.to} or {entry.path.text}
        elif isinstance(entry, (Repeat, Group)):
            found |= assigned(entry.body)
        else:
            fields = entry.fields if isinstance(entry, OperatorEntry) else entry.common
            found |= {name.text for name in fields.get("to") or ()} or {entry.path.text}
            found |= {name.text for name in fields.get("add_to") or ()}
    return frozenset(found - {"_"})


def named_results(entry: Entry) -> frozenset[str]:
    """Names that an entry gives its results under ``to``; without those under ``add_to``."""
    if isinstance(entry, Faulty):
        return frozenset(entry.names) - {"_"}
    if isinstance(entry, Repeat):
        return frozenset()
    fields = (
        {"to": entry.to} if isinstance(entry, Group) else entry.fields if isinstance(entry, OperatorEntry) else entry.common
    )
    return frozenset(name.text for name in fields.get("to") or ()) - {"_"}


def check_defaults(sizes: Sequence[SizeSpec], report: Reporter) -> None:
    """Report defaults that read names other than sizes declared above."""
    formulas = {size.name.text: size.default for size in sizes if size.default is not None}
    places = {size.name.text: size.name for size in sizes}
    for position, size in enumerate(sizes):
        above = {known.name.text for known in sizes[:position]}
        for name, span in (found for formula in (size.default, size.null) if formula is not None for found in names(formula)):
            if name in above:
                continue
            if name in places:
                report.add(early_size(name, span, places, formulas, size.name.text, "a default sees the sizes above it"))
            else:
                hint = did_you_mean(name, above, "a default is made of the sizes above it")
                report.error("unknown-size", f"size '{name}' is not declared", span, hint)


def early_size(
    name: str, span: Any, places: Mapping[str, Name], formulas: Mapping[str, Expression], reader: str, rule: str
) -> Diagnostic:
    """Make the finding that size ``reader`` reads size ``name`` too early, or that both form a cycle.

    Args:
        name: The size that is read.
        span: Where it is read.
        places: Size -> its name where it is declared.
        formulas: Size -> the formula of its value.
        reader: The size whose formula reads it.
        rule: The rule that is broken, for the hint.
    """
    also = (Label(places[name].span, f"'{name}' is declared here"),)
    circle = next(waiting(name, reader, formulas), None)
    if circle is None:
        hint = f"{rule}: move '{name}' up"
        return Diagnostic("used-too-early", f"'{name}' is read before it is declared", span, hint, also=also)
    cycle = " -> ".join([reader, *circle])
    hint = "one of them must be a size of its own, read from the config"
    return Diagnostic("cycle", f"'{reader}' is made of itself: {cycle}", span, hint, also=also if name != reader else ())


def waiting(
    name: str, reader: str, formulas: Mapping[str, Expression], seen: frozenset[str] = frozenset()
) -> Iterator[list[str]]:
    """Yield each list of sizes from ``name`` to ``reader`` in which each size reads the next.

    ``formulas`` maps sizes to the formulas of their values; ``seen`` are sizes that the list cannot have again.
    """
    if name == reader:
        yield [name]
    elif name in formulas and name not in seen:
        for inner, _ in names(formulas[name]):
            for rest in waiting(inner, reader, formulas, seen | {name}):
                yield [name, *rest]


def early_value(found: Diagnostic, entry: Entry, known: Mapping[str, Any], ahead: Sequence[Sequence[Entry]]) -> Diagnostic:
    """Reword a finding about an unknown value if a later entry binds that value.

    Args:
        found: The finding.
        entry: The entry that reads the value.
        known: Names of the values bound before ``entry``, as keys.
        ahead: The entries that follow ``entry``, then those that follow the entries around it.
    """
    name = found.span.text.strip("'\"") if found.span is not None else ""
    for level, entries in enumerate(ahead):
        for position, maker in enumerate(entries):
            if name in assigned([maker]):
                between = [entry, *entries[: position + 1]] if level == 0 else []
                return _early(found, name, maker, between, known)
    return found


def _early(found: Diagnostic, name: str, maker: Entry, between: Sequence[Entry], known: Mapping[str, Any]) -> Diagnostic:
    own = assigned(between[:1]) - known.keys()
    made, chain = set(own), []
    for entry in between[1:]:
        if reads(entry) & made:
            made |= assigned([entry])
            chain.append(entry)
    if maker not in chain or not own:
        also = (Label(maker.span, f"'{name}' is made here"),)
        return replace(found, code="used-too-early", message=f"value '{name}' is read before it is made", hint=EARLY, also=also)
    labels = tuple(Label(entry.span, f"reads what is made above, and makes {_listed(assigned([entry]))}") for entry in chain)
    message = f"'{between[0].path.text}' waits for itself: it reads '{name}', which is made of {_listed(own)}"
    return replace(found, code="cycle", message=message, hint="which of them does the model compute first?", also=labels)


def _listed(found: frozenset[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(found))


def reads(entry: Entry) -> frozenset[str]:
    """Names of all values that an entry reads, including those that are bound by entries inside it."""
    match entry:
        case Faulty():
            return frozenset()
        case OperatorEntry():
            return frozenset(_names(value for field, value in entry.fields.items() if field not in ("to", "fold")))
        case BlockCall():
            given = (value for field, value in entry.common.items() if field not in ("to", "from"))
            return frozenset([*_names(given), *_names(entry.arguments)])
        case Repeat():
            of = {entry.of.text} if entry.of is not None else frozenset()
            return frozenset().union(of, *map(reads, entry.body))
        case Group():
            weights = (entry.weights,) if entry.weights is not None else ()
            return frozenset().union(_names([entry.arguments, weights]), *map(reads, entry.body))


def _names(values: Any) -> Iterator[str]:
    for value in values:
        for name in value if isinstance(value, tuple) else ():
            if isinstance(name, Name):
                yield name.text


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
