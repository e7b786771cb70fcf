"""Polynomials made shorter by identities: multiples of what is 0 are added as long as fewer or simpler terms remain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from symflops.algebra.sparse import Factor, Monomial, Poly, ratio

P = TypeVar("P", bound=Poly)


def reduced(polynomial: P, identity: P, weight: Callable[[Monomial], int]) -> P:
    """``polynomial`` plus those multiples of ``identity`` that make it shorter."""
    weights = {part: weight(part) for part in identity.terms}
    if sum(any(part <= monomial for monomial in polynomial.terms) for part in weights if part) < 2:
        return polynomial
    terms = dict(polynomial.terms)
    for cofactor in _cofactors(polynomial, identity):
        places = {part: polynomial.product(cofactor, part) for part in identity.terms}
        if len(set(places.values())) < len(places):
            continue
        found = {part: terms.get(place, 0) for part, place in places.items()}
        shorter = min(
            _multiples(found, identity), key=lambda times: (_cost(found, identity, weights, times), abs(times), times)
        )
        for part, place in places.items():
            terms[place] = found[part] - shorter * identity.terms[part]
    return type(polynomial)(terms)


def _cofactors(polynomial: Poly, identity: Poly) -> list[Monomial]:
    """What terms of ``polynomial`` are products of with parts of ``identity`` that are no numbers, in a fixed order."""
    atoms = {atom for part in identity.terms for atom, _ in part}
    found = {
        monomial - part: None
        for monomial in polynomial.terms
        for part in identity.terms
        if part and part <= monomial and not any(atom in atoms for atom, _ in monomial - part)
    }
    return list(found)


def _multiples(found: Mapping[Monomial, Factor], identity: Poly) -> list[int]:
    """How often ``identity`` may be taken away: whole numbers that let one of the terms vanish, and 0."""
    multiples = dict.fromkeys([0, *(ratio(factor, identity.terms[part]) for part, factor in found.items())])
    return [one for one in multiples if isinstance(one, int)]


def _cost(found: Mapping[Monomial, Factor], identity: Poly, weights: Mapping[Monomial, int], times: int) -> int:
    """The weight of the terms that are left without ``times`` the identity."""
    return sum(weights[part] for part, factor in found.items() if factor != times * identity.terms[part])
