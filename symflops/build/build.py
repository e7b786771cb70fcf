"""build: :class:`~symflops.model.spec.Spec` -> :class:`~symflops.model.graph.Graph`.

Blocks are expanded, names resolved, widths and streams inferred and checked. Conditions on sizes stay conditions: an operator
carries its guard, and a name that a condition rebinds becomes a choice between two values. Conditions on the index of a
repeat cut
it into segments (:mod:`symflops.build.repeats`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sympy import Expr, Integer, Symbol

from symflops.algebra.domain import Setting, known
from symflops.algebra.evaluate import evaluate
from symflops.algebra.functions import flag_symbol, position_symbol, size_symbol
from symflops.algebra.truth import NO, Truth
from symflops.build.builder import Builder
from symflops.build.limits import Oversized
from symflops.build.scopes import ABSENT, Binding, Frame
from symflops.build.streams import Streams
from symflops.diagnostics.findings import Label, Reporter, SpecError, did_you_mean
from symflops.frontend.definition_order import early_size
from symflops.model.graph import Graph
from symflops.model.needs_size import NeedsSize, or_needs_size
from symflops.model.nodes import Value
from symflops.model.path import Path
from symflops.model.spec import Spec
from symflops.ops.kind import Definitions, plain
from symflops.syntax.expression import Expression
from symflops.syntax.expression import names as letters


def build(spec: Spec, fixed: Mapping[str, Any] | None = None, patterns: Sequence[str] = ()) -> Graph | NeedsSize:
    """Build the graph of ``spec``, or answer with the size that its structure needs.

    Args:
        spec: The spec as it was read.
        fixed: Known sizes by letter; all others stay symbols.
        patterns: Those of a regime. If one selects iterations of a repeat, the repeat is cut.

    Raises:
        SpecError: with every finding.
    """
    found = build_through(spec, fixed, patterns)
    if isinstance(found, NeedsSize):
        return found
    graph, report = found
    report.check()
    return graph


@or_needs_size
def build_through(spec: Spec, fixed: Mapping[str, Any] | None = None, patterns: Sequence[str] = ()) -> tuple[Graph, Reporter]:
    """Build the graph of ``spec`` without its faulty entries, and collect the findings about those.

    Raises:
        SpecError: sizes or streams are wrong, or there are too many operators.
    """
    report = Reporter()
    definitions = Definitions()
    sizes = size_names(spec, fixed or {})
    names = dict(sizes)
    derive_names(spec, names, definitions, report)
    streams = Streams(spec, names, report)
    report.check()
    builder = Builder(report, definitions, streams, patterns)
    builder.keys = {key: size.name.text for size in spec.sizes for key in size.keys}
    frame = Frame(Path(()), names, {}, [], sizes=names)
    inputs = declare_inputs(spec, frame, builder)
    try:
        builder.entries(spec.graph, frame)
    except Oversized as oversized:
        raise SpecError([oversized.told(spec)]) from None
    for diagnostic in builder.stacks.left():
        report.add(diagnostic)
    outputs = []
    for output in spec.outputs:
        binding = frame.values.get(output.text, ABSENT)
        if binding.value is not None and binding.value.id in builder.poisoned:
            continue
        if binding.value is None:
            known = [name for name, there in frame.values.items() if there.value is not None]
            hint = did_you_mean(output.text, known, f"values at the end: {', '.join(known[-8:]) or 'none'}")
            report.error("unknown-value", f"output '{output}' is not a value of the graph", output.span, hint)
        else:
            outputs.append((output.text, binding.value.id))
    graph = Graph(
        spec=spec,
        values=tuple(builder.values),
        body=tuple(frame.nodes),
        inputs=inputs,
        outputs=tuple(outputs),
        sizes=tuple((size.name.text, symbol_of(sizes[size.name.text])) for size in spec.sizes),
        definitions=tuple(definitions.pairs.items()),
        streams=tuple(streams.declared.items()),
        lengths=tuple(streams.lengths.values()),
        fixed=tuple((fixed or {}).items()),
        chosen=tuple(builder.chosen.items()),
        listed=tuple((path, index, found) for (path, index), found in builder.listed.items()),
        returned=frozenset(builder.returned),
    )
    return graph, report


def size_names(spec: Spec, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """What each size means in an expression: a symbol, a setting, or the value that it is fixed to."""
    names: dict[str, Any] = {}
    for size in spec.sizes:
        name = size.name.text
        if name in fixed:
            names[name] = known(fixed[name])
        elif size.kind in ("number", "entries") and not size.optional:
            names[name] = size_symbol(name)
        elif size.kind == "position" and not size.optional:
            names[name] = position_symbol(name)
        elif size.kind == "flag":
            names[name] = Truth.of(flag_symbol(name))
        elif size.kind == "rational":
            names[name] = Symbol(name, rational=True, nonnegative=True)
        else:
            names[name] = Setting(name, size.kind, size_symbol(name), size.optional)
    return names


def symbol_of(meaning: Any) -> Expr:
    """The symbol that stands for a size in costs, or its fixed number."""
    if isinstance(meaning, Setting):
        return meaning.symbol
    if isinstance(meaning, Truth):
        return meaning.expr
    return meaning if isinstance(meaning, Expr) else Integer(0)


def derive_names(spec: Spec, names: dict[str, Any], definitions: Definitions, report: Reporter) -> None:
    """Add the derived sizes to ``names``; a formula keeps its own letter, anything else is put in its place."""
    places, formulas = {name.text: name for name, _ in spec.derived}, {name.text: formula for name, formula in spec.derived}
    for name, expression in spec.derived:
        if name.text in names:
            known = next((size.name for size in spec.sizes if size.name.text == name.text), name)
            also = (Label(known.span, "the size"),) if known is not name else ()
            report.error("duplicate-name", f"'{name}' is a size already", name.span, "choose another letter", also=also)
            continue
        early = [(letter, span) for letter, span in letters(expression) if letter in formulas and letter not in names]
        if early:
            for letter, span in early:
                rule = "a derived size sees those above it"
                report.add(early_size(letter, span, places, formulas, name.text, rule))
            names[name.text] = size_symbol(name.text)
            continue
        try:
            value = evaluate(expression, names)
        except SpecError as error:
            for diagnostic in error.diagnostics:
                report.add(diagnostic)
            value = size_symbol(name.text)
        if isinstance(value, Expr) and not value.is_Number:
            symbol = size_symbol(name.text) if value.is_integer else Symbol(name.text, rational=True)
            definitions.define(symbol, value)
            value = symbol
        names[name.text] = value


def declare_inputs(spec: Spec, frame: Frame, builder: Builder) -> tuple[tuple[str, int, Truth], ...]:
    """Make the values that the model receives."""
    inputs = []
    for item in spec.inputs:
        if item.stream is None:
            continue
        stream = builder.streams.declared.get(item.stream.text)
        if stream is None:
            hint = did_you_mean(item.stream.text, builder.streams.declared, "declare it under 'streams'")
            builder.report.error("unknown-stream", f"there is no stream '{item.stream}'", item.stream.span, hint)
            builder.poison([item.name.text], frame)
            continue
        present = builder.condition(item.when, frame)
        width = builder.value(item.width, frame) if item.width else None
        width = plain(width)
        if width is not None and not (isinstance(width, Expr) and width.is_integer):
            message = f"the width of '{item.name}' is not a whole number"
            builder.report.error("bad-field", message, item.width.span if item.width else item.name.span)
            width = None
        if present is NO:
            frame.values[item.name.text] = ABSENT
            continue
        value = builder.new_value(item.name.text, stream, width, item.name.span)
        frame.values[item.name.text] = Binding(value, present)
        inputs.append((item.name.text, value.id, present))
    return tuple(inputs)


__all__ = ["Expression", "Value", "build"]
