"""Fits exact formulas in sizes and lengths to vectors over samples; a formula holds at all samples.

The fitter tries monomials and sums first, then new rounded quotients, minima, maxima, and rounded shares of a size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import gcd

from symflops.draft.fit.formula import (
    Formula,
    Monomial,
    Vector,
    affine,
    bracket,
    merge,
    monomial,
    number,
    pair_of,
    powers,
    product,
    products,
    ratio,
    sum_of_monomials,
    symbol,
    triple,
    words,
)

DIVISORS = (2, 3, 4, 8, 14, 16, 32)
MOST_PAIRED = 60
FEW_ATOMS = 6
LEAST_VALUES = 4
LARGEST = 64
FEW = (2, 3, 4)

Atoms = Mapping[str, Vector]  # text of a symbol or rounded quotient -> its value in each sample


@dataclass(frozen=True, slots=True)
class Rounding:
    """Finds formulas with rounded quotients for vectors (the values of a number in all samples).

    Attributes:
        symbols: The vector of each symbol that a formula may name.
        quotients: Text -> vector of the known rounded quotients; a fit adds the new ones it uses.
        constants: Numbers that a formula may divide.
        chunks: Numbers whose next multiple a length may be rounded up to.
    """

    symbols: Atoms
    quotients: dict[str, Vector]
    constants: Sequence[int] = ()
    chunks: Sequence[int] = ()

    def formula(self, vector: Vector, base: Atoms, pool: Atoms) -> Formula | None:
        """Fit a formula with one or two new rounded quotients; None if none fits.

        They are made of symbols in ``base`` and known quotients in ``pool``.
        """
        fresh = dict(self.candidates(base, pool))
        name = next((name for name, values in fresh.items() if values == vector), None)
        if name is not None:
            self.quotients[name] = vector
            return symbol(name)
        simple = limited(vector, {**self.symbols, **pool}) or proportion(vector, {**self.symbols, **pool})
        if simple is not None:
            return simple
        usable = {name: values for name, values in fresh.items() if len(set(values)) > 1}
        return self.with_one(vector, usable, {**base, **pool}) or self.with_two(vector, usable, base) or self.extreme(vector)

    def with_one(self, vector: Vector, usable: Atoms, atoms: Atoms) -> Formula | None:
        """Fit a formula that uses one of the ``usable`` quotients; None if none fits."""
        for name, values in usable.items():
            found = self.with_quotients(vector, {name: values}, atoms)
            if found is None and len(atoms) <= FEW_ATOMS:
                found = pair_of(vector, {(): (1,) * len(vector), **products({name: values, **atoms})})
            if found is not None:
                self.quotients[name] = values
                return found
        return None

    def with_two(self, vector: Vector, usable: Atoms, atoms: Atoms) -> Formula | None:
        """Fit a formula that uses two of the ``usable`` quotients; None if none fits."""
        pairs = combinations(usable, 2) if len(usable) <= MOST_PAIRED else ()
        tries = (self.with_quotients(vector, {one: usable[one], other: usable[other]}, atoms) for one, other in pairs)
        return next(filter(None, tries), None)

    def with_quotients(self, vector: Vector, new: Atoms, others: Atoms) -> Formula | None:
        """Fit a monomial of all ``new`` rounded quotients and up to two ``others``; None if none fits.

        If there is only one new quotient, a constant may be added.
        """
        single = len(new) == 1
        own = product(new.values())
        for degree in (0, 1, 2) if single else (0, 1):
            for chosen in combinations_with_replacement(others, degree):
                columns = [own, *(others[name] for name in chosen)]
                factor, shift = ratio(vector, columns, []), 0
                if factor is None and single and degree < 2:
                    factor, shift = affine(vector, columns)
                if factor is not None and factor.denominator == 1:
                    self.quotients.update(new)
                    return Formula(((powers((*new, *chosen), ()), factor), *number(shift).terms))
        return None

    def extreme(self, vector: Vector) -> Formula | None:
        """Fit the minimum or maximum of two symbols; None if none fits."""
        found = (
            symbol(f"{chosen.__name__}({one}, {other})")
            for (one, x), (other, y) in combinations(self.symbols.items(), 2)
            for chosen in (min, max)
            if tuple(map(chosen, x, y)) == vector
        )
        return next(found, None)

    def candidates(self, base: Atoms, pool: Atoms) -> Iterator[tuple[str, Vector]]:
        """Pairs of text and values of rounded quotients, minima and maxima to try.

        They are made of symbols in ``base`` and known quotients in ``pool``.
        """
        for one, values in {**base, **pool}.items():
            for other, divisor in base.items():
                if one != other and other not in words(one):
                    yield from by_symbol(one, values, other, divisor)
            for chunk in self.chunks:
                yield f"ceil({one}, {chunk})", tuple(-(-a // chunk) for a in values)
            for size in DIVISORS:
                yield from by_number(bracket(one), values, size)
        for constant in self.constants:
            for other, divisor in base.items():
                yield f"({constant}//{other})", tuple(constant // b for b in divisor)
                yield f"ceil({constant}, {other})", tuple(-(-constant // b) for b in divisor)
        for (a, x), (b, y) in combinations(base.items(), 2):
            yield f"max({a}, {b})", tuple(map(max, x, y))


def by_symbol(one: str, values: Vector, other: str, divisor: Vector) -> Iterator[tuple[str, Vector]]:
    """Pairs of text and values: ``one`` divided by symbol ``other``, rounded, and the minimum of both."""
    yield f"({bracket(one)}//{other})", tuple(a // b for a, b in zip(values, divisor, strict=True))
    yield f"ceil({one}, {other})", tuple(-(-a // b) for a, b in zip(values, divisor, strict=True))
    yield f"min({one}, {other})", tuple(map(min, values, divisor))
    yield f"(({bracket(one)} - 1)//{other})", tuple((a - 1) // b for a, b in zip(values, divisor, strict=True))


def by_number(name: str, values: Vector, divisor: int) -> Iterator[tuple[str, Vector]]:
    """Pairs of text and values: ``name``, also plus or minus one, divided by a constant and rounded down."""
    yield f"({name}//{divisor})", tuple(a // divisor for a in values)
    yield f"(({name} + 1)//{divisor})", tuple((a + 1) // divisor for a in values)
    yield f"(({name} - 1)//{divisor})", tuple((a - 1) // divisor for a in values)


def limited(vector: Vector, atoms: Atoms) -> Formula | None:
    """Fit the minimum of a symbol or rounded quotient and a constant; None if none fits."""
    largest = max(vector)
    wide = {name: values for name, values in atoms.items() if max(values) > largest > 1}
    name = next((name for name, values in wide.items() if tuple(min(a, largest) for a in values) == vector), None)
    return None if name is None else symbol(f"min({name}, {largest})")


def proportion(vector: Vector, atoms: Atoms) -> Formula | None:
    """Fit a fraction of ``x``, rounded to a multiple of a unit; None if none fits.

    ``x`` is a symbol or rounded quotient, or a product of two; the unit is a number, a symbol or a rounded quotient.
    """
    if len(set(vector)) < LEAST_VALUES or min(vector) < 1:
        return None
    for multiple, column in multiples(vector, atoms):
        for degree in (1, 2):
            for chosen in combinations_with_replacement(atoms, degree):
                if multiple in chosen:
                    continue
                whole = product(atoms[name] for name in chosen)
                for up in (True, False):
                    share = simplest(vector, whole, column, up) if up or multiple.isdigit() else None
                    if share is not None:
                        return written(share, chosen, multiple, up)
    return None


def multiples(vector: Vector, atoms: Atoms) -> Iterator[tuple[str, Vector]]:
    """Pairs of text and values of the units to which a vector may be rounded.

    They are common divisors, and symbols or quotients that divide the vector at every sample.
    """
    common = gcd(*vector)
    for size in dict.fromkeys((1, *(few for few in FEW if common % few == 0), common)):
        yield str(size), (size,) * len(vector)
    for name, values in atoms.items():
        if len(set(values)) > 1 and all(value % part == 0 for value, part in zip(vector, values, strict=True) if part):
            yield name, values


def simplest(vector: Vector, whole: Vector, multiple: Vector, up: bool) -> Fraction | None:
    """Simplest factor of ``whole`` that gives ``vector`` if rounded to units of ``multiple``, or None.

    ``up`` says whether it is rounded up or down.
    """
    low, high = Fraction(0), Fraction(10**9)
    for value, size, step in zip(vector, whole, multiple, strict=True):
        if size <= 0 or step <= 0:
            return None
        low = max(low, Fraction(value - step if up else value, size))
        high = min(high, Fraction(value if up else value + step, size))
        if low >= high:
            return None
    # the interval is closed at the end that rounding keeps, and open at the other
    shares = [share for share in (high if up else low, between(low, high)) if simple(share)]
    found = min(shares, key=lambda share: share.denominator, default=None)
    return found if found is not None and found > 0 and found != 1 else None


def simple(share: Fraction) -> bool:
    """Whether numerator and denominator are both at most 64."""
    return share.numerator <= LARGEST and share.denominator <= LARGEST


def between(low: Fraction, high: Fraction) -> Fraction:
    """Fraction with the smallest denominator strictly between ``low`` and ``high``."""
    whole = low.numerator // low.denominator
    if whole + 1 < high:
        return Fraction(whole + 1)
    if low == whole:
        rest = high - whole
        return whole + Fraction(1, rest.denominator // rest.numerator + 1)
    return whole + 1 / between(1 / (high - whole), 1 / (low - whole))


def written(share: Fraction, chosen: tuple[str, ...], multiple: str, up: bool) -> Formula:
    """Formula of the product of ``chosen`` times ``share``, rounded to a multiple of ``multiple``.

    ``up`` says whether it is rounded up or down.
    """
    unit, sizes = (int(multiple), ()) if multiple.isdigit() else (1, (multiple,))
    part = share / unit
    top = "*".join(([str(part.numerator)] if part.numerator > 1 else []) + list(chosen))
    bottom = "*".join([*([str(part.denominator)] if part.denominator > 1 else []), *sizes])
    atom = top if not bottom else f"ceil({top}, {bottom})" if up else f"({top}//{bottom})"
    return Formula(((powers((*sizes, atom), ()), Fraction(unit)),))


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
        """Names of the symbols that a vector depends on, by the samples in which one variable changes alone.

        All symbols if none of these samples changes the vector.
        """
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
