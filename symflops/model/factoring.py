"""Short forms of sparse polynomials: of several arrangements of a sum, the one with the fewest operators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from symflops.algebra.sparse import Factor, Poly, content, ratio
from symflops.model.arrangements import Arrangements, Product
from symflops.model.formula import Formula, Sum, operators
from symflops.model.formula_writer import FormulaWriter, sum_of
from symflops.model.terms import numeral, times


class ShortWriter(FormulaWriter):
    """Writes a polynomial in several arrangements, and keeps the one with the fewest operators."""

    def __init__(self, counts: Collection[Any] = ()) -> None:
        super().__init__(counts)
        self._short: dict[tuple[Poly, bool], Formula] = {}  # by the polynomial without its number, and whether that is 1

    @abstractmethod
    def is_choice(self, atom: Any) -> bool:
        """Whether an atom is a condition, 0 or 1."""

    def shortest(self, *equal: Poly) -> Formula:
        """The shortest form of polynomials that are equal; of equally short ones the first."""
        number = content(equal[0].terms.values()) if equal[0] else 1
        key = (equal[0].scale(ratio(1, number)), number == 1)
        if key not in self._short:
            whole = dict.fromkeys((key[0], *(polynomial.scale(ratio(1, number)) for polynomial in equal[1:])))
            self._short[key] = min(self.arrangements(whole), key=lambda form: operators(self.scaled(number, form)))
        return self.scaled(number, self._short[key])

    def arrangements(self, equal: Iterable[Poly]) -> Iterator[Formula]:
        """The arrangements of polynomials that are equal."""
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
        """``number`` times a formula: before a whole sum, or in each of its terms where that is no longer."""
        before = times(numeral(number), formula)
        if not (isinstance(formula, Sum) and isinstance(number, int)):
            return before
        return min(sum_of([times(numeral(number), term) for term in formula.terms]), before, key=operators)
