"""build: :class:`~symflops.ir.spec.Spec` -> :class:`~symflops.ir.graph.Graph`.

Blocks are expanded, names resolved, widths and streams inferred and checked. Conditions on sizes stay conditions: an operator
carries its guard, and a name that a condition rebinds becomes a choice between two values. Conditions on the index of a
repeat cut it into segments (:mod:`symflops.build.segments`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sympy import Expr, Integer, Symbol

from symflops.build.entries import EntryPlacer
from symflops.build.roles import with_roles
from symflops.build.scopes import ABSENT, Binding, Frame, Journaled, fields_read
from symflops.build.services import Services, services_of
from symflops.build.streams import Streams, declared_as
from symflops.formula.definitions import Definitions
from symflops.formula.domain import Setting, known
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import Expression, names as letters, parse_expression
from symflops.formula.functions import Whole, flag_symbol, position_symbol, size_symbol
from symflops.formula.state import PREDICTED, WITHOUT, State
from symflops.formula.truth import NO, YES, Truth
from symflops.ir.graph import Graph, Limit
from symflops.ir.index_sets import ONCE
from symflops.ir.patterns import Path
from symflops.ir.spec import InputSpec, Name, Spec
from symflops.ops.kind import symbol_or_value
from symflops.read.definition_order import early_size
from symflops.support.findings import Diagnostic, Label, Reporter, SpecError, did_you_mean


def build(spec: Spec, fixed: Mapping[str, Any] | None = None, patterns: Sequence[str] = (), state: State = WITHOUT) -> Graph:
    """Build the graph of ``spec``.

    Args:
        spec: The spec.
        fixed: Known sizes by letter; all others stay symbols.
        patterns: Patterns of a regime. If one selects iterations of a repeat, the repeat is cut.
        state: What the calls of the regime keep and continue.

    Raises:
        SpecError: with every finding.
        UnknownSizeError: the structure of the graph depends on a size that is not fixed.
    """
    graph, report = build_through(spec, fixed, patterns, state)
    report.check()
    return graph


def build_through(
    spec: Spec, fixed: Mapping[str, Any] | None = None, patterns: Sequence[str] = (), state: State = WITHOUT
) -> tuple[Graph, Reporter]:
    """Build the graph of ``spec`` without its faulty entries; return (graph, findings about these entries).

    Raises:
        SpecError: sizes or streams are wrong, or there are too many operators.
        UnknownSizeError: as :func:`build`.
    """
    report, definitions, sizes = Reporter(), Definitions(), size_names(spec, fixed or {})
    names = derived_names(spec, sizes, definitions, report)
    streams = Streams(spec, names, report)
    if PREDICTED in state.predicted.free_symbols:
        streams.declare_head()
    report.check()
    services = services_of(spec, report, definitions, streams, tuple(patterns))
    names = {word: value for word, value in state.words.items() if word not in streams.variables} | names
    frame = Frame(Path(()), names, Journaled(), [], sizes=names, state=state)
    inputs = tuple(found for item in spec.inputs if (found := declare_input(item, frame, services)) is not None)
    for name, expression in spec.requires:
        demand(spec, name, expression, frame, services)
    expected = tuple((services.evaluator.condition(expression, frame), name.text) for name, expression in spec.expected)
    EntryPlacer(services).place(spec.graph, frame)
    if services.limit.exceeded:
        raise SpecError([services.limit.exceeded])
    report.extend(services.stacks.left())
    outputs = find_outputs(spec, frame, services)
    symbols = tuple((size.name.text, cost_symbol(sizes[size.name.text])) for size in spec.sizes)
    graph = services.graph
    built = Graph(
        spec=spec, values=tuple(graph.values), body=tuple(frame.nodes), inputs=inputs, outputs=outputs, sizes=symbols,
        definitions=tuple(definitions.pairs.items()), streams=tuple(streams.declared.items()),
        lengths=tuple(streams.lengths.values()), fixed=tuple((fixed or {}).items()), chosen=tuple(graph.chosen.items()),
        listed=tuple((path, index, selectors) for (path, index), selectors in graph.listed.items()),
        returned=frozenset(graph.returned), left_out=tuple(graph.left_out), lists=tuple(graph.lists),
        fits=tuple(graph.fits.items()), limits=tuple(graph.limits),
        expected=expected,
    )  # fmt: skip
    return with_roles(built), report


def size_names(spec: Spec, fixed: Mapping[str, Any]) -> dict[str, Any]:
    """Map each size to its value in expressions: as fixed, else a symbol, condition or unknown setting."""
    names: dict[str, Any] = {letter: known(value) for letter, value in spec.constants}
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


def cost_symbol(value: Any) -> Expr:
    """The symbol of a size as formulas of costs have it, or its number if it is fixed."""
    if isinstance(value, Setting):
        return value.symbol
    if isinstance(value, Truth):
        return value.expr
    return value if isinstance(value, Expr) else Integer(0)


def derived_names(spec: Spec, sizes: Mapping[str, Any], definitions: Definitions, report: Reporter) -> dict[str, Any]:
    """Map sizes and derived sizes to values; a formula's value is a symbol that ``definitions`` has."""
    names = dict(sizes)
    places, formulas = {name.text: name for name, _ in spec.derived}, {name.text: formula for name, formula in spec.derived}
    for name, expression in spec.derived:
        if name.text in names:
            _report_duplicate(name, spec, report)
            continue
        early = [(letter, span) for letter, span in letters(expression) if letter in formulas and letter not in names]
        for letter, span in early:
            rule = "a derived size sees those above it"
            report.add(early_size(letter, span, places, formulas, name.text, rule))
        value = size_symbol(name.text) if early else _derived(name, expression, names, report)
        if not early and isinstance(value, Expr) and not value.is_Number:
            symbol = size_symbol(name.text) if value.is_integer else Symbol(name.text, rational=True)
            definitions.define(symbol, value)
            value = symbol
        names[name.text] = value
    return names


