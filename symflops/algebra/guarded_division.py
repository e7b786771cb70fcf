"""Quotients in the branches of a condition: ``D//C if C > 0 else D`` has a value where ``C`` is 0, as in Python."""

from __future__ import annotations

from typing import Any

from sympy import Expr, Integer, Symbol

from symflops.algebra import functions as fn
from symflops.algebra.domain import Choice
from symflops.algebra.truth import Truth

QUOTIENTS = (fn.FloorDiv, fn.CeilDiv, fn.Modulo)


def divided_under(condition: Truth, value: Any) -> Any:
    """``value`` where a condition holds; elsewhere it divides by 1, not by what the condition keeps from being 0 or null."""
    if isinstance(value, tuple):
        return tuple(divided_under(condition, item) for item in value)
    if isinstance(value, Choice):
        return Choice(tuple((case, divided_under(condition, item)) for case, item in value.cases))
    if not isinstance(value, Expr) or not value.has(*QUOTIENTS):
        return value
    excluded = {symbol for symbol in condition.expr.free_symbols if excludes_zero(condition, symbol)}

    def guarded(quotient: Expr) -> Expr:
        above, below = quotient.args
        if below.free_symbols.isdisjoint(excluded):
            return quotient
        return type(quotient)(above, 1 + condition.expr * (below - 1))

    return value.replace(lambda found: isinstance(found, QUOTIENTS), guarded) if excluded else value


def excludes_zero(condition: Truth, symbol: Symbol) -> bool:
    """Whether a condition holds for no null, or for no 0, of a size."""
    null = condition.expr.replace(lambda found: isinstance(found, fn.Given) and found.args[0] == symbol, lambda _: Integer(0))
    return bool(null == 0 or null.subs(symbol, 0) == 0)
