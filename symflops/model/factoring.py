"""Short forms of sparse polynomials: of several arrangements of a sum, the one with the fewest operators."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import reduce
from math import gcd, lcm

from symflops.algebra.sparse import Factor, ratio
from symflops.model.formula import MINUS, ONE, ZERO, Formula, Num, Sum, Sym, operators
from symflops.model.formula_writer import A, FormulaWriter, P, factors_of, is_negative, product_of, sum_of
from symflops.model.terms import plus, times

Monomial = frozenset[tuple[A, int]]
Piece = tuple[Monomial[A], P, P]
"""Counts, a sum of counts, and what runs as often as their product."""
MOST_CONDITIONS = 4  # a sum of more is not pulled apart into cases, of which each doubles the number


class ShortWriter(FormulaWriter[A, P]):
    """Writes a polynomial in several arrangements, and keeps the one with the fewest operators."""

    _short: dict[tuple[P, bool], Formula]  # by the polynomial without its number, and whether that is 1

    @abstractmethod
    def is_choice(self, atom: A) -> bool:
        """Whether an atom is a condition, 0 or 1."""

    def shortest(self, *equal: P) -> Formula:
        """The shortest form of polynomials that are equal; of equally short ones the first."""
        number = content(equal[0].terms.values()) if equal[0] else 1
        key = (equal[0].scale(ratio(1, number)), number == 1)
        if key not in self._short:
            whole = [polynomial.scale(ratio(1, number)) for polynomial in equal]
            forms = [form for one in whole for form in (*self.by_sizes(one), self.by_counts(one), self.factored(one))]
            self._short[key] = min(forms, key=lambda form: operators(self.scaled(number, form)))
        return self.scaled(number, self._short[key])

    def scaled(self, number: Factor, formula: Formula) -> Formula:
        """``number`` times a formula: before a whole sum, or in each of its terms where that is no longer."""
        before = times(Num(Fraction(number)), formula)
        if not (isinstance(formula, Sum) and isinstance(number, int)):
            return before
        return min(sum_of(times(Num(Fraction(number)), term) for term in formula.terms), before, key=operators)

    def by_sizes(self, polynomial: P) -> tuple[Formula, Formula]:
        """Sums of products, each of a number of executions and of all sizes that run so often.

        Conditions that no number of executions has belong to the numbers in the first, and to the sizes in the second.
        """
        return (
            self._by_sizes(polynomial, lambda atom: not (atom in self.counts or self.is_choice(atom))),
            self._by_sizes(polynomial, lambda atom: atom not in self.counts),
        )

    def _by_sizes(self, polynomial: P, is_size: Callable[[A], bool]) -> Formula:
        make = type(polynomial)
        rows = polynomial.split(is_size)
        alike: dict[P, dict[Monomial[A], Factor]] = {}
        for sizes, number, count in self._numbers(rows):
            _, common, rest = self.extracted(count)
            place = alike.setdefault(rest, {})
            place[sizes | common] = place.get(sizes | common, 0) + number
        pieces: list[Piece[A, P]] = []
        for rest, terms in alike.items():
            cost = make(terms)
            if len(rest.terms) == 1:
                pieces += [(counts, rest, part) for counts, part in cost.split(lambda atom: atom in self.counts).items()]
            else:
                number, common, part = self.extracted(cost)
                counts = frozenset(pair for pair in common if pair[0] in self.counts)
                pieces.append((counts, rest, make({common - counts: number}) * part))
        return self._assembled(sorted(pieces, key=lambda piece: self.order(piece[0])))

    def by_counts(self, polynomial: P) -> Formula:
        """A sum of products, each of a product of counts and of the sizes that run so often, factored."""
        one = type(polynomial)({frozenset(): 1})
        rows = polynomial.split(lambda atom: atom in self.counts)
        return self._assembled([(counts, one, rows[counts]) for counts in sorted(rows, key=self.order)])

    def _assembled(self, pieces: list[Piece[A, P]]) -> Formula:
        """The sum of products of numbers of executions and sizes, with a number that many of them share before a bracket."""
        uses = Counter(atom for counts, _, _ in pieces for atom, _ in counts)
        most = max(uses.values(), default=0)
        if most < 2:
            return summed(times(self.term(counts, 1), self.condition(rest), self.nested(cost)) for counts, rest, cost in pieces)
        atom = min((atom for atom, number in uses.items() if number == most), key=self.key)
        shared: list[Piece[A, P]] = []
        others: list[Piece[A, P]] = []
        for counts, rest, cost in pieces:
            powers = dict(counts)
            exponent = powers.pop(atom, 0)
            kept = powers if exponent < 2 else powers | {atom: exponent - 1}
            (shared if exponent else others).append((frozenset(kept.items()), rest, cost))
        number = content(factor for _, _, cost in shared for factor in cost.terms.values())
        shared = [(counts, rest, cost.scale(ratio(1, number))) for counts, rest, cost in shared]
        return summed([times(Num(Fraction(number)), self.atom(atom), self._assembled(shared)), self._assembled(others)])

    def _numbers(self, rows: Mapping[Monomial[A], P]) -> Iterator[tuple[Monomial[A], Factor, P]]:
        """Sizes, a number, and how often they run that many times: whole numbers of executions, and what is left of them.

        If the number of executions of one product of sizes is part of that of another one, it is taken out of it.
        """
        ordered = sorted(rows, key=self.order)
        sums = {rest: None for sizes in ordered if len((rest := self.extracted(rows[sizes])[2]).terms) > 1}
        for sizes in ordered:
            left = rows[sizes]
            for rest in sums:
                found = self._contained(rest, left) if len(rest.terms) < len(left.terms) else None
                if found is not None:
                    part, number = found
                    left = left - part.scale(number)
                    yield sizes, number, part
            if left:
                number, common, rest = self.extracted(left)
                yield sizes, number, type(left)({common: 1}) * rest

    @staticmethod
    def _contained(rest: P, whole: P) -> tuple[P, Factor] | None:
        """A multiple of ``rest`` by a product, and by a number, that is part of the terms of ``whole``; None if none is."""
        some = next(iter(rest.terms))
        for monomial, factor in whole.terms.items():
            if some <= monomial:
                part, number = type(rest)({monomial - some: 1}) * rest, ratio(factor, rest.terms[some])
                same = all(whole.terms.get(term) == number * value for term, value in part.terms.items())
                if same and len(part.terms) == len(rest.terms):  # a condition is its own square, so terms may have merged
                    return part, number
        return None

    def condition(self, polynomial: P) -> Formula:
        """A polynomial of counts and conditions: what holds with the condition that most terms have, and what without."""
        number, common, rest = self.extracted(polynomial)
        forms = [self._nested(rest)]
        uses = Counter(atom for monomial in rest.terms for atom, _ in monomial if self.is_choice(atom))
        if 0 < len(uses) <= MOST_CONDITIONS:
            forms.append(self._by_case(rest, min(uses, key=lambda atom: (-uses[atom], self.key(atom)))))
        return times(self.term(common, number), min(forms, key=operators))

    def _by_case(self, polynomial: P, condition: A) -> Formula:
        """``[c]*a + (1 - [c])*b``, or ``(1 + k*[c])*b`` if ``a`` is a multiple of ``b``."""
        here: Monomial[A] = frozenset(((condition, 1),))
        parts = polynomial.split(lambda atom: atom == condition)
        without = parts.get(frozenset(), type(polynomial)({}))
        with_it = (part for power, part in parts.items() if power)  # a condition is its own square
        holds, written = reduce(type(polynomial).__add__, with_it, without), self.atom(condition)
        multiple = _multiple(holds, without)
        if multiple is not None:
            number = content(without.terms.values())
            both = type(polynomial)({frozenset(): number, here: number * (multiple - 1)})
            return times(self.condition(without.scale(ratio(1, number))), self.plain(both))
        cases = ((written, holds), (negated(written), without))
        return summed(times(case, self.condition(part)) for case, part in cases if part)

    def nested(self, polynomial: P) -> Formula:
        """A polynomial with common factors outside of brackets, at every depth."""
        if not polynomial:
            return ZERO
        number, common, rest = self.extracted(polynomial)
        return times(self.term(common, number), self._nested(rest))

    def _nested(self, polynomial: P) -> Formula:
        """A polynomial without a common factor, by the atom of most of its terms."""
        uses = Counter(atom for monomial in polynomial.terms for atom, exponent in monomial if exponent > 0)
        most = max(uses.values(), default=0)
        if most < 2:
            return self.plain(polynomial)
        atom = min((atom for atom, number in uses.items() if number == most), key=self.key)
        with_it, others = {}, {}
        for monomial, factor in polynomial.terms.items():
            powers = dict(monomial)
            exponent = powers.pop(atom, 0)
            if exponent > 0:
                kept = [*powers.items(), *([(atom, exponent - 1)] if exponent > 1 else [])]
                with_it[frozenset(kept)] = factor
            else:
                others[monomial] = factor
        make = type(polynomial)
        return summed([times(self.atom(atom), self.nested(make(with_it))), self.nested(make(others))])

    def extracted(self, polynomial: P) -> tuple[Factor, Monomial[A], P]:
        """A number, a product and a polynomial whose product is ``polynomial``: the greatest common factors of its terms."""
        number = content(polynomial.terms.values())
        positive = sum(1 if factor > 0 else -1 for factor in polynomial.terms.values())
        if positive < 0 or (positive == 0 and polynomial.terms[min(polynomial.terms, key=self._plainness)] < 0):
            number = -number
        common = dict(next(iter(polynomial.terms)))
        for monomial in polynomial.terms:
            powers = dict(monomial)
            common = {atom: min(exponent, powers[atom]) for atom, exponent in common.items() if powers.get(atom, 0) > 0}
            common = {atom: exponent for atom, exponent in common.items() if exponent > 0}
        rest = {}
        for monomial, factor in polynomial.terms.items():
            left = ((atom, exponent - common.get(atom, 0)) for atom, exponent in monomial)
            rest[frozenset((atom, exponent) for atom, exponent in left if exponent)] = ratio(factor, number)
        return number, frozenset(common.items()), type(polynomial)(rest)

    def _plainness(self, monomial: Monomial[A]) -> tuple[int, int, int, list[tuple[tuple[int, str], int]]]:
        """A sort key by which numbers and letters come before functions and conditions, simple ones before others."""
        functions = [atom for atom, _ in monomial if not isinstance(self.atom(atom), Sym)]
        return (len(functions), sum(operators(self.atom(atom)) for atom in functions), *self.order(monomial))

    def order(self, monomial: Monomial[A]) -> tuple[int, list[tuple[tuple[int, str], int]]]:
        """The place of a product in a sum: higher degree first, then by letters."""
        atoms = sorted((self.key(atom), -exponent) for atom, exponent in monomial)
        return (-sum(exponent for _, exponent in monomial), atoms)


def content(factors: Iterable[Factor]) -> Factor:
    """The greatest number that leaves whole factors."""
    found = [Fraction(factor) for factor in factors]
    return ratio(gcd(*(abs(one.numerator) for one in found)), lcm(*(one.denominator for one in found)))


def _multiple(one: P, other: P) -> Factor | None:
    """The number by which ``other`` must be multiplied to give ``one``; None if there is none."""
    if not other or one.terms.keys() != other.terms.keys():
        return None
    some = next(iter(other.terms))
    number = ratio(one.terms[some], other.terms[some])
    return number if other.scale(number) == one else None


def negated(condition: Formula) -> Formula:
    """``1 - condition``."""
    return Sum((ONE, product_of((MINUS, condition))))


def summed(terms: Iterable[Formula]) -> Formula:
    """A sum of formulas without brackets around sums in it; negative terms last."""
    whole = plus([part for term in terms for part in _terms(term) if part != ZERO])
    return sum_of(sorted(whole.terms, key=is_negative)) if isinstance(whole, Sum) else whole


def _terms(formula: Formula) -> tuple[Formula, ...]:
    """The terms of a sum, or of a sum with a minus before it; any other formula is its own term."""
    if isinstance(formula, Sum):
        return formula.terms
    match factors_of(formula):
        case (Num(value), Sum(terms)) if value == -1:
            return tuple(times(MINUS, term) for term in terms)
    return (formula,)
