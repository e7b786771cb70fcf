"""Formulas of columns as SQL expressions over whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from symflops.diagnostics.errors import SymflopsError
from symflops.emit.code.infix import ATOM, PRODUCT, SUM, UNARY, Printer
from symflops.emit.sql.engines import Engine
from symflops.emit.sql.settled import is_natural
from symflops.model.formula import Apply, Bracket, Formula, Num, Power, TallyOf


class SqlPrinter(Printer):
    """SQL expressions; truth values are 0 and 1. Division rounds down; that of engines rounds towards 0.

    ``names`` are the names of columns; ``wide`` computes beyond 64 bits.
    """

    def __init__(self, engine: Engine, names: Mapping[str, str], wide: bool = False) -> None:
        self.engine, self.names, self.wide = engine, names, wide

    def text(self, formula: Formula) -> str:
        found = super().text(formula)
        return found[1:-1] if isinstance(formula, Power) else found

    def number(self, value: Fraction) -> tuple[str, int]:
        if value.denominator != 1:
            raise SymflopsError("a table of lengths is not priced: the model computes with parts of lengths")
        return str(value.numerator), ATOM if value >= 0 else PRODUCT

    def symbol(self, name: str) -> str:
        found = self.names[name]
        return f"CAST({found} AS {self.engine.wide})" if self.wide else found

    def quoted(self, text: str) -> str:
        raise SymflopsError("a table of lengths is not priced: a length is compared with a text")

    def product(self, factors: tuple[Formula, ...]) -> tuple[str, int]:
        if isinstance(factors[0], Num) and factors[0].value == -1:
            return "-" + " * ".join(self.inside(factor, UNARY) for factor in factors[1:]), PRODUCT
        return " * ".join(self.inside(factor, UNARY) for factor in factors), PRODUCT

    def power(self, formula: Power) -> str:
        base = self.inside(formula.base, UNARY)
        return f"({' * '.join([base] * formula.exponent)})"

    def apply(self, formula: Apply) -> tuple[str, int]:
        match formula.function, formula.arguments:
            case "mod", (top, bottom):
                return self.rest(top, bottom), ATOM
            case "floordiv", (top, bottom):
                return self.divided(top, bottom), ATOM
            case "excess", (one,):
                return f"GREATEST({self.text(one)}, 0)", ATOM
            case "min" | "max" as name, several:
                return f"{'LEAST' if name == 'min' else 'GREATEST'}({', '.join(map(self.text, several))})", ATOM
        raise SymflopsError(f"a table of lengths is not priced: lengths do not go through {formula.function}")

    def rest(self, top: Formula, bottom: Formula) -> str:
        """The rest of a division that rounds down."""
        one, two = self.inside(top, ATOM), self.inside(bottom, ATOM)
        return f"({one} % {two})" if is_natural(top) else f"(({one} % {two} + {two}) % {two})"

    def divided(self, top: Formula, bottom: Formula) -> str:
        """The quotient of a division that rounds down."""
        one, two = self.inside(top, ATOM), self.inside(bottom, ATOM)
        if self.wide:
            return self.engine.wide_quotient.format(f"({one} - {self.rest(top, bottom)})", two)
        return self.engine.quotient.format(one if is_natural(top) else f"({one} - {self.rest(top, bottom)})", two)

    def bracket(self, formula: Bracket) -> tuple[str, int]:
        return f"(CASE WHEN {self.holds(formula)} THEN 1 ELSE 0 END)", ATOM

    def holds(self, formula: Bracket) -> str:
        """A condition as SQL has it."""
        one, two = (self.inside(argument, SUM) for argument in formula.arguments)
        return f"{one} {'>=' if formula.kind == 'at_least' else '='} {two}"

    def tally(self, formula: TallyOf) -> tuple[str, int]:
        raise SymflopsError("a table of lengths is not priced: a length bounds a loop")
