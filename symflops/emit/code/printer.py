"""Formulas as expressions of a programming language: what infix languages with exact integers have in common."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction

from symflops.emit.code.infix import ATOM, PRODUCT, UNARY, Printer
from symflops.model.formula import Formula, Num, Power


class CodePrinter(Printer):
    """Source code; ``names`` replaces letters, for code that has other names for them.

    Where they keep theirs, a letter ``q`` that may be null counts 0 for null, and ``has_q`` says whether it is given.
    ``named`` are formulas that stand under a name.
    """

    def __init__(self, names: Mapping[str, str] | None = None, named: Mapping[Formula, str] | None = None) -> None:
        self.names = dict(names or {})
        self.named = dict(named or {})

    def visit(self, formula: Formula) -> tuple[str, int]:
        if self.named and formula in self.named:
            return self.named[formula], ATOM
        return super().visit(formula)

    def alone(self, formula: Formula) -> str:
        """``formula`` as the whole of an expression."""
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
        head, *rest = factors
        over = [factor for factor in factors if isinstance(factor, Power) and factor.exponent < 0]
        sign, divisor = "", [Power(factor.base, -factor.exponent) for factor in over]
        number = Fraction(1)
        if isinstance(head, Num):
            number = head.value
        else:
            rest = list(factors)
        rest = [factor for factor in rest if factor not in over]
        if number == -1 and rest:
            sign = "-"
        parts = [self.inside(factor, UNARY) for factor in rest]
        if abs(number.numerator) != 1 or not parts:
            parts.insert(0, self.literal(number.numerator))
        elif number.numerator == -1:
            sign = "-"
        text = sign + "*".join(parts)
        if number.denominator != 1:
            divisor.insert(0, Num(Fraction(number.denominator)))  # type: ignore[arg-type]
        if divisor:
            bottom = "*".join(self.power(part) if isinstance(part, Power) else self.text(part) for part in divisor)
            return self.quotient(text, bottom, len(divisor) > 1)
        return text, PRODUCT

    @abstractmethod
    def literal(self, value: int) -> str:
        """A whole number."""

    @abstractmethod
    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        """A division without a remainder, perhaps by a product."""
