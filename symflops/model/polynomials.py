"""Formulas multiplied out and factored again: polynomials over atoms of formulas, without sympy.

An atom is a letter or an opaque formula: a bracket, a rounded quotient, a count of iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from functools import reduce
from math import gcd, lcm

from symflops.algebra.sparse import Factor, Sparse, ratio
from symflops.model.factoring import ShortWriter as Shortening
from symflops.model.formula import ONE, Bracket, Formula, Num, Power, Prod, Sum, Sym, symbols
from symflops.model.formula_writer import FormulaWriter, factors_of

Monomial = frozenset[tuple[Formula, int]]
CONSTANT: Monomial = frozenset()


class Poly(Sparse[Formula]):
    """A polynomial over atoms of formulas, with rational factors and integer exponents."""

    __slots__ = ()

    @classmethod
    def constant(cls, value: Factor) -> Poly:
        """A constant polynomial."""
        return cls({CONSTANT: ratio(value, 1)})

    @classmethod
    def atom(cls, formula: Formula, exponent: int = 1) -> Poly:
        """A formula as an atom."""
        return cls({frozenset(((formula, exponent),)): 1})

    @staticmethod
    def product(left: Monomial, right: Monomial) -> Monomial:
        """The product of two monomials; a bracket is its own square."""
        if not left or not right:
            return left or right
        powers = dict(left)
        for atom, exponent in right:
            powers[atom] = powers.get(atom, 0) + exponent
        return frozenset((atom, 1 if isinstance(atom, Bracket) else e) for atom, e in powers.items() if e)

    def __pow__(self, exponent: int) -> Poly:
        return reduce(lambda found, _: found * self, range(exponent), Poly.constant(1))

    def without(self, brackets: frozenset[Formula]) -> Poly:
        """The polynomial with ``brackets`` set to 1."""
        terms: dict[Monomial, Factor] = {}
        for monomial, factor in self.terms.items():
            kept = frozenset(pair for pair in monomial if pair[0] not in brackets)
            terms[kept] = terms.get(kept, 0) + factor
        return Poly(terms)

    def powers(self, atom: Formula) -> dict[int, Poly]:
        """The coefficients by exponent of ``atom``."""
        return {dict(chosen).get(atom, 0): part for chosen, part in self.split(lambda other: other == atom).items()}

    def over(self, divisor: Monomial, number: Factor = 1) -> Poly:
        """The quotient by ``number`` times a monomial; exponents may become negative."""
        inverse = frozenset((atom, -exponent) for atom, exponent in divisor)
        return self * Poly({inverse: ratio(1, number)})

    @property
    def number(self) -> Fraction | None:
        """The value of a constant polynomial, else None."""
        return None if any(self.terms.keys() - {CONSTANT}) else Fraction(self.terms.get(CONSTANT, 0))

    @property
    def common(self) -> tuple[Monomial, Fraction]:
        """The common factor of all terms: a monomial, and the greatest number that leaves integer factors."""
        return (common_monomial(self.terms), common_number(self.terms.values())) if self.terms else (CONSTANT, Fraction(1))


def common_monomial(monomials: Iterable[Monomial]) -> Monomial:
    """The greatest monomial by which all can be divided; a negative exponent in one is common to all."""
    first, *others = map(dict, monomials)
    for powers in others:
        first = {atom: min(exponent, powers.get(atom, 0)) for atom, exponent in first.items()}
        first |= {atom: exponent for atom, exponent in powers.items() if exponent < 0 and atom not in first}
    return frozenset((atom, exponent) for atom, exponent in first.items() if exponent)


def common_number(numbers: Collection[Factor]) -> Fraction:
    """The greatest number by which all can be divided with integer results."""
    return Fraction(gcd(*(abs(n.numerator) for n in numbers)), lcm(*(n.denominator for n in numbers)))


Rule = Callable[[Formula], "Poly | None"]


def expanded(formula: Formula, rule: Rule = lambda _: None) -> Poly:
    """``formula`` multiplied out; ``rule`` returns the polynomial of an atom, or None for the atom itself."""
    match formula:
        case Num():
            return Poly.constant(formula.value)
        case Sum():
            return Poly.total(expanded(part, rule) for part in formula.terms)
        case Prod():
            return reduce(Poly.__mul__, (expanded(factor, rule) for factor in formula.factors))
        case Power():
            base = expanded(formula.base, rule)
            if formula.exponent >= 0:
                return base**formula.exponent
            if len(base.terms) == 1:
                ((monomial, factor),) = base.terms.items()
                return Poly.constant(1).over(monomial, factor) ** -formula.exponent
            return Poly.atom(Writer(()).plain(base), formula.exponent)
    found = rule(formula)
    return Poly.atom(formula) if found is None else found


class Writer(FormulaWriter[Formula, Poly]):
    """Writes polynomials over formulas; ``letters`` is the order of letters."""

    def __init__(self, letters: Iterable[str], counts: frozenset[Formula] = frozenset()) -> None:
        self.rank = {name: place for place, name in enumerate(dict.fromkeys(letters))}
        self.counts = counts
        self.keys: dict[Formula, tuple[int, str]] = {}

    def key(self, atom: Formula) -> tuple[int, str]:
        """The place of an atom in a product, as a sort key."""
        if atom not in self.keys:
            ranks = [self.rank[name] for name in symbols(atom) if name in self.rank]
            self.keys[atom] = (min(ranks, default=len(self.rank)), atom.name if isinstance(atom, Sym) else repr(atom))
        return self.keys[atom]

    def atom(self, atom: Formula) -> Formula:
        return atom

    def group(self, counts: Monomial, poly: Poly) -> Formula:
        """``number * counts * common * (rest)``."""
        shared, content = poly.common
        if all(factor < 0 for factor in poly.terms.values()):
            content = -content
        outside = self.term(Poly.product(counts, shared), content)
        rest = self.plain(poly.over(shared, content))
        if rest == ONE:
            return outside
        if isinstance(outside, Num) and abs(outside.value) == 1:
            return self.plain(poly)
        return Prod((*factors_of(outside), rest))


class ShortWriter(Writer, Shortening[Formula, Poly]):
    """Writes polynomials over formulas in the arrangement with the fewest operators."""

    def __init__(self, letters: Iterable[str], counts: frozenset[Formula] = frozenset()) -> None:
        super().__init__(letters, counts)
        self._short = {}

    def is_choice(self, atom: Formula) -> bool:
        """Whether an atom is a condition, 0 or 1."""
        return isinstance(atom, Bracket)


def signs(poly: Poly) -> int:
    """1 or -1 if all terms have that sign, else 0."""
    found = {1 if factor > 0 else -1 for factor in poly.terms.values()}
    return found.pop() if len(found) == 1 else 0
