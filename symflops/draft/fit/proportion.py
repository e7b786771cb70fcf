"""Fits a rounded share of a size: a width that is two thirds of another one, or the next multiple of a number above that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations_with_replacement
from math import gcd

from symflops.draft.fit.formula import Formula, Vector, powers, product

LEAST_VALUES = 4
LARGEST = 64
FEW = (2, 3, 4)


def proportion(vector: Vector, atoms: Mapping[str, Vector]) -> Formula | None:
    """``a * x // b``, or the next multiple of ``m`` above that, with a size or a product of two for ``x``."""
    if len(set(vector)) < LEAST_VALUES or min(vector) < 1:
        return None
    for multiple, column in multiples(vector, atoms):
        for degree in (1, 2):
            for chosen in combinations_with_replacement(atoms, degree):
                if multiple in chosen:
                    continue
                whole = product(atoms[name] for name in chosen)
                for up in (True, False):
                    share = simplest(vector, whole, column, up) if up or multiple.isdigit() else None
                    if share is not None:
                        return written(share, chosen, multiple, up)
    return None


def multiples(vector: Vector, atoms: Mapping[str, Vector]) -> Iterator[tuple[str, Vector]]:
    """What a vector may be rounded to: a multiple of a number, or of a size that divides it."""
    common = gcd(*vector)
    for number in dict.fromkeys((1, *(few for few in FEW if common % few == 0), common)):
        yield str(number), (number,) * len(vector)
    for name, values in atoms.items():
        if len(set(values)) > 1 and all(value % size == 0 for value, size in zip(vector, values, strict=True) if size):
            yield name, values


def simplest(vector: Vector, whole: Vector, multiple: Vector, up: bool) -> Fraction | None:
    """The simplest share of ``whole`` that is ``vector`` if rounded up or down to a multiple; None if there is none."""
    low, high = Fraction(0), Fraction(10**9)
    for value, size, step in zip(vector, whole, multiple, strict=True):
        if size <= 0 or step <= 0:
            return None
        low = max(low, Fraction(value - step if up else value, size))
        high = min(high, Fraction(value if up else value + step, size))
        if low >= high:
            return None
    # one end belongs to what rounds to these values, the other one does not
    shares = [share for share in (high if up else low, between(low, high)) if simple(share)]
    found = min(shares, key=lambda share: share.denominator, default=None)
    return found if found is not None and found > 0 and found != 1 else None


def simple(share: Fraction) -> bool:
    """Whether a person would write a share."""
    return share.numerator <= LARGEST and share.denominator <= LARGEST


def between(low: Fraction, high: Fraction) -> Fraction:
    """The fraction with the smallest denominator strictly between two."""
    whole = low.numerator // low.denominator
    if whole + 1 < high:
        return Fraction(whole + 1)
    if low == whole:
        rest = high - whole
        return whole + Fraction(1, rest.denominator // rest.numerator + 1)
    return whole + 1 / between(1 / (high - whole), 1 / (low - whole))


def written(share: Fraction, chosen: tuple[str, ...], multiple: str, up: bool) -> Formula:
    """A rounded share as a formula."""
    unit, sizes = (int(multiple), ()) if multiple.isdigit() else (1, (multiple,))
    part = share / unit
    top = "*".join(([str(part.numerator)] if part.numerator > 1 else []) + list(chosen))
    bottom = "*".join([*([str(part.denominator)] if part.denominator > 1 else []), *sizes])
    atom = top if not bottom else f"ceil({top}, {bottom})" if up else f"({top}//{bottom})"
    return Formula(((powers((*sizes, atom), ()), Fraction(unit)),))
