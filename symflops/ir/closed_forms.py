"""The closed forms of a program: work as a formula of its moments, and the letters that formulas read."""

from __future__ import annotations

from collections.abc import Iterable

from symflops.formula.formula import Formula, Sym, symbols
from symflops.formula.terms import Terms, sum_of, times
from symflops.ir.program import Program


def in_moments(terms: Terms, program: Program) -> Formula:
    """A closed form as one formula: the sum over ``terms`` of coefficient times moment.

    The moment at position N is written as the letter ``moment@N``, or left out if it is 1 for every batch.
    """
    return sum_of(
        factor if program.moments[position].constant else times(factor, Sym(f"moment@{position}")) for position, factor in terms
    )


def needed(formulas: Iterable[Formula], program: Program) -> list[str]:
    """Letters of sizes and derived sizes that ``formulas`` read, directly or through derived sizes."""
    wanted = {name for formula in formulas for name in symbols(formula)}
    for definition in reversed(program.definitions):
        if definition.letter in wanted:
            wanted |= set(symbols(definition.formula))
    return [field.letter for field in program.fields if field.letter in wanted] + [
        item.letter for item in program.definitions if item.letter in wanted
    ]
