"""Formulas of derived sizes, with which expressions are compared and divided."""

from __future__ import annotations

from sympy import Expr, Symbol

from symflops.algebra.polynomial import Polynomial
from symflops.algebra.words import said


class Definitions:
    """The formulas of derived sizes, with which widths are compared and divided."""

    def __init__(self) -> None:
        self.pairs: dict[Symbol, Expr] = {}
        self._known: dict[Expr, Polynomial] = {}
        self._quotients: dict[tuple[Expr, Expr], Expr | None] = {}

    def define(self, symbol: Symbol, value: Expr) -> None:
        """Let ``symbol`` stand for ``value``."""
        self.pairs[symbol] = value
        self._known.clear()
        self._quotients.clear()

    def expand(self, expr: Expr) -> Polynomial:
        """``expr`` with every derived size replaced by its formula, multiplied out."""
        if expr not in self._known:
            value = expr
            while value.free_symbols & self.pairs.keys():
                value = value.xreplace(self.pairs)
            self._known[expr] = Polynomial.of(value)
        return self._known[expr]

    def equal(self, a: Expr, b: Expr) -> bool:
        """Whether two expressions are the same number for all sizes."""
        return a == b or self.expand(a) == self.expand(b)

    def formulas_of(self, *values: Expr | None) -> str:
        """The formulas of the derived sizes in some expressions, as a note of a finding."""
        symbols = {symbol for value in values if value is not None for symbol in value.free_symbols}
        return ", ".join(f"{said(symbol)} is {said(value)}" for symbol, value in self.pairs.items() if symbol in symbols)

    def divide(self, a: Expr, b: Expr) -> Expr | None:
        """``a / b`` if it is a polynomial, else None."""
        if (a, b) not in self._quotients:
            self._quotients[a, b] = self._divided(a, b)
        return self._quotients[a, b]

    def _divided(self, a: Expr, b: Expr) -> Expr | None:
        plain = Polynomial.of(a).quotient(Polynomial.of(b))
        if plain is None:
            plain = self.expand(a).quotient(self.expand(b))
        return None if plain is None else plain.expr
