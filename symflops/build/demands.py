"""Conditions of a spec under ``requires``: on sizes, which refuse a config, and on lengths, which refuse an item of a batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sympy import Expr, Integer

from symflops.build.scopes import Frame
from symflops.build.services import Services
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import Expression, names as letters, parse_expression
from symflops.formula.functions import Whole
from symflops.formula.truth import NO, YES, Truth
from symflops.ir.graph import Limit
from symflops.ir.index_sets import ONCE
from symflops.ir.spec import Name, Spec
from symflops.ops.kind import symbol_or_value
from symflops.support.findings import Diagnostic, SpecError

VALUE = re.compile(r"\{([^{}]*)\}")


def demand(spec: Spec, name: Name, expression: Expression, frame: Frame, services: Services) -> None:
    """Add a condition that the spec demands to the graph, as one on sizes or on lengths of a batch.

    ``name`` is the error text if the condition does not hold.
    """
    variables = services.streams.variables
    inside = frame.inside(names=frame.names | variables)
    try:
        condition = condition_of(expression, inside, services)
        if any(symbol in condition.expr.free_symbols for symbol in variables.values()):
            services.graph.limits.append(limit(name, expression, inside, services))
        elif not any(letter in variables for letter, _ in letters(expression)) or condition is not YES:
            fields = f" ({', '.join(fields_read(spec, expression))})" if condition is NO else ""  # else its symbols name them
            services.graph.demand(condition, f"{name.text.replace('_', ' ')}: '{expression.text}' does not hold{fields}")
    except SpecError as error:
        for diagnostic in error.diagnostics:
            services.report.add(diagnostic)


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


def fields_read(spec: Spec, expression: Expression) -> list[str]:
    """Config fields that an expression depends on, directly or through derived sizes."""
    formulas = {name.text: formula for name, formula in spec.derived}
    keys = {size.name.text: size.keys[0] for size in spec.sizes}
    found: dict[str, None] = {}
    waiting = [name for name, _ in letters(expression)]
    while waiting:
        name = waiting.pop(0)
        if name in keys:
            found[keys[name]] = None
        elif name in formulas:
            waiting += [inner for inner, _ in letters(formulas.pop(name))]
    return list(found)
