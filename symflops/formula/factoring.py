"""Expands formulas to sparse polynomials and writes them in a fixed order or their shortest form, without sympy.

An atom is a letter or an opaque formula: a bracket, a rounded quotient, a count of iterations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import reduce
from typing import Any

from symflops.formula.arrangements import Arrangements, Product
from symflops.formula.formula import ONE, Bracket, Formula, Num, Power, Prod, Sum, Sym, operators, symbols
from symflops.formula.sparse import Factor, Monomial, Poly, content, ratio
from symflops.formula.terms import factors_of, is_negative, numeral, product_of, sum_of, times


class FormulaWriter(ABC):
    """Writes polynomials over any atoms as formulas; ``counts`` are the atoms that count executions.

    Of several factored forms of a sum, :meth:`shortest` keeps the one with the fewest operators.
    """

    def __init__(self, counts: Collection[Any] = ()) -> None:
        self.counts = frozenset(counts)
        self.keys: dict[Any, tuple[int, str]] = {}
        self._short: dict[tuple[Poly, bool], Formula] = {}  # by the polynomial without its number, and whether that is 1

    def key(self, atom: Any) -> tuple[int, str]:
        """Cached sort key of an atom within a product."""
        if atom not in self.keys:
            self.keys[atom] = self.place(atom)
        return self.keys[atom]

    @abstractmethod
    def place(self, atom: Any) -> tuple[int, str]:
        """Return the sort key of an atom: its rank in the order of printing, and its text."""

    @abstractmethod
    def atom(self, atom: Any) -> Formula:
        """Convert an atom to a formula."""

    @abstractmethod
    def is_choice(self, atom: Any) -> bool:
        """Whether an atom is a condition, 0 or 1."""

    def group(self, counts: Monomial, poly: Poly) -> Formula:
        """Write ``counts * poly`` with common factors first: ``number * counts * common * (rest)``."""
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
        """``factor`` times a monomial, as a formula."""
        pairs = [(self.atom(atom), exponent) for atom, exponent in sorted(monomial, key=lambda pair: self.key(pair[0]))]
        powers = [base if exponent == 1 else Power(base, exponent) for base, exponent in pairs]
        return product_of([numeral(factor), *powers] if factor != 1 or not monomial else powers)

    def plain(self, polynomial: Poly) -> Formula:
        """Write a sum of products: higher degree first, then by letters; negative terms last."""

        def order(item: tuple[Monomial, Factor]) -> tuple[bool, int, list[tuple[tuple[int, str], int]]]:
            atoms = sorted((self.key(atom), -exponent) for atom, exponent in item[0])
            return (item[1] < 0, -sum(exponent for _, exponent in item[0]), atoms)

        return sum_of(self.term(*item) for item in sorted(polynomial.terms.items(), key=order))

    def factored(self, polynomial: Poly) -> Formula:
        """Write one term per product of counts, each with its common factor before a bracket."""
        groups = polynomial.split(lambda atom: atom in self.counts)

        def order(monomial: Monomial) -> tuple[int, list[tuple[int, str]]]:
            return (-len(monomial), sorted(self.key(atom) for atom, _ in monomial))

        terms = [self.group(counts, groups[counts]) for counts in sorted(groups, key=order)]
        return sum_of(sorted(terms, key=is_negative))

    def shortest(self, *equal: Poly) -> Formula:
        """Return the formula with the fewest operators among all forms of the polynomials ``equal``."""
        number = content(equal[0].terms.values()) if equal[0] else 1
        key = (equal[0].scale(ratio(1, number)), number == 1)
        if key not in self._short:
            whole = dict.fromkeys((key[0], *(polynomial.scale(ratio(1, number)) for polynomial in equal[1:])))
            self._short[key] = min(self.arrangements(whole), key=lambda form: operators(self.scaled(number, form)))
        return self.scaled(number, self._short[key])

    def arrangements(self, equal: Iterable[Poly]) -> Iterator[Formula]:
        """Yield all factored forms of the polynomials ``equal``, which equal each other."""
        equal = tuple(equal)
        atoms = sorted({atom for one in equal for monomial in one.terms for atom, _ in monomial}, key=self.key)
        numbers = {atom: number for number, atom in enumerate(atoms)}
        counts = frozenset(number for atom, number in numbers.items() if atom in self.counts)
        choices = frozenset(number for atom, number in numbers.items() if self.is_choice(atom))

        def product(left: Product, right: Product) -> Product:
            both = (frozenset([(atoms[atom], exponent) for atom, exponent in side]) for side in (left, right))
            return frozenset([(numbers[atom], exponent) for atom, exponent in equal[0].product(*both)])

        writer = Arrangements([self.atom(atom) for atom in atoms], counts, choices, product)
        for one in equal:
            terms = {
                frozenset([(numbers[atom], exponent) for atom, exponent in monomial]): factor
                for monomial, factor in one.terms.items()
            }
            yield from writer.by_sizes(terms)
            yield writer.by_counts(terms)
            yield self.factored(one)

    def scaled(self, number: Factor, formula: Formula) -> Formula:
        """Multiply a formula by ``number``: before a sum, or inside each of its terms if that is not longer."""
        before = times(numeral(number), formula)
        if not (isinstance(formula, Sum) and isinstance(number, int)):
            return before
        return min(sum_of([times(numeral(number), term) for term in formula.terms]), before, key=operators)


Rule = Callable[[Formula], Poly | None]


def expanded(formula: Formula, rule: Rule = lambda _: None) -> Poly:
    """Expand ``formula`` to a polynomial; ``rule`` gives the polynomial of an atom, None to keep it."""
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


class Writer(FormulaWriter):
    """Writes polynomials whose atoms are formulas; ``letters`` gives the order of letters."""

    def __init__(self, letters: Iterable[str], counts: Collection[Formula] = ()) -> None:
        super().__init__(counts)
        self.rank = {name: place for place, name in enumerate(dict.fromkeys(letters))}

    def place(self, atom: Formula) -> tuple[int, str]:
        ranks = [self.rank[name] for name in symbols(atom) if name in self.rank]
        return min(ranks, default=len(self.rank)), atom.name if isinstance(atom, Sym) else repr(atom)

    def atom(self, atom: Formula) -> Formula:
        return atom

    def is_choice(self, atom: Formula) -> bool:
        return isinstance(atom, Bracket)
