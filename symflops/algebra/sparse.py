"""Sparse polynomials over any atoms: the arithmetic that polynomials of expressions and of formulas share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Generic, Self, TypeVar

A = TypeVar("A")
Factor = int | Fraction  # a whole factor is an ``int``, which is much faster


class Sparse(ABC, Generic[A]):
    """A dictionary from products of atoms to rational factors; immutable, equal if it is the same sum.

    A subclass chooses the atoms, and how two products of them multiply.
    """

    __slots__ = ("terms",)

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
        return hash(frozenset(self.terms.items()))

    def __bool__(self) -> bool:
        return bool(self.terms)

    def scale(self, factor: Factor) -> Self:
        """This polynomial times ``factor``."""
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
    found = Fraction(above) / below
    return found.numerator if found.denominator == 1 else found
