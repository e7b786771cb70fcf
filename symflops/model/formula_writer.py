"""Writes sparse polynomials as formulas in a fixed order, whatever their atoms are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Generic, TypeVar

from symflops.algebra.sparse import Factor, Sparse
from symflops.model.formula import ZERO, Formula, Num, Power, Prod, Sum

A = TypeVar("A")
P = TypeVar("P", bound=Sparse[Any])


class FormulaWriter(ABC, Generic[A, P]):
    """Writes polynomials of type ``P`` over atoms of type ``A``; ``counts`` are the atoms that count executions."""

    counts: frozenset[A]

    @abstractmethod
    def key(self, atom: A) -> tuple[int, str]:
        """The place of an atom in a product, as a sort key."""

    @abstractmethod
    def atom(self, atom: A) -> Formula:
        """An atom as a formula."""

    @abstractmethod
    def group(self, counts: frozenset[tuple[A, int]], polynomial: P) -> Formula:
        """``counts`` times a polynomial, with the common factor of its terms before a bracket of the rest."""

    def term(self, monomial: frozenset[tuple[A, int]], factor: Factor) -> Formula:
        """One product."""
        factors: list[Formula] = [Num(Fraction(factor))] if factor != 1 or not monomial else []
        for atom, exponent in sorted(monomial, key=lambda pair: self.key(pair[0])):
            base = self.atom(atom)
            factors.append(base if exponent == 1 else Power(base, exponent))
        return product_of(factors)

    def plain(self, polynomial: P) -> Formula:
        """A sum of products: higher degree first, then by letters; negative terms last."""

        def order(item: tuple[frozenset[tuple[A, int]], Factor]) -> tuple[bool, int, list[tuple[tuple[int, str], int]]]:
            atoms = sorted((self.key(atom), -exponent) for atom, exponent in item[0])
            return (item[1] < 0, -sum(exponent for _, exponent in item[0]), atoms)

        return sum_of(self.term(*item) for item in sorted(polynomial.terms.items(), key=order))

    def factored(self, polynomial: P) -> Formula:
        """Per product of counts, the common factor of all terms times a bracket of the rest."""
        groups = polynomial.split(lambda atom: atom in self.counts)

        def order(monomial: frozenset[tuple[A, int]]) -> tuple[int, list[tuple[int, str]]]:
            return (-len(monomial), sorted(self.key(atom) for atom, _ in monomial))

        terms = [self.group(counts, groups[counts]) for counts in sorted(groups, key=order)]
        return sum_of(sorted(terms, key=is_negative))


def factors_of(formula: Formula) -> tuple[Formula, ...]:
    """The factors of a product; any other formula is its own factor."""
    return formula.factors if isinstance(formula, Prod) else (formula,)


def product_of(factors: Sequence[Formula]) -> Formula:
    """The product of ``factors`` in this order; one factor stands alone."""
    return factors[0] if len(factors) == 1 else Prod(tuple(factors))


def sum_of(terms: Iterable[Formula]) -> Formula:
    """The sum of ``terms`` in this order; one term stands alone."""
    found = tuple(terms)
    return ZERO if not found else found[0] if len(found) == 1 else Sum(found)


def is_negative(formula: Formula) -> bool:
    """Whether a term prints with a minus; such terms follow the others."""
    first = factors_of(formula)[0]
    return isinstance(first, Num) and first.value < 0
