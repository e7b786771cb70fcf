"""Exact formulas for vectors of whole numbers: what a dimension is in sizes and lengths, over all samples or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import prod
from typing import Any

from symflops.draft.fit.formula import Formula, Monomial, Vector, affine, bracket, degree_of, merge, powers, ratio, solve, words
from symflops.draft.fit.proportion import proportion
from symflops.draft.fit.three_terms import triple

MOST_TERMS, MOST_OF_THREE, FEW_TERMS = 24, 36, 3


@dataclass
class Fitter:
    """Finds formulas for vectors over samples.

    ``symbols`` are vectors of what a formula may name; ``solo`` says for each symbol which samples differ from the first one
    in its variable alone, so that what a vector depends on is known before it is fitted.
    """

    symbols: Mapping[str, Vector]
    solo: Mapping[str, Sequence[int]]
    known: dict[Vector, Formula | None] = field(default_factory=dict)
    quotients: dict[str, Vector] = field(default_factory=dict)
    factors: dict[Vector, tuple[Vector, ...]] = field(default_factory=dict)
    constants: tuple[int, ...] = ()
    chunks: tuple[int, ...] = ()
    failed: dict[Vector, int] = field(default_factory=dict)
    derived: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of samples."""
        return len(next(iter(self.symbols.values()), ()))

    def formula(self, vector: Vector) -> Formula | None:
        """The formula of a vector; None where none is found."""
        if vector not in self.known or (self.known[vector] is None and self.failed.get(vector, 0) < len(self.quotients)):
            self.known[vector] = None  # a factor of itself has no formula
            self.failed[vector] = len(self.quotients)
            found = self.composed(vector) or self.search(vector)
            self.known[vector] = found
            if found is not None and any(power < 0 for monomial, _ in found.terms for _, power in monomial):
                self.quotients[f"({found.text})"] = vector
        return self.known[vector]

    def composed(self, vector: Vector) -> Formula | None:
        """The product of the formulas of the factors that a vector is known to be made of, where it has no simpler one."""
        factors = [one for one in self.factors.get(vector, ()) if len(set(one)) > 1 or one[0] != 1]
        if len(factors) < 2 or vector in self.symbols.values() or vector in self.quotients.values() or len(set(vector)) == 1:
            return None
        terms: dict[Monomial, Fraction] = {(): Fraction(1)}
        for factor in factors:
            found = self.formula(factor)
            if found is None:
                return None
            own = found.terms
            if any(power < 0 or part.denominator > 1 for monomial, part in own for _, power in (*monomial, ("", 1))):
                own = ((((f"({found.text})", 1),), Fraction(1)),)
            if len(own) > 1 and len(factors) > 1:
                own = ((((f"({found.text})", 1),), Fraction(1)),)
            terms = {merge(a, b): x * y for a, x in terms.items() for b, y in own}
        return Formula(tuple(terms.items()))

    def relevant(self, vector: Vector) -> list[str]:
        """The symbols that a vector depends on, as far as samples that move one variable tell."""
        told = [name for name, places in self.solo.items() if any(vector[place] != vector[0] for place in places)]
        # what moves with one of these may have cancelled it, as a patch does that grows with the sides of its grid
        beside = [
            name
            for name, places in self.solo.items()
            if name not in told and any(self.symbols[one][place] != self.symbols[one][0] for one in told for place in places)
        ]
        return told + beside if told else list(self.symbols)

    def search(self, vector: Vector) -> Formula | None:
        """Constant, symbol, monomial, sums of few monomials; then the same with rounded quotients."""
        if len(set(vector)) == 1:
            return Formula((((), Fraction(vector[0])),) if vector[0] else ())
        for name, values in self.symbols.items():
            if values == vector:
                return Formula(((((name, 1),), Fraction(1)),))
        for name, values in self.quotients.items():
            if values == vector:
                return Formula(((((name, 1),), Fraction(1)),))
        names = self.relevant(vector)
        base = {name: self.symbols[name] for name in names}
        pool = {name: values for name, values in self.quotients.items() if self.within(name, names)}
        found = self.single(vector, base, pool)
        if found is None:
            found = self.sums(vector, {**base, **pool})
        if found is None and len(names) < len(self.symbols):
            found = self.single(vector, dict(self.symbols), self.quotients) if len(self.symbols) < 16 else None
        if found is None and 3 <= len(base) <= 7:
            found = triple(vector, products(base))
        if found is None:
            found = self.rounded(vector, base, pool)
        return found

    def within(self, quotient: str, names: Iterable[str]) -> bool:
        """Whether a quotient is made of given symbols."""
        return set(words(quotient)) & set(self.symbols) <= set(names)

    def single(self, vector: Vector, base: Mapping[str, Vector], pool: Mapping[str, Vector]) -> Formula | None:
        """One monomial: of symbols and known quotients, with whole powers up to four; then with one division."""
        if any(value <= 0 for value in vector):
            return None
        atoms = {**pool, **base}
        for degree in (1, 2, 3, 4, 5):
            if len(atoms) ** degree > 60000:
                break
            for chosen in combinations_with_replacement(atoms, degree):
                factor = ratio(vector, [atoms[name] for name in chosen], [])
                if factor is not None and factor.denominator == 1:
                    return Formula(((powers(chosen, ()), factor),))
        for up in (1, 2, 3):
            for down in (0, 1, 2, 3):
                if len(base) ** (up + down) > 30000:
                    continue
                for below in combinations_with_replacement(base, down):
                    for above in combinations_with_replacement([name for name in base if name not in below], up):
                        factor = ratio(vector, [base[name] for name in above], [base[name] for name in below])
                        if factor is not None and factor.denominator <= 64:
                            return Formula(((powers(above, below), factor),))
        return None

    def sums(self, vector: Vector, atoms: Mapping[str, Vector]) -> Formula | None:
        """A sum of monomials: of two, then of as many as samples allow; a long one only where no short one of products is."""
        longer: Formula | None = None
        for degree in (1, 2, 3, 4):
            sizes = range(1, degree + 1)
            monomials = [(), *(chosen for size in sizes for chosen in combinations_with_replacement(atoms, size))]
            if len(monomials) > 400:
                return longer
            columns = {
                chosen: tuple(map(prod, zip(*(atoms[name] for name in chosen), strict=True))) if chosen else (1,) * len(vector)
                for chosen in monomials
            }
            pair = self.pairs(vector, columns) or self.shifted(vector, columns)
            if longer is not None:
                return longer if pair is None or len(pair.terms) >= len(longer.terms) else pair
            if pair is not None:
                return pair
            if len(monomials) <= min(MOST_TERMS, len(set(zip(*atoms.values(), strict=True))) - 3):
                solved = solve(vector, list(columns.values()))
                if solved is not None and all(factor.denominator <= 16 for factor in solved):
                    terms = [(powers(chosen, ()), factor) for chosen, factor in zip(columns, solved, strict=True) if factor]
                    if len(terms) <= 6:
                        longer = Formula(tuple(sorted(terms, key=degree_of)))
                    if longer is not None and (degree > 1 or len(terms) <= FEW_TERMS):
                        return longer
            elif degree == 2 and len(monomials) <= MOST_OF_THREE and len(vector) > 8:
                three = triple(vector, columns)
                if three is not None:
                    return three
        return None

    def pairs(self, vector: Vector, columns: Mapping[tuple[str, ...], Vector]) -> Formula | None:
        """A sum of two monomials with small factors."""
        items = list(columns.items())
        every: Iterable[Any] = combinations(items, 2)
        if len(items) > 160:  # one of them is simple
            every = ((one, other) for one in items if len(one[0]) > 1 for other in items if len(other[0]) < 2)
        for (a, first), (b, second) in every:
            place = next((p for p in range(1, len(vector)) if first[0] * second[p] != first[p] * second[0]), None)
            if place is None:
                continue
            determinant = first[0] * second[place] - first[place] * second[0]
            x = vector[0] * second[place] - vector[place] * second[0]
            y = first[0] * vector[place] - first[place] * vector[0]
            if all(x * p + y * q == determinant * value for p, q, value in zip(first, second, vector, strict=True)):
                terms = [(powers(name, ()), Fraction(value, determinant)) for name, value in ((a, x), (b, y)) if value]
                if all(factor.denominator <= 16 for _, factor in terms):
                    return Formula(tuple(sorted(terms, key=degree_of)))
        return None

    def shifted(self, vector: Vector, columns: Mapping[tuple[str, ...], Vector]) -> Formula | None:
        """A sum of two monomials and a constant."""
        if len(columns) > 80:
            return None
        change = tuple(value - vector[0] for value in vector)
        changes = {name: tuple(value - column[0] for value in column) for name, column in columns.items() if name}
        for (a, first), (b, second) in combinations(changes.items(), 2):
            place = next((p for p in range(1, len(vector)) if first[p]), None)
            if place is None:
                continue
            other = next((p for p in range(1, len(vector)) if first[place] * second[p] != first[p] * second[place]), None)
            if other is None:
                continue
            determinant = first[place] * second[other] - first[other] * second[place]
            x = change[place] * second[other] - change[other] * second[place]
            y = first[place] * change[other] - first[other] * change[place]
            if (
                not x
                or not y
                or any(x * p + y * q != determinant * value for p, q, value in zip(first, second, change, strict=True))
            ):
                continue
            one, two = Fraction(x, determinant), Fraction(y, determinant)
            rest = vector[0] - one * columns[a][0] - two * columns[b][0]
            if max(one.denominator, two.denominator) <= 4 and rest.denominator == 1:
                terms = [(powers(name, ()), factor) for name, factor in ((a, one), (b, two))]
                terms.sort(key=degree_of)
                return Formula((*terms, ((), rest)) if rest else tuple(terms))
        return None

    def rounded(self, vector: Vector, base: Mapping[str, Vector], pool: Mapping[str, Vector]) -> Formula | None:
        """With one or two rounded quotients that are not known yet, or a smaller of two."""
        fresh = dict(self.candidates(base, pool))
        for name, values in fresh.items():
            if values == vector:
                self.quotients[name] = values
                return Formula(((((name, 1),), Fraction(1)),))
        largest = max(vector)
        for name, values in {**self.symbols, **pool}.items():
            if largest > 1 and max(values) > largest and all(min(a, largest) == b for a, b in zip(values, vector, strict=True)):
                return Formula(((((f"min({name}, {largest})", 1),), Fraction(1)),))
        part = proportion(vector, {**self.symbols, **pool})
        if part is not None:
            return part
        usable = {name: values for name, values in fresh.items() if len(set(values)) > 1}
        for name, values in usable.items():
            found = self.with_quotient(vector, {name: values}, {**base, **pool})
            if found is None and len(base) + len(pool) <= 6:
                found = self.around(vector, {name: values, **base, **pool})
            if found is not None:
                self.quotients[name] = values
                return found
        if len(usable) <= 60:
            for one, other in combinations(usable, 2):
                found = self.with_quotient(vector, {one: usable[one], other: usable[other]}, base, 2)
                if found is not None:
                    return found
        for (one, x), (other, y) in combinations(self.symbols.items(), 2):
            for word, chosen in (("min", min), ("max", max)):
                if tuple(map(chosen, x, y)) == vector:
                    return Formula(((((f"{word}({one}, {other})", 1),), Fraction(1)),))
        return None

    def around(self, vector: Vector, atoms: Mapping[str, Vector]) -> Formula | None:
        """A sum of two monomials of at most two atoms."""
        return self.pairs(vector, {(): (1,) * len(vector), **products(atoms)})

    def with_quotient(
        self, vector: Vector, new: Mapping[str, Vector], others: Mapping[str, Vector], least: int = 1
    ) -> Formula | None:
        """A monomial, or a monomial and a constant, in which new quotients stand."""
        product = tuple(map(prod, zip(*new.values(), strict=True)))
        for degree in (0, 1, 2) if least == 1 else (0, 1):
            for chosen in combinations_with_replacement(others, degree):
                columns = [product, *(others[name] for name in chosen)]
                factor = ratio(vector, columns, [])
                shift = 0
                if factor is None and least == 1 and degree < 2:
                    factor, shift = affine(vector, columns)
                if factor is not None and factor.denominator == 1:
                    self.quotients.update(new)
                    terms = [(powers((*new, *chosen), ()), factor)]
                    return Formula(tuple([*terms, ((), Fraction(shift))] if shift else terms))
                if least == 1 and degree == 1 and factor is None:
                    continue
        return None

    def candidates(self, base: Mapping[str, Vector], pool: Mapping[str, Vector]) -> Iterable[tuple[str, Vector]]:
        """Rounded quotients of symbols, of known quotients too, and the smaller of two."""
        tops: dict[str, Vector] = {**base, **pool}
        for one, values in tops.items():
            for other, divisor in base.items():
                if one == other or other in words(one):
                    continue
                name = bracket(one)
                yield f"({name}//{other})", tuple(a // b for a, b in zip(values, divisor, strict=True))
                yield f"ceil({one}, {other})", tuple(-(-a // b) for a, b in zip(values, divisor, strict=True))
                yield f"min({one}, {other})", tuple(map(min, values, divisor))
                yield f"(({name} - 1)//{other})", tuple((a - 1) // b for a, b in zip(values, divisor, strict=True))
            for chunk in self.chunks:
                yield f"ceil({one}, {chunk})", tuple(-(-a // chunk) for a in values)
            for divisor_number in (2, 3, 4, 8, 14, 16, 32):
                name = bracket(one)
                yield f"({name}//{divisor_number})", tuple(a // divisor_number for a in values)
                yield f"(({name} + 1)//{divisor_number})", tuple((a + 1) // divisor_number for a in values)
                yield f"(({name} - 1)//{divisor_number})", tuple((a - 1) // divisor_number for a in values)
        for constant in self.constants:
            for other, divisor in base.items():
                yield f"({constant}//{other})", tuple(constant // b for b in divisor)
                yield f"ceil({constant}, {other})", tuple(-(-constant // b) for b in divisor)
        for (a, x), (b, y) in combinations(base.items(), 2):
            yield f"max({a}, {b})", tuple(map(max, x, y))


def products(atoms: Mapping[str, Vector]) -> dict[tuple[str, ...], Vector]:
    """The products of at most two atoms."""
    chosen = [one for size in (1, 2) for one in combinations_with_replacement(atoms, size)]
    return {one: tuple(map(prod, zip(*(atoms[name] for name in one), strict=True))) for one in chosen}