def _report_duplicate(name: Name, spec: Spec, report: Reporter) -> None:
    """Report a derived size with the letter of another size."""
    first = next((size.name for size in spec.sizes if size.name.text == name.text), name)
    also = (Label(first.span, "the size"),) if first is not name else ()
    report.error("duplicate-name", f"'{name}' is a size already", name.span, "choose another letter", also=also)


def _derived(name: Name, expression: Expression, names: Mapping[str, Any], report: Reporter) -> Any:
    """Evaluate the formula of a derived size; if it is faulty, report it and return a symbol."""
    with report.collecting():
        return evaluate(expression, names)
    return size_symbol(name.text)


def declare_input(item: InputSpec, frame: Frame, services: Services) -> tuple[str, int, Truth] | None:
    """Bind a model input; return (name, value id, condition under which it is present).

    None if the graph has no value for it: it has no stream, is never present, or is faulty.
    """
    if item.stream is None:
        return None
    declared, name = services.streams.declared, item.name.text
    stream = declared.get(item.stream.text)
    if stream is None:
        hint = did_you_mean(item.stream.text, declared, declared_as(item.stream.text))
        services.report.error("unknown-stream", f"there is no stream '{item.stream}'", item.stream.span, hint)
        services.graph.poison([name], frame)
        return None
    present = services.evaluator.condition(item.when, frame)
    width = symbol_or_value(services.evaluator.value(item.width, frame)) if item.width else None
    if width is not None and not (isinstance(width, Expr) and width.is_integer):
        message = f"the width of '{item.name}' is not a whole number"
        hint = "a size is a decimal number if its default has a point: write 4, not 4.0; // and int(...) round"
        services.report.error("bad-field", message, item.width.span if item.width else item.name.span, hint)
        services.graph.poison([name], frame)
        return None
    if present is NO:
        frame.values[name] = ABSENT
        return None
    value = services.graph.value(name, stream, width, item.name.span)
    frame.values[name] = Binding(value, present)
    return name, value.id, present


