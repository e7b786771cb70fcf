"""Ways to factor a sum of products, over atoms that are numbered in the order of printing.

Hashing and sorting small numbers is much faster than hashing and sorting expressions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from symflops.formula.formula import MINUS, ONE, ZERO, Formula, Num, Power, Sum, Sym, operators
from symflops.formula.sparse import Factor, content, extracted, ratio
from symflops.formula.terms import factors_of, is_negative, numeral, plus, product_of, sum_of, times

Product = frozenset[tuple[int, int]]
"""A product of powers, as (number of an atom, exponent) pairs."""
Terms = Mapping[Product, Factor]
Piece = tuple[Product, Terms, Terms]
"""(product of counts, sum of counts, cost): the cost runs as often as the product times the sum."""
NOTHING: Product = frozenset()
MOST_CONDITIONS = 4  # no case distinction above this, because each condition doubles the number of cases


class Arrangements:
    """Writes a polynomial over ``atoms`` in several factored forms.

    Args:
        atoms: The atoms as formulas, in the order of printing.
        counts: Positions in ``atoms`` of those that count executions, such as a number of layers.
        choices: Positions in ``atoms`` of those that are conditions, 0 or 1.
        product: Function that multiplies two products.
    """

    def __init__(
        self,
        atoms: Sequence[Formula],
        counts: Collection[int],
        choices: Collection[int],
        product: Callable[[Product, Product], Product],
    ) -> None:
        self.atoms, self.counts, self.choices, self.product = atoms, counts, choices, product
        self.orders: dict[Product, tuple[int, list[tuple[int, int]]]] = {}

    def by_sizes(self, terms: Terms) -> Iterator[Formula]:
        """Yield forms ``executions * (sizes) + ...``, in which sizes with equal executions share a bracket.

        The first form treats conditions as part of the executions, the second as part of the sizes.
        """
        yield self._by_sizes(terms, {*self.counts, *self.choices})
        if any(atom in self.choices for product in terms for atom, _ in product):
            yield self._by_sizes(terms, self.counts)

    def _by_sizes(self, terms: Terms, counting: Collection[int]) -> Formula:
        alike: dict[frozenset[tuple[Product, Factor]], tuple[Terms, dict[Product, Factor]]] = {}
        for sizes, number, common, rest in self._numbers(split(terms, counting, inside=False)):
            _, place = alike.setdefault(frozenset(rest.items()), (rest, {}))
            place[sizes | common] = place.get(sizes | common, 0) + number
        pieces: list[Piece] = []
        for rest, place in alike.values():
            cost = {product: number for product, number in place.items() if number}
            if len(rest) == 1:
                pieces += [(counts, rest, part) for counts, part in split(cost, self.counts).items()]
            else:
                number, common, part = self.extracted(cost)
                counts = frozenset(pair for pair in common if pair[0] in self.counts)
                pieces.append((counts, rest, self.multiplied(part, common - counts, number)))
        return self._assembled(sorted(pieces, key=lambda piece: self.order(piece[0])))

    def by_counts(self, terms: Terms) -> Formula:
        """Return the form with one term per product of counts, times the factored sizes that run so often."""
        rows = split(terms, self.counts)
        return self._assembled([(counts, {NOTHING: 1}, rows[counts]) for counts in sorted(rows, key=self.order)])

    def _assembled(self, pieces: list[Piece]) -> Formula:
        """Return the sum of the products ``pieces``; a count that several of them contain is factored out."""
        uses = Counter(atom for counts, _, _ in pieces for atom, _ in counts)
        most = max(uses.values(), default=0)
        if most < 2:
            return summed(
                [times(self.term(counts, 1), self.condition(rest), self.nested(cost)) for counts, rest, cost in pieces]
            )
        atom = min(atom for atom, number in uses.items() if number == most)
        shared: list[Piece] = []
        others: list[Piece] = []
        for counts, rest, cost in pieces:
            kept, has = _divided(counts, atom)
            (shared if has else others).append((kept, rest, cost))
        number = content([factor for _, _, cost in shared for factor in cost.values()])
        if number != 1:
            shared = [(counts, rest, scaled(cost, ratio(1, number))) for counts, rest, cost in shared]
        return summed([times(numeral(number), self.atoms[atom], self._assembled(shared)), self._assembled(others)])

    def _numbers(self, rows: Mapping[Product, Terms]) -> Iterator[tuple[Product, Factor, Product, Terms]]:
        """Yield (sizes, number, product, sum): the sizes run ``number * product * sum`` times.

        ``rows`` maps each product of sizes to the sum of its executions. If the executions of one product of sizes contain
        those of another, the common part is a row of its own.
        """
        ordered = sorted(rows, key=self.order)
        whole = {sizes: self.extracted(rows[sizes]) for sizes in ordered}
        sums = {frozenset(rest.items()): rest for _, _, rest in whole.values() if len(rest) > 1}
        for sizes in ordered:
            left = rows[sizes]
            for rest in sums.values():
                found = self._contained(rest, left) if len(rest) < len(left) else None
                if found is not None:
                    part, number = found
                    left = {product: factor for product in left if (factor := left[product] - number * part.get(product, 0))}
                    _, common, same = self.extracted(part)
                    yield sizes, number, common, same
            if left:
                number, common, rest = whole[sizes] if left is rows[sizes] else self.extracted(left)
                yield sizes, number, common, rest

    def _contained(self, rest: Terms, whole: Terms) -> tuple[Terms, Factor] | None:
        """Find a part ``number * product * rest`` of ``whole``; returns (``product * rest``, number) or None."""
        some = next(iter(rest))
        for product, factor in whole.items():
            if some <= product:
                part, number = self.multiplied(rest, product - some), ratio(factor, rest[some])
                same = all(whole.get(term) == number * value for term, value in part.items())
                if same and len(part) == len(rest):  # a condition is its own square, so terms may have merged
                    return part, number
        return None

    def condition(self, terms: Terms) -> Formula:
        """Write a sum of counts and conditions factored, or as cases of its commonest condition if shorter."""
        number, common, rest = self.extracted(terms)
        forms = [self._nested(rest)]
        uses = Counter(atom for product in rest for atom, _ in product if atom in self.choices)
        if 0 < len(uses) <= MOST_CONDITIONS:
            forms.append(self._by_case(rest, min(uses, key=lambda atom: (-uses[atom], atom))))
        return times(self.term(common, number), min(forms, key=operators))

    def _by_case(self, terms: Terms, condition: int) -> Formula:
        """A sum as cases: ``[c]*a + (1 - [c])*b``, or ``(1 + k*[c])*b`` if ``a`` is a multiple of ``b``."""
        without = {product: factor for product, factor in terms.items() if all(atom != condition for atom, _ in product)}
        holds = dict(without)
        for product, factor in terms.items():
            if product not in without:
                rest = frozenset(pair for pair in product if pair[0] != condition)
                holds[rest] = holds.get(rest, 0) + factor
        holds, written = {product: factor for product, factor in holds.items() if factor}, self.atoms[condition]
        multiple = _multiple(holds, without)
        if multiple is not None:
            number = content(without.values())
            both = {NOTHING: number, frozenset(((condition, 1),)): number * (multiple - 1)}
            cases = self.plain({product: factor for product, factor in both.items() if factor})
            return times(self.condition(scaled(without, ratio(1, number))), cases)
        parts = ((written, holds), (negated(written), without))
        return summed([times(case, self.condition(part)) for case, part in parts if part])

    def nested(self, terms: Terms) -> Formula:
        """Write a sum with common factors before brackets, at every depth."""
        if not terms:
            return ZERO
        if len(terms) == 1:
            ((product, number),) = terms.items()
            if all(exponent > 0 for _, exponent in product):
                return times(self.term(product, number))
        number, common, rest = self.extracted(terms)
        return times(self.term(common, number), self._nested(rest))

    def _nested(self, terms: Terms) -> Formula:
        """Write a sum without a common factor; the atom that most terms contain is factored out."""
        uses = Counter(atom for product in terms for atom, exponent in product if exponent > 0)
        most = max(uses.values(), default=0)
        if most < 2:
            return self.plain(terms)
        atom = min(atom for atom, number in uses.items() if number == most)
        with_it: dict[Product, Factor] = {}
        others: dict[Product, Factor] = {}
        for product, factor in terms.items():
            kept, has = _divided(product, atom)
            (with_it if has else others)[kept] = factor
        return summed([times(self.atoms[atom], self.nested(with_it)), self.nested(others)])

    def plain(self, terms: Terms) -> Formula:
        """Write a sum of products: higher degree first, then by letters; negative terms last."""
        ordered = sorted(terms.items(), key=lambda item: (item[1] < 0, self.order(item[0])))
        return sum_of([self.term(product, factor) for product, factor in ordered])

    def term(self, product: Product, factor: Factor) -> Formula:
        """``factor`` times a product, as a formula."""
        powers = [
            self.atoms[atom] if exponent == 1 else Power(self.atoms[atom], exponent) for atom, exponent in sorted(product)
        ]
        return product_of([numeral(factor), *powers] if factor != 1 or not product else powers)

    def extracted(self, terms: Terms) -> tuple[Factor, Product, Terms]:
        """Split ``terms`` into its greatest common number, its greatest common product, and the rest."""
        return extracted(terms, self._plainness)

    def multiplied(self, terms: Terms, product: Product, number: Factor = 1) -> Terms:
        """``terms`` times a product and a number."""
        if not product:
            return scaled(terms, number)
        found: dict[Product, Factor] = {}
        for other, factor in terms.items():
            place = self.product(product, other)
            found[place] = found.get(place, 0) + factor * number
        return {place: factor for place, factor in found.items() if factor}

    def _plainness(self, product: Product) -> tuple[int, int, int, list[tuple[int, int]]]:
        """Sort key: products of letters before those with functions and conditions, simple ones first."""
        functions = [atom for atom, _ in product if not isinstance(self.atoms[atom], Sym)]
        return (len(functions), sum(operators(self.atoms[atom]) for atom in functions), *self.order(product))

    def order(self, product: Product) -> tuple[int, list[tuple[int, int]]]:
        """Sort key of a product within a sum: higher degree first, then by letters."""
        if product not in self.orders:
            atoms = sorted([(atom, -exponent) for atom, exponent in product])
            self.orders[product] = (sum([exponent for _, exponent in atoms]), atoms)
        return self.orders[product]


def split(terms: Terms, atoms: Collection[int], inside: bool = True) -> dict[Product, dict[Product, Factor]]:
    """Group terms by the part of each product in ``atoms``, or outside them: part -> coefficient."""
    found: dict[Product, dict[Product, Factor]] = {}
    for product, factor in terms.items():
        chosen = frozenset([pair for pair in product if (pair[0] in atoms) is inside])
        found.setdefault(chosen, {})[product - chosen] = factor
    return found


def scaled(terms: Terms, number: Factor) -> Terms:
    """``terms`` times a number."""
    return terms if number == 1 else {product: factor * number for product, factor in terms.items()}


def _divided(product: Product, atom: int) -> tuple[Product, bool]:
    """Return (``product`` divided by ``atom``, True), or (``product``, False) if ``atom`` is no factor."""
    for pair in product:
        if pair[0] == atom and pair[1] > 0:
            rest = product - {pair}
            return (rest if pair[1] == 1 else rest | {(atom, pair[1] - 1)}), True
    return product, False


def _multiple(one: Terms, other: Terms) -> Factor | None:
    """Return the number ``k`` with ``one == k * other``; None if there is no such number."""
    if not other or one.keys() != other.keys():
        return None
    some = next(iter(other))
    number = ratio(one[some], other[some])
    return number if all(one[product] == factor * number for product, factor in other.items()) else None


def negated(condition: Formula) -> Formula:
    """``1 - condition``."""
    return Sum((ONE, product_of((MINUS, condition))))


def summed(terms: Iterable[Formula]) -> Formula:
    """The flattened sum of formulas, with equal terms merged and negative terms last."""
    whole = plus([part for term in terms for part in _terms(term) if part != ZERO])
    return sum_of(sorted(whole.terms, key=is_negative)) if isinstance(whole, Sum) else whole


def _terms(formula: Formula) -> tuple[Formula, ...]:
    """Return the terms of a sum, or of a negated sum; any other formula is its only term."""
    if isinstance(formula, Sum):
        return formula.terms
    match factors_of(formula):
        case (Num(value), Sum(terms)) if value == -1:
            return tuple(times(MINUS, term) for term in terms)
    return (formula,)
