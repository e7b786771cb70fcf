"""Fits exact formulas in sizes and lengths to vectors over samples; a formula holds at all samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from symflops.draft.fit.formula import (
    Formula,
    Monomial,
    Vector,
    merge,
    monomial,
    number,
    products,
    sum_of_monomials,
    symbol,
    triple,
    words,
)
from symflops.draft.fit.rounding import Rounding

FEW_SYMBOLS = 16


@dataclass
class Fitter:
    """Finds formulas for vectors: the values of a number in all samples (runs with other configs).

    Attributes:
        symbols: The vector of each symbol that a formula may name.
        solo: For each symbol, the samples in which only its variable differs from the first sample: they reveal which
            symbols a vector depends on.
        known: The formulas found so far; None for a vector without one.
        quotients: Text -> vector of the rounded quotients that a formula may have as factors.
        factors: Vector -> vectors whose product it is, where this is known.
        constants: Numbers that a formula may divide.
        chunks: Numbers whose next multiple a length may be rounded up to.
        failed: For each vector without a formula, the number of quotients known when the fit failed.
        derived: Letter -> formula, for sizes of the spec that are not fields of the config.
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
        """Formula of a vector, cached; None if no formula fits."""
        if vector not in self.known or (self.known[vector] is None and self.failed.get(vector, 0) < len(self.quotients)):
            self.known[vector] = None  # a factor of itself has no formula
            self.failed[vector] = len(self.quotients)
            found = self.composed(vector) or self.search(vector)
            self.known[vector] = found
            if found is not None and found.divides:
                self.quotients[f"({found.text})"] = vector
        return self.known[vector]

    def composed(self, vector: Vector) -> Formula | None:
        """Formula of a vector with known factors, as their product; None if a simpler formula exists."""
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
        """Names of the symbols that a vector depends on, as samples show that vary one variable alone."""
        certain = [name for name, places in self.solo.items() if any(vector[place] != vector[0] for place in places)]
        # a variable that varies together with these may cancel out, such as a patch that grows with its image
        beside = [
            name
            for name, places in self.solo.items()
            if name not in certain and any(self.symbols[one][at] != self.symbols[one][0] for one in certain for at in places)
        ]
        return certain + beside if certain else list(self.symbols)

    def search(self, vector: Vector) -> Formula | None:
        """Search for a constant, symbol, monomial or short sum; then the same with new rounded quotients."""
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
