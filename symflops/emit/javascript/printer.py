"""Formulas as JavaScript expressions over BigInt; names with a leading ``$`` are functions of the template."""

from __future__ import annotations

from collections.abc import Iterable

from symflops.emit.code.printer import ATOM, SUM, UNARY, CodePrinter, Language
from symflops.emit.code.whole_numbers import DENOMINATOR
from symflops.model.formula import ZERO, Apply, Bracket, Power, Sym, TallyOf
from symflops.model.program import Field

WORDS = frozenset((
    "abstract", "arguments", "async", "await", "boolean", "break", "byte", "case", "catch", "char", "class", "const",
    "continue", "debugger", "default", "delete", "do", "double", "else", "enum", "eval", "export", "extends", "false",
    "final", "finally", "float", "for", "function", "get", "goto", "if", "implements", "import", "in", "instanceof",
    "int", "interface", "let", "long", "native", "new", "null", "of", "package", "private", "protected", "public",
    "return", "set", "short", "static", "super", "switch", "synchronized", "this", "throw", "throws", "transient",
    "true", "try", "typeof", "undefined", "var", "void", "volatile", "while", "with", "yield", "BigInt", "Infinity",
    "NaN",
))  # fmt: skip
"""Reserved words, and globals that a name would shadow."""


def name_of(name: str) -> str:
    """A letter as an identifier; a reserved word gets a ``$``, which no letter contains."""
    return f"{name}$" if name in WORDS else name


class JavaScriptPrinter(CodePrinter):
    """JavaScript expressions; truth values are 0n and 1n, as in formulas."""

    def symbol(self, name: str) -> str:
        return self.names[name] if name in self.names else name_of(name.partition("@")[0])

    def literal(self, value: int) -> str:
        return f"{value}n"

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        return f"$div({top}, {bottom})", ATOM

    def power(self, formula: Power) -> str:
        """A power, in parentheses, since JavaScript forbids a minus before a power."""
        base = self.inside(formula.base, ATOM)
        return base if formula.exponent == 1 else f"({base}**{formula.exponent}n)"

    def apply(self, formula: Apply) -> tuple[str, int]:
        arguments = [self.text(argument) for argument in formula.arguments]
        match formula.function:
            case "floordiv":
                return f"$div({arguments[0]}, {arguments[1]})", ATOM
            case "ceildiv":
                return f"-$div(-{self.inside(formula.arguments[0], UNARY)}, {arguments[1]})", SUM
            case "excess":
                return f"$max(0n, {arguments[0]})", ATOM
        return f"${formula.function}({', '.join(arguments)})", ATOM

    def bracket(self, formula: Bracket) -> tuple[str, int]:
        first, *others = formula.arguments
        match formula.kind:
            case "flag":
                return self.text(first), ATOM
            case "given":
                assert isinstance(first, Sym)
                return (f"$given({self.names[first.name]})" if first.name in self.names else f"has_{first.name}"), ATOM
            case "at_least":
                return f"BigInt({self.inside(first, SUM)} >= {self.inside(others[0], SUM)})", ATOM
            case "contains":
                return f"$contains({self.text(others[0])}, {self.text(first)})", ATOM
        return f"$equal({self.text(first)}, {self.text(others[0])})", ATOM

    def tally(self, formula: TallyOf) -> tuple[str, int]:
        low = "0n" if formula.low == ZERO else self.text(formula.low)
        index = self.symbol(formula.index)
        return f"$tally({low}, {self.text(formula.high)}, ({index}) => {self.text(formula.condition)})", ATOM


class LengthsPrinter(JavaScriptPrinter):
    """Functions of lengths; exact divisions are checked at run time."""

    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        return f"$exact({top}, {bottom})", ATOM


READ = {"flag": "$flag({})", "rational": "{}[0]", DENOMINATOR: "{}[1]"}
ABSENT = {"number": "{} ?? 0n", "count": "{} ?? 0n", "list": "{} ?? $nothing"}


def size(field: Field) -> str:
    """The expression that reads a size for formulas."""
    kinds = {**READ, **ABSENT} if field.nullable else READ
    return kinds.get(field.kind, "{}").format(f"sizes.{field.attribute}")


def vector(cells: Iterable[str]) -> str:
    """An array."""
    return f"[{', '.join(cells)}]"


JAVASCRIPT = Language(
    printer=JavaScriptPrinter,
    assigned="const {} = {};".format,
    size=size,
    given="$given(sizes.{0.attribute})".format,
)
