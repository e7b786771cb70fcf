"""Fits one monomial to a vector: a product of symbols and quotients, or a product of symbols divided by another."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement

from symflops.draft.fit.formula import Formula, Vector, powers
from symflops.draft.fit.vectors import ratio

MOST_PRODUCTS = 60000
MOST_QUOTIENTS = 30000
LARGEST_DENOMINATOR = 64


def monomial(vector: Vector, base: Mapping[str, Vector], pool: Mapping[str, Vector]) -> Formula | None:
    """One monomial of the symbols in ``base`` and the quotients in ``pool``; only symbols are divided."""
    if any(value <= 0 for value in vector):
        return None
    return whole(vector, {**pool, **base}) or divided(vector, base)


def whole(vector: Vector, atoms: Mapping[str, Vector]) -> Formula | None:
    """A product of at most five atoms, with a whole factor."""
    for degree in (1, 2, 3, 4, 5):
        if len(atoms) ** degree > MOST_PRODUCTS:
            break
        for chosen in combinations_with_replacement(atoms, degree):
            factor = ratio(vector, [atoms[name] for name in chosen], [])
            if factor is not None and factor.denominator == 1:
                return Formula(((powers(chosen, ()), factor),))
    return None


def divided(vector: Vector, base: Mapping[str, Vector]) -> Formula | None:
    """A product of at most three symbols, divided by at most three others."""
    for up, down in ((up, down) for up in (1, 2, 3) for down in (0, 1, 2, 3) if len(base) ** (up + down) <= MOST_QUOTIENTS):
        for below in combinations_with_replacement(base, down):
            for above in combinations_with_replacement([name for name in base if name not in below], up):
                factor = ratio(vector, [base[name] for name in above], [base[name] for name in below])
                if factor is not None and factor.denominator <= LARGEST_DENOMINATOR:
                    return Formula(((powers(above, below), factor),))
    return None