def find_outputs(spec: Spec, frame: Frame, services: Services) -> tuple[tuple[str, int], ...]:
    """List the outputs that are present, as (name, value id).

    Reports an output that is not bound, and all outputs if every one is absent.
    """
    outputs = []
    left_out = [output.text for output in spec.outputs if frame.values.get(output.text) is ABSENT]
    for output in spec.outputs:
        binding = frame.values.get(output.text, ABSENT)
        if services.graph.is_poisoned(binding) or (output.text in left_out and len(left_out) < len(spec.outputs)):
            continue
        if binding.value is None:
            known = [name for name, there in frame.values.items() if there.value is not None]
            hint = did_you_mean(output.text, known, f"values at the end: {', '.join(known[-8:]) or 'none'}")
            services.report.error("unknown-value", f"output '{output}' is not a value of the graph", output.span, hint)
        else:
            outputs.append((output.text, binding.value.id))
    return tuple(outputs)


VALUE = re.compile(r"\{([^{}]*)\}")


def demand(spec: Spec, name: Name, expression: Expression, frame: Frame, services: Services) -> None:
    """Add a condition that the spec demands to the graph, as one on sizes or on lengths of a batch.

    ``name`` is the error text if the condition does not hold.
    """
    variables = services.streams.variables
    inside = frame.inside(names=frame.names | variables)
    with services.report.collecting():
        condition = condition_of(expression, inside, services)
        services.definitions.require(condition)
        if any(symbol in condition.expr.free_symbols for symbol in variables.values()):
            services.graph.limits.append(limit(name, expression, inside, services))
        elif not any(letter in variables for letter, _ in letters(expression)) or condition is not YES:
            fields = f" ({', '.join(fields_read(spec, expression))})" if condition is NO else ""  # else its symbols name them
            services.graph.demand(condition, f"{name.text.replace('_', ' ')}: '{expression.text}' does not hold{fields}")


def limit(name: Name, expression: Expression, frame: Frame, services: Services) -> Limit:
    """Convert ``expression`` to a condition on lengths of one index set, or of a batch as a whole.

    ``name`` is the error text if the condition does not hold, with expressions in braces.

    Raises:
        SpecError: it compares lengths of several index sets, or braces in ``name`` hold no whole number.
    """
    condition = condition_of(expression, frame, services)
    known = {length.symbol: length.items for length in services.streams.lengths.values()}
    whole = condition.expr.has(Whole)
    alone = condition.expr.replace(Whole, lambda *_: Integer(0)) if whole else condition.expr
    sets = list(dict.fromkeys(known[symbol] for symbol in sorted(alone.free_symbols & known.keys(), key=str)))
    if len(sets) + whole > 1:
        message = f"'{expression.text}' compares items of several sets, or of a batch"
        hint = "write a condition for each of them; longest(x) and together(x) are of a batch"
        raise SpecError([Diagnostic("length-of-items", message, expression.span, hint)])
    values = tuple(values_in(name, frame, services))
    words = [word.replace("{", "{{").replace("}", "}}") for word in VALUE.split(name.text)[::2]]
    text = words[0] + "".join(f"{{{number}}}{word}" for number, word in enumerate(words[1:]))
    return Limit(ONCE if whole else sets[0], condition, text, values)


def condition_of(expression: Expression, frame: Frame, services: Services) -> Truth:
    """Evaluate ``expression``, which may call ``longest`` and ``together``, as a condition."""
    found = evaluate(expression, frame.names, calls_of(services))
    return found if isinstance(found, Truth) else services.evaluator.condition(expression, frame)


def calls_of(services: Services) -> Mapping[str, Callable[..., Any]]:
    """The functions of expressions that reduce a length over the batch, by name: maximum and sum."""
    return {"longest": services.streams.evaluate_longest, "together": services.streams.evaluate_together}


def values_in(name: Name, frame: Frame, services: Services) -> Iterator[Expr]:
    """Evaluate each expression in braces in ``name`` to a whole number."""
    for text in VALUE.findall(name.text):
        value = symbol_or_value(evaluate(parse_expression(text, name.span), frame.names, calls_of(services)))
        if not (isinstance(value, Expr) and value.is_integer):
            hint = "write an expression of sizes, such as {2*X}"
            raise SpecError([Diagnostic("bad-field", f"'{{{text}}}' is no whole number", name.span, hint)])
        yield value
