"""Formulas as infix text: one walk for all languages, and expressions of programming languages with exact integers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from symflops.model.formula import Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, TallyOf, Text
from symflops.model.program import Field

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


class CodePrinter(Printer):
    """Source code; ``names`` are the names of letters in code, ``named`` the names of whole formulas.

    A letter ``q`` without a name keeps its own; if it may be null, it is 0 for null, and ``has_q`` says whether it is given.
    """

    times = "*"

    def __init__(self, names: Mapping[str, str] | None = None, named: Mapping[Formula, str] | None = None) -> None:
        self.names = dict(names or {})
        self.named = dict(named or {})

    def visit(self, formula: Formula) -> tuple[str, int]:
        if self.named and formula in self.named:
            return self.named[formula], ATOM
        return super().visit(formula)

    def alone(self, formula: Formula) -> str:
        """``formula`` as a whole expression, which needs no parentheses."""
        return self.text(formula)

    def number(self, value: Fraction) -> tuple[str, int]:
        if value.denominator == 1:
            return self.literal(value.numerator), ATOM if value >= 0 else PRODUCT
        return self.quotient(self.literal(value.numerator), self.literal(value.denominator), False)

    def symbol(self, name: str) -> str:
        return self.names.get(name, name.partition("@")[0])

    def quoted(self, text: str) -> str:
        return json.dumps(text)

    def product(self, factors: tuple[Formula, ...]) -> tuple[str, int]:
        number, rest = (factors[0].value, factors[1:]) if isinstance(factors[0], Num) else (Fraction(1), factors)
        powers = [factor for factor in rest if isinstance(factor, Power) and factor.exponent < 0]
        parts = [self.inside(factor, UNARY) for factor in rest if factor not in powers]
        sign = "-" if number.numerator == -1 and parts else ""
        if abs(number.numerator) != 1 or not parts:
            parts.insert(0, self.literal(number.numerator))
        text = sign + self.times.join(parts)
        below = [self.literal(number.denominator)] if number.denominator != 1 else []
        below += [self.power(Power(power.base, -power.exponent)) for power in powers]
        return self.quotient(text, self.times.join(below), len(below) > 1) if below else (text, PRODUCT)

    @abstractmethod
    def literal(self, value: int) -> str:
        """An integer."""

    @abstractmethod
    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        """An exact division; ``product`` if the divisor is a product."""


@dataclass(frozen=True, slots=True)
class Language:
    """How one language writes the statements that read sizes.

    Attributes:
        printer: Makes a printer of formulas whose names may be set.
        assigned: The statement that assigns an expression to a name.
        size: The expression that reads a size for formulas.
        given: The condition that a nullable size is not null.
    """

    printer: Callable[[], CodePrinter]
    assigned: Callable[[str, str], str]
    size: Callable[[Field], str]
    given: Callable[[Field], str]
