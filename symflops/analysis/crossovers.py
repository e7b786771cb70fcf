"""The length from which on attention costs at least as much as all else: in closed form, and exactly at given sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import isqrt, lcm

from symflops.algebra.sparse import Poly, common_monomial, content
from symflops.analysis.item_analysis import Crossover
from symflops.analysis.parts import ATTENTION
from symflops.model.polynomials import Writer

Powers = dict[int, Poly]


def crossover(work: str, attention: Powers, others: Powers, writer: Writer, value: int | None) -> Crossover:
    """The crossover of attention and all else in the pass ``work``; ``value`` is the length at default sizes."""
    powers = difference(attention, others)
    if len(powers) < 2:
        sign = sum(poly.sign for poly in powers.values())
        return Crossover(work, "always" if sign > 0 else "never" if sign < 0 else "ratio", value=value)
    least, most = min(powers), max(powers)
    if most - least == 1:
        above, below = powers[least].scale(-1), powers[most]
        if above.sign * below.sign < 0:
            return Crossover(work, "always" if below.sign > 0 else "never", value=value)
        one, two = map(writer.factored, cancelled(above, below))
        return Crossover(work, "quotient", one, two, value=value)
    if most - least == 2:
        square, linear, constant = cancelled(*(powers.get(least + step, Poly({})) for step in (2, 1, 0)))
        one, two, three = map(writer.factored, (square, linear, constant))
        return Crossover(work, "root", square=one, linear=two, constant=three, value=value)
    return Crossover(work, "open", value=value)


def difference(attention: Powers, others: Powers) -> Powers:
    """Attention minus all else, by power of the length."""
    powers = {power: attention.get(power, Poly({})) - others.get(power, Poly({})) for power in {*attention, *others}}
    return {power: poly for power, poly in powers.items() if poly}


def cancelled(*polys: Poly) -> tuple[Poly, ...]:
    """Polynomials divided by their common factor."""
    monomials, numbers = zip(*(poly.common for poly in polys if poly), strict=True)
    return tuple(poly.over(common_monomial(monomials), content(numbers)) for poly in polys)


def first_from(powers: Mapping[int, Fraction], start: int = 1) -> int | None:
    """The first integer from ``start`` on after which a polynomial of degree at most two is never negative.

    >>> first_from({1: Fraction(2), 0: Fraction(-5)})
    3
    """
    scale = lcm(*(value.denominator for value in powers.values())) if powers else 1
    a, b, c = (int(powers.get(power, Fraction(0)) * scale) for power in (2, 1, 0))
    if a < 0 or (a == 0 and b < 0) or (a == b == 0 and c < 0):
        return None
    if a == 0:
        return max(start, -(c // b)) if b else start
    root = b * b - 4 * a * c
    if root < 0:
        return start
    near = (-b + isqrt(root)) // (2 * a)
    found = next(z for z in range(near - 1, near + 4) if (a * z + b) * z + c >= 0 and 2 * a * z + b >= 0)
    return max(start, found)


def sides(cost: Mapping[str, Powers]) -> tuple[Powers, Powers]:
    """The cost of attention and of all else, by power."""
    others = merged(powers for part, powers in cost.items() if part != ATTENTION)
    return cost.get(ATTENTION, {}), others


def merged(parts: Iterable[Powers]) -> Powers:
    """The sum of several costs, by power."""
    found: Powers = {}
    for powers in parts:
        for power, poly in powers.items():
            found[power] = found.get(power, Poly({})) + poly
    return {power: poly for power, poly in found.items() if poly}
