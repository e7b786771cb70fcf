"""Sums and products of formulas, simplified so that they print well."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

from symflops.algebra.sparse import Factor
from symflops.model.formula import ONE, Bracket, Formula, Num, Power, Prod, Sum, Sym
from symflops.model.formula_writer import factors_of, product_of, sum_of
from symflops.model.program import Program

Terms = tuple[tuple[int, Formula], ...]


def in_moments(terms: Terms, program: Program) -> Formula:
    """A vector over the moments as a formula; the moment of work done once per batch is 1."""
    return sum_of(
        factor if program.moments[position].constant else times(factor, Sym(f"moment@{position}")) for position, factor in terms
    )


def times(*formulas: Formula) -> Formula:
    """A product: one number first, equal factors as powers, brackets and sums last."""
    number: Factor = 1
    powers: dict[Formula, int] = {}
    for factor in (factor for formula in formulas for factor in factors_of(formula)):
        base, exponent = (factor.base, factor.exponent) if isinstance(factor, Power) else (factor, 1)
        if isinstance(base, Num):
            value = base.value if exponent == 1 else base.value**exponent
            number *= value.numerator if value.denominator == 1 else value
        else:
            powers[base] = powers.get(base, 0) + exponent
    bases = sorted(powers, key=lambda base: isinstance(base, (Bracket, Sum)))
    rest = [base if powers[base] == 1 else Power(base, powers[base]) for base in bases if powers[base]]
    if number == 0 or not rest:
        return Num(Fraction(number))
    return product_of(rest if number == 1 else [Num(Fraction(number)), *rest])


def plus(formulas: Sequence[Formula]) -> Formula:
    """A sum with equal terms merged and opposite terms cancelled."""
    counts: dict[Formula, Factor] = {}
    for formula in formulas:
        for term in formula.terms if isinstance(formula, Sum) else (formula,):
            number, rest = coefficient(term)
            counts[rest] = counts.get(rest, 0) + number
    return sum_of(times(Num(Fraction(number)), rest) for rest, number in counts.items() if number)


def coefficient(term: Formula) -> tuple[Factor, Formula]:
    """A term as (number, rest)."""
    if isinstance(term, Num):
        return term.value, ONE
    if not isinstance(term, Prod):
        return 1, term
    number = prod(factor.value for factor in term.factors if isinstance(factor, Num))
    return number, times(*(factor for factor in term.factors if not isinstance(factor, Num)))
