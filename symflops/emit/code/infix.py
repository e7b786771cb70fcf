"""Formulas as infix text: one walk for all languages, which override what differs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import assert_never

from symflops.model.formula import Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, TallyOf, Text

SUM, PRODUCT, UNARY, ATOM = 1, 2, 3, 4


class Printer(ABC):
    """Prints formulas; a language says how symbols, products, powers, functions and brackets look.

    Methods that return a pair give a text and its precedence: ``SUM``, ``PRODUCT``, ``UNARY`` or ``ATOM``.
    """

    def text(self, formula: Formula) -> str:
        """``formula`` in this language."""
        return self.visit(formula)[0]

    def inside(self, formula: Formula, least: int) -> str:
        """``formula``, in parentheses if it binds weaker than ``least``."""
        text, precedence = self.visit(formula)
        return f"({text})" if precedence < least else text

    def visit(self, formula: Formula) -> tuple[str, int]:
        """``formula`` and its precedence."""
        match formula:
            case Num():
                return self.number(formula.value)
            case Sym():
                return self.symbol(formula.name), ATOM
            case Text():
                return self.quoted(formula.value), ATOM
            case Sum():
                return self.sum(formula.terms), SUM
            case Prod():
                return self.product(formula.factors)
            case Power():
                return self.power(formula), PRODUCT if formula.exponent < 0 else UNARY
            case Apply():
                return self.apply(formula)
            case Bracket():
                return self.bracket(formula)
            case TallyOf():
                return self.tally(formula)
            case _:
                assert_never(formula)

    def sum(self, terms: tuple[Formula, ...]) -> str:
        """Terms with their signs."""
        text = ""
        for term in terms:
            printed = self.inside(term, SUM)
            if not text:
                text = printed
            elif printed.startswith("-"):
                text += f" - {printed[1:]}"
            else:
                text += f" + {printed}"
        return text

    @abstractmethod
    def number(self, value: Fraction) -> tuple[str, int]: ...

    @abstractmethod
    def symbol(self, name: str) -> str: ...

    @abstractmethod
    def quoted(self, text: str) -> str: ...

    @abstractmethod
    def product(self, factors: tuple[Formula, ...]) -> tuple[str, int]: ...

    @abstractmethod
    def power(self, formula: Power) -> str: ...

    @abstractmethod
    def apply(self, formula: Apply) -> tuple[str, int]: ...

    @abstractmethod
    def bracket(self, formula: Bracket) -> tuple[str, int]: ...

    @abstractmethod
    def tally(self, formula: TallyOf) -> tuple[str, int]: ...
