"""Fits exact formulas to vectors: what a dimension is in sizes and lengths, over all samples or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from symflops.draft.fit.formula import Formula, Monomial, Vector, merge, number, products, symbol, words
from symflops.draft.fit.monomials import monomial, sum_of_monomials, triple
from symflops.draft.fit.rounding import Rounding

FEW_SYMBOLS = 16


@dataclass
class Fitter:
    """Finds formulas for vectors over samples.

    Attributes:
        symbols: The vectors of what a formula may name.
        solo: For each symbol, the samples that differ from the first one in its variable alone: they show what a vector
            depends on before it is fitted.
        known: The formulas found so far; None for a vector that has none.
        quotients: Rounded quotients that a formula may have as factors.
        factors: Vectors that are known to be products of others.
        constants: Numbers that may be divided.
        chunks: Numbers whose next multiple a length may be rounded up to.
        failed: For each vector without a formula, how many quotients were known then.
        derived: Sizes that are named after a formula.
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

    def formula(self, vector: Vector) -> Formula | None:
        """The formula of a vector; None if none is found."""
        if vector not in self.known or (self.known[vector] is None and self.failed.get(vector, 0) < len(self.quotients)):
            self.known[vector] = None  # a factor of itself has no formula
            self.failed[vector] = len(self.quotients)
            found = self.composed(vector) or self.search(vector)
            self.known[vector] = found
            if found is not None and found.divides:
                self.quotients[f"({found.text})"] = vector
        return self.known[vector]

    def composed(self, vector: Vector) -> Formula | None:
        """The product of the formulas of the factors that a vector is known to have, unless it has a simpler formula."""
        factors = [one for one in self.factors.get(vector, ()) if len(set(one)) > 1 or one[0] != 1]
        simple = len(set(vector)) == 1 or vector in self.symbols.values() or vector in self.quotients.values()
        if len(factors) < 2 or simple:
            return None
        terms: dict[Monomial, Fraction] = {(): Fraction(1)}
        for factor in factors:
            found = self.formula(factor)
            if found is None:
                return None
            if len(found.terms) > 1 or found.rounds:
                found = symbol(f"({found.text})")
            terms = {merge(a, b): x * y for a, x in terms.items() for b, y in found.terms}
        return Formula(tuple(terms.items()))

    def relevant(self, vector: Vector) -> list[str]:
        """The symbols that a vector depends on, as far as samples that move one variable show."""
        certain = [name for name, places in self.solo.items() if any(vector[place] != vector[0] for place in places)]
        # what moves with one of these may have cancelled it, as a patch does that grows with the sides of its grid
        beside = [
            name
            for name, places in self.solo.items()
            if name not in certain and any(self.symbols[one][at] != self.symbols[one][0] for one in certain for at in places)
        ]
        return certain + beside if certain else list(self.symbols)

    def search(self, vector: Vector) -> Formula | None:
        """A constant, a symbol, a monomial, or a sum of few monomials; then the same with new rounded quotients."""
        if len(set(vector)) == 1:
            return number(vector[0])
        for name, values in (*self.symbols.items(), *self.quotients.items()):
            if values == vector:
                return symbol(name)
        names = self.relevant(vector)
        base = {name: self.symbols[name] for name in names}
        pool = {name: values for name, values in self.quotients.items() if set(words(name)) & set(self.symbols) <= set(names)}
        found = monomial(vector, base, pool) or sum_of_monomials(vector, {**base, **pool})
        if found is None and len(names) < len(self.symbols) < FEW_SYMBOLS:
            found = monomial(vector, self.symbols, self.quotients)
        if found is None and 3 <= len(base) <= 7:
            found = triple(vector, products(base))
        return found or Rounding(self.symbols, self.quotients, self.constants, self.chunks).formula(vector, base, pool)
