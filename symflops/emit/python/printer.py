"""Formulas as Python expressions over ints."""

from __future__ import annotations

import builtins
import keyword
import re
from fractions import Fraction

from symflops.emit.code.infix import ATOM, PRODUCT, SUM, UNARY
from symflops.emit.code.printer import CodePrinter
from symflops.emit.python.rows import CALLS, DIVISIONS
from symflops.model.formula import ZERO, Apply, Bracket, Formula, Power, Sym, TallyOf

BUILTIN = frozenset((*dir(builtins), *keyword.kwlist, "count", "index", "self", "sizes"))
"""Names that no letter of a spec may have: one that does gets an underscore."""


class PythonPrinter(CodePrinter):
    """Python expressions; truth values are bools."""

    reserved = BUILTIN | {"convention", "found", "m", "own", "regime", "rows"}

    def symbol(self, name: str) -> str:
        text = super().symbol(name)
        return f"{text}_" if text in self.reserved else text

    def number(self, value: Fraction) -> tuple[str, int]:
        return super().number(value) if value.denominator == 1 else (f"{value.numerator}/{value.denominator}", PRODUCT)

    def alone(self, formula: Formula) -> str:
        text = self.text(formula)
        return text[1:-1] if isinstance(formula, Bracket) and text.startswith("(") else text

    def literal(self, value: int) -> str:
        return str(value)

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        return self.divided("{}//({})" if product else "{}//{}").format(top, bottom), PRODUCT

    def divided(self, form: str) -> str:
        """The form of a quotient, as it is printed."""
        return form

    def power(self, formula: Power) -> str:
        base = self.inside(formula.base, ATOM)
        return base if formula.exponent == 1 else f"{base}**{formula.exponent}"

    def apply(self, formula: Apply) -> tuple[str, int]:
        arguments = formula.arguments
        if formula.function in DIVISIONS:
            above = self.inside(arguments[0], ATOM if formula.function == "ceildiv" else UNARY)
            return self.divided(DIVISIONS[formula.function]).format(above, self.inside(arguments[1], ATOM)), PRODUCT
        texts = [self.text(argument) for argument in arguments]
        if formula.function in CALLS:
            return CALLS[formula.function].format(*texts), ATOM
        return f"{formula.function}({', '.join(texts)})", ATOM

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


class SpacedPrinter(PythonPrinter):
    """Python expressions with the spaces that formatters put around operators."""

    times = " * "

    def power(self, formula: Power) -> str:
        base = self.inside(formula.base, ATOM)
        hugs = re.fullmatch(r"-?[\w.]+", base)
        return base if formula.exponent == 1 else f"{base}{'**' if hugs else ' ** '}{formula.exponent}"

    def divided(self, form: str) -> str:
        return form.replace("//", " // ")
