"""Formulas as Python expressions over ints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction

from symflops.model.formula import ZERO, Apply, Bracket, Formula, Num, Power, Sym, TallyOf
from symflops.targets.printing import ATOM, PRODUCT, SUM, UNARY, Printer


class PythonPrinter(Printer):
    """Python source; ``names`` replaces letters, for code that has other names for them.

    Where they keep theirs, a letter ``q`` that may be null counts 0 for null, and ``has_q`` says whether it is given.
    ``named`` are formulas that stand under a name.
    """

    def __init__(self, names: dict[str, str] | None = None, named: Mapping[Formula, str] | None = None) -> None:
        self.names = names or {}
        self.named = dict(named or {})

    def visit(self, formula: Formula) -> tuple[str, int]:
        if self.named and formula in self.named:
            return self.named[formula], ATOM
        return super().visit(formula)

    def number(self, value: Fraction) -> tuple[str, int]:
        if value.denominator == 1:
            return str(value.numerator), ATOM if value >= 0 else PRODUCT
        return f"{value.numerator}/{value.denominator}", PRODUCT

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
            parts.insert(0, str(number.numerator))
        elif number.numerator == -1:
            sign = "-"
        text = sign + "*".join(parts)
        if number.denominator != 1:
            divisor.insert(0, Num(Fraction(number.denominator)))  # type: ignore[arg-type]
        if divisor:
            bottom = "*".join(self.power(part) if isinstance(part, Power) else self.text(part) for part in divisor)
            return self.quotient(text, bottom, len(divisor) > 1)
        return text, PRODUCT

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        """A division without a remainder, perhaps by a product."""
        return f"{top}//({bottom})" if product else f"{top}//{bottom}", PRODUCT

    def power(self, formula: Power) -> str:
        base = self.inside(formula.base, ATOM)
        return base if formula.exponent == 1 else f"{base}**{formula.exponent}"

    def apply(self, formula: Apply) -> tuple[str, int]:
        arguments = formula.arguments
        match formula.function:
            case "floordiv":
                return f"{self.inside(arguments[0], UNARY)}//{self.inside(arguments[1], ATOM)}", PRODUCT
            case "ceildiv":
                return f"-(-{self.inside(arguments[0], ATOM)}//{self.inside(arguments[1], ATOM)})", PRODUCT
            case "mod":
                return f"{self.inside(arguments[0], UNARY)} % {self.inside(arguments[1], ATOM)}", PRODUCT
            case "excess":
                return f"max(0, {self.text(arguments[0])})", ATOM
            case "item":
                return f"{self.text(arguments[0])}[{self.text(arguments[1])}]", ATOM
            case "each":
                return f"_each({self.text(arguments[0])}, {self.text(arguments[1])})", ATOM
            case "count":
                return f"{self.text(arguments[0])}.count({self.text(arguments[1])})", ATOM
            case "total":
                return f"sum({self.text(arguments[0])})", ATOM
        return f"{formula.function}({', '.join(self.text(argument) for argument in arguments)})", ATOM

    def bracket(self, formula: Bracket) -> tuple[str, int]:
        arguments = formula.arguments
        match formula.kind:
            case "flag":
                return self.text(arguments[0]), ATOM
            case "given":
                assert isinstance(arguments[0], Sym)
                name = arguments[0].name
                return (f"({self.symbol(name)} is not None)" if name in self.names else f"has_{self.symbol(name)}"), ATOM
            case "at_least":
                return f"({self.inside(arguments[0], SUM)} >= {self.inside(arguments[1], SUM)})", ATOM
            case "contains":
                return f"({self.inside(arguments[0], SUM)} in {self.inside(arguments[1], SUM)})", ATOM
        return f"({self.inside(arguments[0], SUM)} == {self.inside(arguments[1], SUM)})", ATOM

    def tally(self, formula: TallyOf) -> tuple[str, int]:
        index = formula.index.partition("@")[0]
        bounds = self.text(formula.high) if formula.low == ZERO else f"{self.text(formula.low)}, {self.text(formula.high)}"
        return f"sum({self.text(formula.condition)} for {index} in range({bounds}))", ATOM
