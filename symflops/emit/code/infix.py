"""Formulas as infix text: a base printer for all languages, and one for exact integer expressions.

For languages without exact fractions, a fraction becomes numerator and denominator.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from symflops.formula.formula import ONE, Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, TallyOf, Text, symbols
from symflops.formula.terms import Rewriting, plus, times
from symflops.ir.program import Definition, Field, Program

SUM, PRODUCT, UNARY, ATOM = 1, 2, 3, 4


class Printer(ABC):
    """Base class of formula printers; subclasses print symbols, products, powers, functions and brackets.

    A method that returns a pair returns (text, precedence of its operator): ``SUM``, ``PRODUCT``, ``UNARY`` or ``ATOM``.
    """

    def text(self, formula: Formula) -> str:
        """Print ``formula`` in this language."""
        return self.visit(formula)[0]

    def inside(self, formula: Formula, least: int) -> str:
        """Print ``formula``, in parentheses if its precedence is below ``least``."""
        text, precedence = self.visit(formula)
        return f"({text})" if precedence < least else text

    def visit(self, formula: Formula) -> tuple[str, int]:
        """Print ``formula``; return (text, precedence of its outermost operator)."""
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
        """Print the sum of ``terms``; a negative term becomes a subtraction."""
        first, *rest = (self.inside(term, SUM) for term in terms)
        return first + "".join(f" - {text[1:]}" if text.startswith("-") else f" + {text}" for text in rest)

    @abstractmethod
    def number(self, value: Fraction) -> tuple[str, int]:
        """Print a number."""

    @abstractmethod
    def symbol(self, name: str) -> str:
        """Print a symbol."""

    @abstractmethod
    def quoted(self, text: str) -> str:
        """Print a string literal."""

    @abstractmethod
    def product(self, factors: tuple[Formula, ...]) -> tuple[str, int]:
        """Print a product."""

    @abstractmethod
    def power(self, formula: Power) -> str:
        """Print a power."""

    @abstractmethod
    def apply(self, formula: Apply) -> tuple[str, int]:
        """Print a function call on numbers or on a list."""

    @abstractmethod
    def bracket(self, formula: Bracket) -> tuple[str, int]:
        """Print a condition, whose value is 0 or 1."""

    @abstractmethod
    def tally(self, formula: TallyOf) -> tuple[str, int]:
        """Print the number of iterations of a loop that satisfy a condition."""


class CodePrinter(Printer):
    """Printer of source code; ``names`` maps symbols to identifiers, ``named`` maps formulas to variables.

    A symbol ``q`` that is not in ``names`` keeps its name. If it is nullable, null reads as 0 and ``has_q`` tests for null.
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
        """Print ``formula`` as a whole expression, without outer parentheses."""
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
        """Print an integer literal."""

    @abstractmethod
    def quotient(self, top: str, bottom: str, product: bool) -> tuple[str, int]:
        """Print the exact division of ``top`` by ``bottom``; ``product``: whether ``bottom`` is a product."""


@dataclass(frozen=True, slots=True)
class Language:
    """Syntax of one language for the statements that read sizes.

    Attributes:
        printer: Creates a formula printer without names for symbols and formulas.
        assigned: Prints an assignment of an expression (second argument) to a name (first argument).
        size: Prints the expression that reads a size.
        given: Prints the test that a nullable size is not null.
    """

    printer: Callable[[], CodePrinter]
    assigned: Callable[[str, str], str]
    size: Callable[[Field], str]
    given: Callable[[Field], str]


DENOMINATOR = "denominator"
"""Field kind of the denominator of a rational size; numerator and denominator share one attribute."""

Ratio = tuple[Formula, Formula]
"""(Numerator, denominator)."""


def in_whole_numbers(program: Program) -> Program:
    """Rewrite ``program`` over integers: each rational size becomes a numerator and a denominator."""
    fractions = Fractions(denominators(program))
    if not fractions.denominators:
        return program
    definitions: list[Definition] = []
    for definition in program.definitions:
        top, bottom = fractions.of(definition.formula)
        definitions.append(replace(definition, formula=top))
        if bottom != ONE:
            letter = fractions.denominators[definition.letter] = f"{definition.letter}_under"
            definitions.append(replace(definition, letter=letter, formula=bottom))
    sizes: list[Field] = []
    for field in program.fields:
        sizes.append(field)
        if field.kind == "rational":
            sizes.append(replace(field, letter=fractions.denominators[field.letter], kind=DENOMINATOR, default=None))
    names = "statistics moments amounts tensors parameters regimes cases inputs streams inner conditions"
    rewriting = Rewriting(fractions.whole)
    formulas = {name: rewriting(getattr(program, name)) for name in names.split()}
    return replace(program, fields=tuple(sizes), definitions=tuple(definitions), **formulas)


def denominators(program: Program) -> dict[str, str]:
    """Map the letter of each rational size to the letter of its denominator."""
    return {field.letter: f"{field.letter}_under" for field in program.fields if field.kind == "rational"}


class Fractions:
    """Splitter of formulas into numerators and denominators.

    ``denominators`` maps the letter of each rational size to the letter of its denominator.
    """

    def __init__(self, denominators: Mapping[str, str]) -> None:
        self.denominators = dict(denominators)

    def whole(self, formula: Formula) -> Formula:
        """Rewrite ``formula`` in integer sizes; if a division remains, it has no remainder."""
        top, bottom = self.of(formula)
        return top if bottom == ONE else times(top, Power(bottom, -1))

    def of(self, formula: Formula) -> Ratio:
        """Split ``formula`` into (numerator, denominator), both in integer sizes."""
        if not any(name in self.denominators for name in symbols(formula)):
            return formula, ONE
        match formula:
            case Num() | Text():
                return formula, ONE
            case Sym():
                return formula, Sym(self.denominators[formula.name])
            case Sum():
                parts, bottom = self.common(formula.terms)
                return plus(parts), bottom
            case Prod():
                tops, bottoms = zip(*map(self.of, formula.factors), strict=True)
                return times(*tops), times(*bottoms)
            case Power():
                top, bottom = (times(*[half] * abs(formula.exponent)) for half in self.of(formula.base))
                return (top, bottom) if formula.exponent > 0 else (bottom, top)
            case Apply():
                return self.apply(formula)
            case Bracket(kind="at_least" | "equal"):
                return Bracket(formula.kind, self.common(formula.arguments)[0]), ONE
            case Bracket() | TallyOf():
                return formula, ONE
            case _:
                assert_never(formula)

    def apply(self, formula: Apply) -> Ratio:
        """Apply a function to numerators over a common denominator; return (numerator, denominator).

        A rounded quotient has the denominator 1, because the common one cancels.
        """
        parts, bottom = self.common(formula.arguments)
        result = Apply(formula.function, parts)
        return result, ONE if formula.function in ("floordiv", "ceildiv") else bottom

    def common(self, formulas: tuple[Formula, ...]) -> tuple[tuple[Formula, ...], Formula]:
        """Bring ``formulas`` to a common denominator; return (numerators, denominator)."""
        halves = [self.of(formula) for formula in formulas]
        bottoms = [bottom for bottom in dict.fromkeys(bottom for _, bottom in halves) if bottom != ONE]
        every = times(*bottoms)
        return tuple(times(top, *(other for other in bottoms if other != bottom)) for top, bottom in halves), every
