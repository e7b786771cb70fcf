"""Formulas without fractions: a size that is a fraction becomes two whole ones, its numerator and its denominator.

For languages that have exact integers and no exact fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, assert_never

from symflops.emit.code.terms import plus, times
from symflops.model.formula import ONE, Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, TallyOf, Text, symbols
from symflops.model.program import Definition, Field, Program

NODES = (Num, Sym, Text, Sum, Prod, Power, Apply, Bracket, TallyOf)
DENOMINATOR = "denominator"
"""The kind of the size that is the other half of a rational one; both have the same attribute."""

Halves = tuple[Formula, Formula]


def in_whole_numbers(program: Program) -> Program:
    """``program`` with formulas of integers only, equal in value."""
    under = {field.letter: f"{field.letter}_under" for field in program.fields if field.kind == "rational"}
    if not under:
        return program
    halves = Divided(under)
    definitions: list[Definition] = []
    for definition in program.definitions:
        top, bottom = halves.of(definition.formula)
        definitions.append(replace(definition, formula=top))
        if bottom != ONE:
            halves.under[definition.letter] = f"{definition.letter}_under"
            definitions.append(replace(definition, letter=halves.under[definition.letter], formula=bottom))
    made: list[Field] = []
    for field in program.fields:
        made.append(field)
        if field.letter in under:
            made.append(replace(field, letter=under[field.letter], kind=DENOMINATOR, default=None))
    names = ("statistics", "moments", "amounts", "tensors", "parameters", "regimes", "cases", "inputs", "streams")
    formulas = {name: _with(getattr(program, name), halves.whole) for name in names}
    return replace(program, fields=tuple(made), definitions=tuple(definitions), **formulas)


class Divided:
    """Formulas as numerator and denominator; ``under`` has the letter of the denominator of each letter that is a fraction."""

    def __init__(self, under: Mapping[str, str]) -> None:
        self.under = dict(under)

    def whole(self, formula: Formula) -> Formula:
        """``formula`` without fractions; a division that is left has no remainder."""
        top, bottom = self.of(formula)
        return top if bottom == ONE else times(top, Power(bottom, -1))

    def of(self, formula: Formula) -> Halves:
        """``formula`` as a fraction."""
        if not any(name in self.under for name in symbols(formula)):
            return formula, ONE
        match formula:
            case Num() | Text():
                return formula, ONE
            case Sym():
                return formula, Sym(self.under[formula.name])
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

    def apply(self, formula: Apply) -> Halves:
        """A function of fractions; what rounds or compares is whole once both sides have one denominator."""
        parts, bottom = self.common(formula.arguments)
        result = Apply(formula.function, parts)
        return result, ONE if formula.function in ("floordiv", "ceildiv") else bottom

    def common(self, formulas: tuple[Formula, ...]) -> tuple[tuple[Formula, ...], Formula]:
        """Numerators over one denominator."""
        halves = [self.of(formula) for formula in formulas]
        bottoms = [bottom for bottom in dict.fromkeys(bottom for _, bottom in halves) if bottom != ONE]
        every = times(*bottoms)
        return tuple(times(top, *(other for other in bottoms if other != bottom)) for top, bottom in halves), every


def _with(value: Any, change: Callable[[Formula], Formula]) -> Any:
    """``value`` with its formulas changed, whatever frozen types and tuples hold them."""
    if isinstance(value, NODES):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_with(item, change) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _with(getattr(value, field.name), change) for field in fields(value)})
    return value
