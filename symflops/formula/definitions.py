"""Formulas of derived sizes, by which expressions are compared and divided."""

from __future__ import annotations

from sympy import Expr, Symbol

from symflops.formula.polynomial import Polynomial
from symflops.formula.quotients import has_quotients, in_one_spelling, remainders_of
from symflops.formula.truth import Truth
from symflops.formula.words import said


class Definitions:
    """Formulas of derived sizes; compares and divides expressions after substituting these formulas."""

    def __init__(self) -> None:
        self.pairs: dict[Symbol, Expr] = {}
        self.remainders: dict[Symbol, Expr] = {}
        self._known: dict[Expr, Polynomial] = {}
        self._quotients: dict[tuple[Expr, Expr], Expr | None] = {}

    def define(self, symbol: Symbol, value: Expr) -> None:
        """Define the derived size ``symbol`` as ``value``."""
        self.pairs[symbol] = value
        self._known.clear()
        self._quotients.clear()

    def require(self, condition: Truth) -> None:
        """Compare lengths under ``condition``, which every config and batch fulfils."""
        self.remainders.update(remainders_of(condition))

    def expand(self, expr: Expr) -> Polynomial:
        """The polynomial of ``expr`` with every derived size replaced by its formula."""
        if expr not in self._known:
            value = expr
            while value.free_symbols & self.pairs.keys():
                value = value.xreplace(self.pairs)
            self._known[expr] = Polynomial.of(value)
        return self._known[expr]

    def equal(self, a: Expr, b: Expr) -> bool:
        """Whether two expressions have equal polynomials once derived sizes are replaced by their formulas."""
        if a == b:
            return True
        one, other = self.expand(a), self.expand(b)
        if one == other or not (has_quotients(one.expr) or has_quotients(other.expr)):
            return one == other
        return in_one_spelling(one.expr, self.remainders) == in_one_spelling(other.expr, self.remainders)

    def formulas_of(self, *values: Expr | None) -> str:
        """Return the definitions of derived sizes in ``values`` as text for a finding: ``a is b * c, ...``."""
        symbols = {symbol for value in values if value is not None for symbol in value.free_symbols}
        return ", ".join(f"{said(symbol)} is {said(value)}" for symbol, value in self.pairs.items() if symbol in symbols)

    def divide(self, a: Expr, b: Expr) -> Expr | None:
        """``a / b`` if the quotient is a polynomial, else None."""
        if (a, b) not in self._quotients:
            found = Polynomial.of(a).quotient(Polynomial.of(b))
            found = self.expand(a).quotient(self.expand(b)) if found is None else found
            self._quotients[a, b] = None if found is None else found.expr
        return self._quotients[a, b]
