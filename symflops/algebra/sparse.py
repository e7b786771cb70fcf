"""Sparse polynomials over any atoms: the arithmetic that polynomials of expressions and of formulas share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction
from math import gcd, lcm
from typing import Any, Generic, Self, TypeVar

A = TypeVar("A")
Factor = int | Fraction  # a whole factor is an ``int``, which is much faster


class Sparse(ABC, Generic[A]):
    """A dictionary from products of atoms to rational factors; immutable, equal if it is the same sum.

    A subclass chooses the atoms, and how two products of them multiply.
    """

    __slots__ = ("_atoms", "_hash", "terms")
    _atoms: frozenset[A]
    _hash: int

    def __init__(self, terms: Mapping[frozenset[tuple[A, int]], Factor]) -> None:
        self.terms = {monomial: factor for monomial, factor in terms.items() if factor}

    @staticmethod
    @abstractmethod
    def product(left: frozenset[tuple[A, int]], right: frozenset[tuple[A, int]]) -> frozenset[tuple[A, int]]:
        """The product of two products of atoms."""

    @classmethod
    def total(cls, parts: Iterable[Self]) -> Self:
        """The sum of ``parts``."""
        terms: dict[frozenset[tuple[A, int]], Factor] = {}
        for part in parts:
            for monomial, factor in part.terms.items():
                terms[monomial] = terms.get(monomial, 0) + factor
        return cls(terms)

    @property
    def atoms(self) -> frozenset[A]:
        """The atoms of all products."""
        try:
            return self._atoms
        except AttributeError:
            self._atoms = frozenset([atom for monomial in self.terms for atom, _ in monomial])
            return self._atoms

    def __add__(self, other: Self) -> Self:
        return self.total((self, other))

    def __sub__(self, other: Self) -> Self:
        return self + other.scale(-1)

    def __mul__(self, other: Self) -> Self:
        terms: dict[frozenset[tuple[A, int]], Factor] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = self.product(left, right)
                terms[monomial] = terms.get(monomial, 0) + a * b
        return type(self)(terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.terms == other.terms

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset(self.terms.items()))
            return self._hash

    def __bool__(self) -> bool:
        return bool(self.terms)

    def scale(self, factor: Factor) -> Self:
        """This polynomial times ``factor``."""
        if factor == 1:
            return self
        return type(self)({monomial: value * factor for monomial, value in self.terms.items()})

    def split(self, inside: Callable[[A], bool]) -> dict[frozenset[tuple[A, int]], Self]:
        """Group by the part of each product whose atoms satisfy ``inside``: that part -> its coefficient."""
        return self.grouped(lambda monomial: frozenset(pair for pair in monomial if inside(pair[0])))

    def grouped(
        self, part: Callable[[frozenset[tuple[A, int]]], frozenset[tuple[A, int]]]
    ) -> dict[frozenset[tuple[A, int]], Self]:
        """Group by a part of each product: that part -> its coefficient."""
        parts: dict[frozenset[tuple[A, int]], dict[frozenset[tuple[A, int]], Factor]] = {}
        for monomial, factor in self.terms.items():
            chosen = part(monomial)
            parts.setdefault(chosen, {})[monomial - chosen] = factor
        return {chosen: type(self)(terms) for chosen, terms in parts.items()}


def ratio(above: Factor, below: Factor) -> Factor:
    """The exact quotient of two factors."""
    if type(above) is int and type(below) is int and above % below == 0:
        return above // below
    found = Fraction(above) / below
    return found.numerator if found.denominator == 1 else found


def extracted(
    terms: Mapping[frozenset[tuple[A, int]], Factor], first: Callable[[frozenset[tuple[A, int]]], Any] = lambda _: 0
) -> tuple[Factor, frozenset[tuple[A, int]], Mapping[frozenset[tuple[A, int]], Factor]]:
    """A number, a product and a sum whose product is ``terms``: the greatest common factors.

    Most terms of the sum are positive; of as many that are and are not, the one is that ``first`` sorts first.
    """
    number = content(terms.values())
    positive = sum([1 if factor > 0 else -1 for factor in terms.values()])
    if positive < 0 or (positive == 0 and terms[min(terms, key=first)] < 0):
        number = -number
    common = _common(terms)
    if number == 1 and not common:
        return number, common, terms
    rest = {}
    for product, factor in terms.items():
        kept = product - common if common <= product else _over(product, common)
        rest[kept] = ratio(factor, number)
    return number, common, rest


def _common(products: Iterable[frozenset[tuple[A, int]]]) -> frozenset[tuple[A, int]]:
    """The greatest product by which all can be divided."""
    first, *others = products
    common = {atom: exponent for atom, exponent in first if exponent > 0}
    for product in others:
        if not common:
            break
        powers = dict(product)
        common = {atom: min(exponent, powers[atom]) for atom, exponent in common.items() if powers.get(atom, 0) > 0}
    return frozenset(common.items())


def _over(product: frozenset[tuple[A, int]], divisor: frozenset[tuple[A, int]]) -> frozenset[tuple[A, int]]:
    """The quotient of two products."""
    powers = dict(divisor)
    left = [(atom, exponent - powers.get(atom, 0)) for atom, exponent in product]
    return frozenset([pair for pair in left if pair[1]])


def content(factors: Collection[Factor]) -> Factor:
    """The greatest number that leaves whole factors."""
    if all(type(one) is int for one in factors):
        return gcd(*factors)  # type: ignore[arg-type]
    return ratio(gcd(*[one.numerator for one in factors]), lcm(*[one.denominator for one in factors]))
