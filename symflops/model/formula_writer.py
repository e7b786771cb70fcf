"""Writes sparse polynomials as formulas in a fixed order, whatever their atoms are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from typing import Any

from symflops.algebra.sparse import Factor, Monomial, Poly
from symflops.model.formula import ONE, ZERO, Formula, Num, Power, Prod, Sum


class FormulaWriter(ABC):
    """Writes polynomials; ``counts`` are the atoms that count executions."""

    def __init__(self, counts: Collection[Any] = ()) -> None:
        self.counts = frozenset(counts)
        self.keys: dict[Any, tuple[int, str]] = {}

    def key(self, atom: Any) -> tuple[int, str]:
        """The place of an atom in a product, as a sort key."""
        if atom not in self.keys:
            self.keys[atom] = self.place(atom)
        return self.keys[atom]

    @abstractmethod
    def place(self, atom: Any) -> tuple[int, str]:
        """The rank and the text of an atom."""

    @abstractmethod
    def atom(self, atom: Any) -> Formula:
        """An atom as a formula."""

    def group(self, counts: Monomial, poly: Poly) -> Formula:
        """``number * counts * common * (rest)``."""
        shared, number = poly.common
        if poly.sign < 0:
            number = -number
        outside = self.term(poly.product(counts, shared), number)
        rest = self.plain(poly.over(shared, number))
        if rest == ONE:
            return outside
        if isinstance(outside, Num) and abs(outside.value) == 1:
            return self.plain(poly)
        return Prod((*factors_of(outside), rest))

    def term(self, monomial: Monomial, factor: Factor) -> Formula:
        """One product."""
        factors: list[Formula] = [Num(Fraction(factor))] if factor != 1 or not monomial else []
        for atom, exponent in sorted(monomial, key=lambda pair: self.key(pair[0])):
            base = self.atom(atom)
            factors.append(base if exponent == 1 else Power(base, exponent))
        return product_of(factors)

    def plain(self, polynomial: Poly) -> Formula:
        """A sum of products: higher degree first, then by letters; negative terms last."""

        def order(item: tuple[Monomial, Factor]) -> tuple[bool, int, list[tuple[tuple[int, str], int]]]:
            atoms = sorted((self.key(atom), -exponent) for atom, exponent in item[0])
            return (item[1] < 0, -sum(exponent for _, exponent in item[0]), atoms)

        return sum_of(self.term(*item) for item in sorted(polynomial.terms.items(), key=order))

    def factored(self, polynomial: Poly) -> Formula:
        """Per product of counts, the common factor of all terms times a bracket of the rest."""
        groups = polynomial.split(lambda atom: atom in self.counts)

        def order(monomial: Monomial) -> tuple[int, list[tuple[int, str]]]:
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
