"""Constraints on a model's sizes: a sequence is popped as often as it is pushed to, and operators fit each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sympy import Add, Expr, Integer

from symflops.derive.iterations import all_iterations
from symflops.formula import formula
from symflops.formula.functions import AtLeast, Excess, Modulo, Whole, is_index
from symflops.formula.polynomial import Polynomial
from symflops.formula.words import said
from symflops.ir.batch import Requirement
from symflops.ir.graph import Graph
from symflops.ir.nodes import Loop, Need, Node, Operator, Pop, Push
from symflops.ir.program import Field
from symflops.lower.formulas import Formulas
from symflops.lower.inner_lengths import remainders
from symflops.support.findings import Diagnostic, Span, SpecError


def requirements(graph: Graph, formulas: Formulas) -> tuple[Requirement, ...]:
    """The conditions on sizes that a program stores; a config that violates one is refused.

    Raises:
        SpecError: the lengths of a batch decide how many values are left on a stack of loops.
    """
    lengths = {length.symbol for length in graph.lengths}
    found = []
    for name, changes in _changes(graph).items():
        number = Polynomial.of(Add(*(change for change, _ in changes)))
        if number.expr.free_symbols & lengths:
            message = f"the lengths of a batch decide how many values are left on the stack '{name}'"
            hint = "the repeat that takes them must run as often as the one that puts them there"
            raise SpecError([Diagnostic("stack-left", message, changes[-1][1], hint)])
        if number:
            found.append(Requirement(formulas.plain(number), _text(name)))
    found += [Requirement(formulas.plain(number), text + _read(graph, number)) for number, text in _fits(graph)]
    return tuple(dict.fromkeys(found))


def least(fields: Iterable[Field], census: Mapping[str, Any]) -> Iterator[Requirement]:
    """Yield a lower bound for each size whose default is computed from others and whose class needs one.

    Below that value, the class runs differently.

    Args:
        fields: The sizes of a program.
        census: Class -> facts about its config fields, the ``least`` value among them.
    """
    for field in fields:
        guards = (entry.get("guarded", {}).get(key, {}) for entry in census.values() for key in field.keys)
        bounds = [guard["least"] for guard in guards if "least" in guard]
        computed = isinstance(field.default, formula.Formula) and not isinstance(field.default, formula.Num)
        if bounds and computed and not field.nullable:
            bound = max(bounds)
            below = formula.Prod((formula.MINUS, formula.Sym(field.letter)))
            lacking = formula.Apply("excess", (formula.Sum((formula.number(bound), below)),))
            yield Requirement(lacking, f"'{field.keys[0]}' would be below {bound}, with which the model runs otherwise")


def _fits(graph: Graph) -> Iterator[tuple[Polynomial, str]]:
    """Yield (polynomial in sizes that must be 0, message if it is not) for the whole graph."""
    for number, text in graph.fits:
        demanded = Polynomial.of(number)
        if demanded and not demanded.expr.free_symbols & {length.symbol for length in graph.lengths}:
            yield demanded, text
    varies = {length.symbol for length in graph.lengths}
    for _, guard, rest in remainders(graph):
        demanded = Polynomial.of(rest.xreplace(dict(graph.definitions)) * guard.expr)
        if demanded and demanded.expr.free_symbols.isdisjoint(varies):
            top, below = rest.args if isinstance(rest, Modulo) else (rest, Integer(1))
            yield demanded, f"the length {said(top)} does not divide by {said(below)}"
    for operator in graph.operators():
        for need in operator.needs:
            if number := _missing(graph, operator, need):
                yield number, f"'{operator.path}' leaves too few rows, {said(need.length)}"
        for number, text in operator.fits:
            demanded = Polynomial.of(number * operator.guard.expr)
            if demanded:
                yield demanded, text


def _missing(graph: Graph, operator: Operator, need: Need) -> Polynomial | None:
    """The number of rows that are missing for ``need``, as a polynomial in sizes; 0 if none.

    None if lengths or the iteration of a loop decide it.
    """
    formulas = dict(graph.definitions)
    symbols = need.length.free_symbols | need.of.free_symbols | operator.guard.expr.free_symbols
    varies = {length.symbol for length in graph.lengths}
    if not symbols.isdisjoint(varies) or any(is_index(symbol.name) for symbol in symbols) or need.length.has(Whole):
        return None
    length = need.length.xreplace(formulas)
    lacking = Excess(need.least - length) * AtLeast(need.of, Integer(1)) + Excess(-length)  # 0 rows may become 0 rows
    return Polynomial.of(lacking * operator.guard.expr)


def _read(graph: Graph, number: Polynomial) -> str:
    """The config keys on which ``number`` depends, as text in parentheses; empty if there are none."""
    formulas, keys = dict(graph.definitions), {size.name.text: size.keys[:1] for size in graph.spec.sizes}
    symbols, found = list(number.expr.free_symbols), set[str]()
    while symbols:
        symbol = symbols.pop()
        symbols += formulas[symbol].free_symbols if symbol in formulas else ()
        found.update(keys.get(symbol.name.removeprefix("?"), ()))
    return f" ({', '.join(sorted(found))})" if found else ""


def _changes(graph: Graph) -> dict[str, list[tuple[Expr, Span | None]]]:
    """Stack name -> (number of values, place) for each push, and with a negative number for each pop."""
    found: dict[str, list[tuple[Expr, Span | None]]] = {}
    regions: list[tuple[tuple[Node, ...], Expr]] = [(graph.body, Integer(1))]
    for nodes, times in regions:
        for node in nodes:
            if isinstance(node, (Push, Pop)):
                change = times * node.guard.expr if isinstance(node, Push) else -times * node.guard.expr
                found.setdefault(node.sequence, []).append((change, node.span))
            elif isinstance(node, Loop):
                regions += [(body, times * all_iterations(node, bracket)) for bracket, body in node.classes]
    return found


def _text(name: str) -> str:
    return f"it does not take as many values from the stack '{name}' as it puts there"
