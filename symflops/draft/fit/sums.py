"""Fits sums of monomials to a vector: of two, of two and a constant, of three, or of as many as the samples allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

from symflops.draft.fit.formula import Formula, Vector, powers, sum_of
from symflops.draft.fit.three_terms import triple
from symflops.draft.fit.vectors import products, solve, two_factors

MOST_MONOMIALS = 400
MOST_TERMS, MOST_OF_THREE, FEW_TERMS = 24, 36, 3
LONGEST = 6  # terms
MANY = 160  # monomials, of which not all pairs are tried
MOST_SHIFTED = 80

Columns = Mapping[tuple[str, ...], Vector]


def short_or_long(vector: Vector, atoms: Mapping[str, Vector]) -> Formula | None:
    """A sum of monomials, of degree one to four: a long one only if no short one of products is found."""
    longer: Formula | None = None
    different = len(set(zip(*atoms.values(), strict=True)))
    for degree in (1, 2, 3, 4):
        if comb(len(atoms) + degree, degree) > MOST_MONOMIALS:
            return longer
        columns = {(): (1,) * len(vector), **products(atoms, range(1, degree + 1))}
        pair = pair_of(vector, columns) or shifted_pair(vector, columns)
        if longer is not None:
            return longer if pair is None or len(pair.terms) >= len(longer.terms) else pair
        if pair is not None:
            return pair
        if len(columns) <= min(MOST_TERMS, different - 3):
            longer = long_sum(vector, columns)
            if longer is not None and (degree > 1 or len(longer.terms) <= FEW_TERMS):
                return longer
        elif degree == 2 and len(columns) <= MOST_OF_THREE and len(vector) > 8:
            three = triple(vector, columns)
            if three is not None:
                return three
    return None


def long_sum(vector: Vector, columns: Columns) -> Formula | None:
    """The one sum over all columns, if it has few terms with small denominators."""
    solved = solve(vector, list(columns.values()))
    if solved is None or any(factor.denominator > 16 for factor in solved):
        return None
    terms = [(powers(chosen, ()), factor) for chosen, factor in zip(columns, solved, strict=True) if factor]
    return sum_of(terms) if len(terms) <= LONGEST else None


def pair_of(vector: Vector, columns: Columns) -> Formula | None:
    """A sum of two monomials with small denominators."""
    items = list(columns.items())
    every: Iterable[Any] = combinations(items, 2)
    if len(items) > MANY:  # one of them is simple
        every = ((one, other) for one in items if len(one[0]) > 1 for other in items if len(other[0]) < 2)
    for (a, first), (b, second) in every:
        found = two_factors(vector, first, second, 0)
        if found is None:
            continue
        terms = [(powers(name, ()), Fraction(value, found[2])) for name, value in ((a, found[0]), (b, found[1])) if value]
        if all(factor.denominator <= 16 for _, factor in terms):
            return sum_of(terms)
    return None


def shifted_pair(vector: Vector, columns: Columns) -> Formula | None:
    """A sum of two monomials and a constant, fitted to the differences to the first sample."""
    if len(columns) > MOST_SHIFTED:
        return None
    change = tuple(value - vector[0] for value in vector)
    changes = {name: tuple(value - column[0] for value in column) for name, column in columns.items() if name}
    for (a, first), (b, second) in combinations(changes.items(), 2):
        place = next((p for p in range(1, len(vector)) if first[p]), None)
        found = None if place is None else two_factors(change, first, second, place)
        if found is None or not found[0] or not found[1]:
            continue
        one, two = Fraction(found[0], found[2]), Fraction(found[1], found[2])
        rest = vector[0] - one * columns[a][0] - two * columns[b][0]
        if max(one.denominator, two.denominator) <= 4 and rest.denominator == 1:
            constant = [((), rest)] if rest else []
            return Formula((*sum_of([(powers(a, ()), one), (powers(b, ()), two)]).terms, *constant))
    return None
