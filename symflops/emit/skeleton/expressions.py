"""Expressions as Python code of a skeleton: letters are names, functions of the language are Python's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr, Symbol, fraction, together
from sympy.core.symbol import Str
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from symflops.formula import functions as fn
from symflops.formula.functions import sizes_in

FORMS = {
    "FloorDiv": "({} // {})", "CeilDiv": "-(-{} // {})", "Modulo": "({} % {})", "Least": "min({}, {})", "Most": "max({}, {})",
    "Excess": "max(0, {})", "AtLeast": "({} >= {})", "Equal": "({} == {})",
}  # fmt: skip


class GapError(Exception):
    """Something of a spec that has no obvious form in PyTorch; the text says what."""


class Code(StrPrinter):  # type: ignore[misc]
    """Prints whole numbers as Python code; items of a batch are equally long."""

    printmethod = "_code"

    def _print_Symbol(self, expr: Expr) -> str:
        return name_of(expr)

    def _print_Add(self, expr: Expr, order: object = None) -> str:
        return self.quotient(expr) or str(super()._print_Add(expr))

    def _print_Mul(self, expr: Expr) -> str:
        return self.quotient(expr) or str(super()._print_Mul(expr))

    def quotient(self, expr: Expr) -> str:
        """A sum or a product of fractions as one division of whole numbers; empty if there are no fractions."""
        above, below = fraction(together(expr))
        return "" if below == 1 else f"({self._print(above)}) // {self.parenthesize(below, PRECEDENCE['Pow'])}"

    def parenthesize(self, item: Expr, level: int, strict: bool = False) -> str:
        """``item`` as text that an operator of precedence ``level`` may stand beside."""
        if type(item).__name__ == "Longest":
            return self.parenthesize(item.args[0], level, strict)
        text = str(super().parenthesize(item, level, strict))
        return f"({text})" if level >= PRECEDENCE["Pow"] and type(item).__name__ in ("Together", "CeilDiv") else text

    def _print_Function(self, expr: Expr) -> str:
        kind = type(expr).__name__
        if kind == "Longest":
            return str(self._print(expr.args[0]))
        if kind == "Together":
            return f"{items_name(expr.args[0].name)} * {self.parenthesize(expr.args[1], PRECEDENCE['Mul'])}"
        if kind not in FORMS:
            raise GapError(f"{kind.lower()} of a list")
        parts = [self.parenthesize(part, PRECEDENCE["Pow"]) for part in expr.args]
        return FORMS[kind].format(*parts)


def items_name(items: str) -> str:
    """The name of the number of items of an index set in a skeleton."""
    return {"samples": "batch", "once": "1"}.get(items, f"n_{items}")


def name_of(symbol: Symbol) -> str:
    """The name of a size, a length or a loop index in a skeleton."""
    head, mark, tail = str(symbol.name).removeprefix("?").partition("@")
    return f"{head or 'i'}_{tail.strip('_')}" if mark and tail.strip("_") else head


def code(expr: Expr) -> str:
    """``expr`` as Python code.

    Raises:
        GapError: it reads a list of a config.
    """
    return str(Code().doprint(expr))


class Known:
    """The values of all sizes of a graph, by which conditions are decided and numbers of iterations counted."""

    def __init__(self, values: Mapping[Symbol, Any], definitions: Mapping[Symbol, Expr]) -> None:
        self.values, self.definitions = values, definitions

    def resolved(self, expr: Expr) -> Expr:
        """``expr`` with all known sizes as numbers."""
        while expr.free_symbols & self.definitions.keys():
            expr = expr.xreplace(dict(self.definitions))
        expr = expr.xreplace(self.values)
        return expr.replace(
            lambda one: isinstance(one, fn.Equal) and all(isinstance(a, Str) for a in one.args), lambda _: fn.ZERO
        )

    def number(self, expr: Expr) -> int:
        """The value of ``expr``.

        Raises:
            GapError: it is no whole number, or depends on something that is no size.
        """
        found = self.resolved(expr)
        if not found.is_Integer:
            raise GapError(f"the structure depends on {', '.join(sizes_in(found)) or found}")
        return int(found)
