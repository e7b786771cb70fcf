"""Sparse polynomials over any hashable atoms, and their reduction by identities."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction
from functools import reduce
from itertools import chain
from math import gcd, lcm
from typing import Any, Self, TypeVar

Factor = int | Fraction  # a whole factor is an ``int``, which is much faster
Monomial = frozenset[tuple[Any, int]]
"""A product of atoms as (atom, exponent) pairs."""
CONSTANT: Monomial = frozenset()


class Poly:
    """An immutable polynomial: monomial -> rational factor. Equal sums compare equal.

    An atom with a true attribute ``idempotent``, such as a bracket, is its own square.
    """

    __slots__ = ("_atoms", "_hash", "terms")
    _atoms: frozenset[Any]
    _hash: int

    def __init__(self, terms: Mapping[Monomial, Factor]) -> None:
        self.terms = {monomial: factor for monomial, factor in terms.items() if factor}

    @classmethod
    def constant(cls, value: Factor) -> Self:
        """A constant polynomial."""
        return cls({CONSTANT: ratio(value, 1)})

    @classmethod
    def atom(cls, atom: Any, exponent: int = 1) -> Self:
        """The polynomial ``atom**exponent``."""
        return cls({frozenset(((atom, exponent),)): 1})

    @staticmethod
    def product(left: Monomial, right: Monomial) -> Monomial:
        """The product of two monomials."""
        if not left or not right:
            return left or right
        powers = dict(left)
        for atom, exponent in right:
            powers[atom] = powers.get(atom, 0) + exponent
        return frozenset((atom, 1 if getattr(atom, "idempotent", False) else e) for atom, e in powers.items() if e)

    @classmethod
    def total(cls, parts: Iterable[Self]) -> Self:
        """The sum of ``parts``."""
        return cls.summed(chain.from_iterable(part.terms.items() for part in parts))

    @classmethod
    def summed(cls, products: Iterable[tuple[Monomial, Factor]]) -> Self:
        """The sum of (monomial, factor) pairs; equal monomials merge."""
        terms: dict[Monomial, Factor] = {}
        for monomial, factor in products:
            terms[monomial] = terms.get(monomial, 0) + factor
        return cls(terms)

    @property
    def atoms(self) -> frozenset[Any]:
        """The set of all atoms (cached)."""
        try:
            return self._atoms
        except AttributeError:
            self._atoms = frozenset([atom for monomial in self.terms for atom, _ in monomial])
            return self._atoms

    def __add__(self, other: Self) -> Self:
        return self.total((self, other))

    def __sub__(self, other: Self) -> Self:
        return self + other.scale(-1)

    def __mul__(self, other: Self) -> Self:
        terms: dict[Monomial, Factor] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = self.product(left, right)
                terms[monomial] = terms.get(monomial, 0) + a * b
        return type(self)(terms)

    def __pow__(self, exponent: int) -> Self:
        return reduce(lambda found, _: found * self, range(exponent), self.constant(1))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.terms == other.terms

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset(self.terms.items()))
            return self._hash

    def __bool__(self) -> bool:
        return bool(self.terms)

    def scale(self, factor: Factor) -> Self:
        """This polynomial times ``factor``."""
        return self if factor == 1 else type(self)({monomial: value * factor for monomial, value in self.terms.items()})

    def split(self, inside: Callable[[Any], bool]) -> dict[Monomial, Self]:
        """Group terms by the part of each monomial whose atoms satisfy ``inside``: part -> coefficient."""
        return self.grouped(lambda monomial: frozenset(pair for pair in monomial if inside(pair[0])))

    def grouped(self, part: Callable[[Monomial], Monomial]) -> dict[Monomial, Self]:
        """Group terms by ``part(monomial)``: part -> coefficient."""
        parts: dict[Monomial, dict[Monomial, Factor]] = {}
        for monomial, factor in self.terms.items():
            chosen = part(monomial)
            parts.setdefault(chosen, {})[monomial - chosen] = factor
        return {chosen: type(self)(terms) for chosen, terms in parts.items()}

    def powers(self, atom: Any) -> dict[int, Self]:
        """Group terms by their exponent of ``atom``: exponent -> coefficient without ``atom``."""
        return {dict(chosen).get(atom, 0): part for chosen, part in self.split(lambda other: other == atom).items()}

    def without(self, ones: Collection[Any]) -> Self:
        """Substitute 1 for the atoms ``ones``."""
        return self.summed((frozenset(pair for pair in term if pair[0] not in ones), f) for term, f in self.terms.items())

    def over(self, divisor: Monomial, number: Factor = 1) -> Self:
        """The quotient by ``number`` times a monomial; exponents may become negative."""
        return self * type(self)({frozenset((atom, -exponent) for atom, exponent in divisor): ratio(1, number)})

    @property
    def number(self) -> Fraction | None:
        """The value of a constant polynomial; None if the polynomial is not constant."""
        return None if any(self.terms.keys() - {CONSTANT}) else Fraction(self.terms.get(CONSTANT, 0))

    @property
    def common(self) -> tuple[Monomial, Factor]:
        """The common factor of all terms: a monomial, and the greatest number that leaves integer factors."""
        return (common_monomial(self.terms), content(self.terms.values())) if self.terms else (CONSTANT, 1)

    @property
    def sign(self) -> int:
        """1 if all factors are positive, -1 if all are negative, else 0."""
        found = {1 if factor > 0 else -1 for factor in self.terms.values()}
        return found.pop() if len(found) == 1 else 0


def ratio(above: Factor, below: Factor) -> Factor:
    """Return the exact quotient of two factors: an int if it is whole, else a Fraction."""
    if type(above) is int and type(below) is int and above % below == 0:
        return above // below
    found = Fraction(above) / below
    return found.numerator if found.denominator == 1 else found


def extracted(
    terms: Mapping[Monomial, Factor], first: Callable[[Monomial], Any] = lambda _: 0
) -> tuple[Factor, Monomial, Mapping[Monomial, Factor]]:
    """Split ``terms`` into its greatest common number, its greatest common monomial, and the rest.

    The sign of the number makes most terms of the rest positive; on a tie, the term that ``first`` sorts first.
    """
    number = content(terms.values())
    positive = sum([1 if factor > 0 else -1 for factor in terms.values()])
    if positive < 0 or (positive == 0 and terms[min(terms, key=first)] < 0):
        number = -number
    common = _common(terms)
    if number == 1 and not common:
        return number, common, terms
    rest = {}
    for product, factor in terms.items():
        kept = product - common if common <= product else _over(product, common)
        rest[kept] = ratio(factor, number)
    return number, common, rest


def _common(products: Iterable[Monomial]) -> Monomial:
    """The greatest common divisor of monomials; negative exponents are ignored."""
    first, *others = products
    common = {atom: exponent for atom, exponent in first if exponent > 0}
    for product in others:
        if not common:
            break
        powers = dict(product)
        common = {atom: min(exponent, powers[atom]) for atom, exponent in common.items() if powers.get(atom, 0) > 0}
    return frozenset(common.items())


def _over(product: Monomial, divisor: Monomial) -> Monomial:
    """The quotient of two monomials; exponents may become negative."""
    powers = dict(divisor)
    left = [(atom, exponent - powers.get(atom, 0)) for atom, exponent in product]
    return frozenset([pair for pair in left if pair[1]])


def content(factors: Collection[Factor]) -> Factor:
    """Greatest common divisor of ``factors``: the largest number that leaves integers after division."""
    if all(type(one) is int for one in factors):
        return gcd(*factors)  # type: ignore[arg-type]
    return ratio(gcd(*[one.numerator for one in factors]), lcm(*[one.denominator for one in factors]))


def common_monomial(monomials: Iterable[Monomial]) -> Monomial:
    """The greatest common divisor of monomials, with every atom whose exponent is negative in any of them."""
    first, *others = map(dict, monomials)
    for powers in others:
        first = {atom: min(exponent, powers.get(atom, 0)) for atom, exponent in first.items()}
        first |= {atom: exponent for atom, exponent in powers.items() if exponent < 0 and atom not in first}
    return frozenset((atom, exponent) for atom, exponent in first.items() if exponent)


P = TypeVar("P", bound=Poly)


def reduced(polynomial: P, identity: P, weight: Callable[[Monomial], int]) -> P:
    """Subtract multiples of ``identity``, which is 0, where that reduces the sum of ``weight`` over terms."""
    weights = {part: weight(part) for part in identity.terms}
    if sum(any(part <= monomial for monomial in polynomial.terms) for part in weights if part) < 2:
        return polynomial
    terms = dict(polynomial.terms)
    for cofactor in _cofactors(polynomial, identity):
        places = {part: polynomial.product(cofactor, part) for part in identity.terms}
        if len(set(places.values())) < len(places):
            continue
        found = {part: terms.get(place, 0) for part, place in places.items()}
        multiples = {0, *(ratio(factor, identity.terms[part]) for part, factor in found.items())}  # others cancel no term
        whole = [one for one in multiples if isinstance(one, int)]
        shorter = min(whole, key=lambda times: (_cost(found, identity, weights, times), abs(times), times))
        for part, place in places.items():
            terms[place] = found[part] - shorter * identity.terms[part]
    return type(polynomial)(terms)


def _cofactors(polynomial: Poly, identity: Poly) -> list[Monomial]:
    """Return the monomials that map a term of ``identity`` to one of ``polynomial``, in a fixed order."""
    atoms = {atom for part in identity.terms for atom, _ in part}
    found = {
        monomial - part: None
        for monomial in polynomial.terms
        for part in identity.terms
        if part and part <= monomial and not any(atom in atoms for atom, _ in monomial - part)
    }
    return list(found)


def _cost(found: Mapping[Monomial, Factor], identity: Poly, weights: Mapping[Monomial, int], times: int) -> int:
    """Return the total weight of terms that remain in ``found`` after subtracting ``times * identity``."""
    return sum(weights[part] for part, factor in found.items() if factor != times * identity.terms[part])
