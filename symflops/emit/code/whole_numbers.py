"""Formulas without fractions, for languages with exact integers only: a fraction becomes numerator and denominator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from symflops.model.formula import ONE, Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, TallyOf, Text, symbols
from symflops.model.program import Definition, Field, Program
from symflops.model.terms import Rewriting, plus, times

DENOMINATOR = "denominator"
"""The kind of the size that is the denominator of a rational size; both have the same attribute."""

Fraction = tuple[Formula, Formula]
"""Numerator and denominator."""


def in_whole_numbers(program: Program) -> Program:
    """``program`` with equal formulas of integers only."""
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
    """The letters of the denominators of rational sizes."""
    return {field.letter: f"{field.letter}_under" for field in program.fields if field.kind == "rational"}


class Fractions:
    """Formulas as fractions; ``denominators`` has a letter for the denominator of each letter that is a fraction."""

    def __init__(self, denominators: Mapping[str, str]) -> None:
        self.denominators = dict(denominators)

    def whole(self, formula: Formula) -> Formula:
        """``formula`` in integers; a division that remains is exact."""
        top, bottom = self.of(formula)
        return top if bottom == ONE else times(top, Power(bottom, -1))

    def of(self, formula: Formula) -> Fraction:
        """``formula`` as a fraction."""
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

    def apply(self, formula: Apply) -> Fraction:
        """A function of fractions over a common denominator, which a rounded quotient cancels."""
        parts, bottom = self.common(formula.arguments)
        result = Apply(formula.function, parts)
        return result, ONE if formula.function in ("floordiv", "ceildiv") else bottom

    def common(self, formulas: tuple[Formula, ...]) -> tuple[tuple[Formula, ...], Formula]:
        """Numerators over one denominator."""
        halves = [self.of(formula) for formula in formulas]
        bottoms = [bottom for bottom in dict.fromkeys(bottom for _, bottom in halves) if bottom != ONE]
        every = times(*bottoms)
        return tuple(times(top, *(other for other in bottoms if other != bottom)) for top, bottom in halves), every
