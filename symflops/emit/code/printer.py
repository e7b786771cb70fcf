"""Formulas as expressions of an infix programming language with exact integers."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction

from symflops.emit.code.infix import ATOM, PRODUCT, UNARY, Printer
from symflops.model.formula import Formula, Num, Power


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
