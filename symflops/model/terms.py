"""Sums and products of formulas, simplified so that they print well."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import prod

from symflops.algebra.sparse import Factor
from symflops.model.formula import ONE, Bracket, Formula, Num, Power, Prod, Sum, Sym
from symflops.model.formula_writer import product_of, sum_of
from symflops.model.program import Program

Terms = tuple[tuple[int, Formula], ...]


def in_moments(terms: Terms, program: Program) -> Formula:
    """A vector over the moments as a formula; the moment of work done once per batch is 1."""
    return sum_of(
        factor if program.moments[position].constant else times(factor, Sym(f"moment@{position}")) for position, factor in terms
    )


@lru_cache(maxsize=1 << 12)
def _whole(number: int) -> Num:
    return Num(Fraction(number))


def numeral(number: Factor) -> Num:
    """A number as a formula."""
    return _whole(number) if type(number) is int else Num(Fraction(number))


def times(*formulas: Formula) -> Formula:
    """A product: one number first, equal factors as powers, brackets and sums last."""
    number: Factor = 1
    powers: dict[Formula, int] = {}
    for formula in formulas:
        for factor in formula.factors if type(formula) is Prod else (formula,):
            base, exponent = (factor.base, factor.exponent) if type(factor) is Power else (factor, 1)
            if type(base) is Num:
                value = base.value if exponent == 1 else base.value**exponent
                number *= value.numerator if value.denominator == 1 else value
            else:
                powers[base] = powers.get(base, 0) + exponent
    rest = [base if exponent == 1 else Power(base, exponent) for base, exponent in powers.items() if exponent]
    if number == 0 or not rest:
        return numeral(number)
    if len(rest) > 1:
        rest.sort(key=_is_late)
    return product_of(rest if number == 1 else [numeral(number), *rest])


def _is_late(factor: Formula) -> bool:
    """Whether a factor comes after letters: a condition or a sum, or a power of one."""
    return isinstance(factor.base if type(factor) is Power else factor, (Bracket, Sum))


def plus(formulas: Sequence[Formula]) -> Formula:
    """A sum with equal terms merged and opposite terms cancelled."""
    counts: dict[Formula, Factor] = {}
    for formula in formulas:
        for term in formula.terms if isinstance(formula, Sum) else (formula,):
            number, rest = coefficient(term)
            counts[rest] = counts.get(rest, 0) + number
    return sum_of([rest if number == 1 else times(numeral(number), rest) for rest, number in counts.items() if number])


def coefficient(term: Formula) -> tuple[Factor, Formula]:
    """A term as (number, rest)."""
    if isinstance(term, Num):
        return term.value, ONE
    if not isinstance(term, Prod):
        return 1, term
    others = [factor for factor in term.factors if not isinstance(factor, Num)]
    number = prod([factor.value for factor in term.factors if isinstance(factor, Num)])
    return number.numerator if number.denominator == 1 else number, times(*others)
