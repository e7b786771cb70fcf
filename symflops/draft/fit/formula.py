"""Formulas (sums of monomials in sizes, lengths and rounded quotients), exact vector arithmetic, and fits.

Here a formula without new rounded quotients is fitted: one monomial, or a sum of two, three or more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import comb, lcm, prod
from typing import Any

Vector = tuple[int, ...]
Monomial = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Formula:
    """A sum of monomials, each with a rational factor.

    A monomial is a product of powers of atoms: sizes, lengths, and rounded quotients in parentheses.
    """

    terms: tuple[tuple[Monomial, Fraction], ...]

    @property
    def text(self) -> str:
        """Formula as an expression of the spec language."""
        if len(self.terms) == 1 and self.rounds:
            monomial, factor = self.terms[0]
            above = piece(tuple((atom, power) for atom, power in monomial if power > 0), factor.numerator)
            below = piece(tuple((atom, -power) for atom, power in monomial if power < 0), factor.denominator)
            return f"{above}//{bracket(below)}"
        denominator = lcm(*(factor.denominator for _, factor in self.terms))
        pieces = [piece(monomial, int(factor * denominator)) for monomial, factor in self.terms] or ["0"]
        text = pieces[0] + "".join(f" - {one[1:]}" if one.startswith("-") else f" + {one}" for one in pieces[1:])
        return f"({text})//{denominator}" if self.rounds else text

    @property
    def divides(self) -> bool:
        """Whether a term divides by a symbol."""
        return any(power < 0 for monomial, _ in self.terms for _, power in monomial)

    @property
    def rounds(self) -> bool:
        """Whether a term divides by a symbol or a number, so that the text is a quotient rounded down."""
        return self.divides or any(factor.denominator > 1 for _, factor in self.terms)

    @property
    def atoms(self) -> set[str]:
        """The sizes, lengths and rounded quotients in all terms."""
        return {atom for monomial, _ in self.terms for atom, _ in monomial}


def number(value: int) -> Formula:
    """Constant formula."""
    return Formula((((), Fraction(value)),) if value else ())


def symbol(name: str) -> Formula:
    """Formula that consists of the size, length or rounded quotient ``name``."""
    return Formula(((((name, 1),), Fraction(1)),))


def sum_of(terms: Iterable[tuple[Monomial, Fraction]]) -> Formula:
    """Formula with ``terms`` sorted by descending degree."""
    return Formula(tuple(sorted(terms, key=lambda term: -sum(power for _, power in term[0]))))


def bracket(text: str) -> str:
    """``text`` as a factor, in parentheses unless it is a name or a number."""
    return text if text.translate({ord(letter): "" for letter in "_[]"}).isalnum() else f"({text})"


def piece(monomial: Monomial, factor: int) -> str:
    """Text of a monomial times an integer factor, such as ``-2*a**2*b``."""
    words = [atom if power == 1 else f"{atom}**{power}" for atom, power in monomial]
    if not words:
        return str(factor)
    if factor in (1, -1):
        return ("-" if factor < 0 else "") + "*".join(words)
    return "*".join([str(factor), *words])


def words(text: str) -> list[str]:
    """Names and numbers in an expression."""
    return "".join(letter if letter.isalnum() or letter in "_[]" else " " for letter in text).split()


def powers(above: Iterable[str], below: Iterable[str]) -> Monomial:
    """Monomial that is the product of the symbols ``above`` divided by that of the symbols ``below``."""
    found = Counter(above)
    found.subtract(below)
    return tuple((name, power) for name, power in found.items() if power)


def merge(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials."""
    found = Counter(dict(a))
    found.update(dict(b))
    return tuple((name, power) for name, power in found.items() if power)


def product(columns: Iterable[Vector]) -> Vector:
    """The product of vectors, sample by sample."""
    return tuple(map(prod, zip(*columns, strict=True)))


def products(atoms: Mapping[str, Vector], sizes: Iterable[int] = (1, 2)) -> dict[tuple[str, ...], Vector]:
    """Names of factors -> their product, for all products of one or two of ``atoms``.

    ``sizes`` has the numbers of factors.
    """
    chosen = [one for size in sizes for one in combinations_with_replacement(atoms, size)]
    return {one: product(atoms[name] for name in one) for one in chosen}


def ratio(vector: Vector, above: Sequence[Vector], below: Sequence[Vector]) -> Fraction | None:
    """Nonzero ``c`` with ``vector == c * product(above) / product(below)`` at all samples, or None."""
    top = bottom = 0
    for place, value in enumerate(vector):
        up = value
        for column in below:
            up *= column[place]
        down = 1
        for column in above:
            down *= column[place]
        if not down:
            return None
        if place == 0:
            top, bottom = up, down
        elif up * bottom != top * down:
            return None
    return Fraction(top, bottom) if top else None


def affine(vector: Vector, columns: Sequence[Vector]) -> tuple[Fraction | None, int]:
    """Fit ``vector = factor * product(columns) + shift`` at all samples; returns (factor, shift).

    ``columns`` are vectors. (None, 0) if none fits with an integer shift of at most 64.
    """
    products = product(columns)
    place = next((p for p in range(1, len(vector)) if products[p] != products[0]), None)
    if place is None:
        return None, 0
    factor = Fraction(vector[place] - vector[0], products[place] - products[0])
    shift = vector[0] - factor * products[0]
    if not factor or shift.denominator != 1 or abs(shift) > 64:
        return None, 0
    if all(factor * value + shift == target for value, target in zip(products, vector, strict=True)):
        return factor, int(shift)
    return None, 0


def two_factors(vector: Vector, first: Vector, second: Vector, place: int) -> tuple[int, int, int] | None:
    """Solve ``x * first + y * second = d * vector`` by Cramer's rule at sample ``place`` and another.

    Returns:
        ``x``, ``y`` and a nonzero ``d``; None if there is no solution.
    """
    a, b = first[place], second[place]
    other = next((p for p in range(1, len(vector)) if a * second[p] != first[p] * b), None)
    if other is None:
        return None
    determinant = a * second[other] - first[other] * b
    x = vector[place] * second[other] - vector[other] * b
    y = a * vector[other] - first[other] * vector[place]
    if any(x * p + y * q != determinant * value for p, q, value in zip(first, second, vector, strict=True)):
        return None
    return x, y, determinant


def solve(vector: Vector, columns: Sequence[Vector]) -> list[Fraction] | None:
    """Factors, one per vector of ``columns``, with which these sum to ``vector`` at all samples.

    None if there are none or several solutions.
    """
    rows = [[Fraction(column[place]) for column in columns] + [Fraction(vector[place])] for place in range(len(vector))]
    width = len(columns)
    for step in range(width):
        pivot = next((place for place in range(step, len(rows)) if rows[place][step]), None)
        if pivot is None:
            return None
        rows[step], rows[pivot] = rows[pivot], rows[step]
        head = rows[step][step]
        rows[step] = [value / head for value in rows[step]]
        for place, row in enumerate(rows):
            if place != step and row[step]:
                factor = row[step]
                rows[place] = [a - factor * b for a, b in zip(row, rows[step], strict=True)]
    return None if any(row[width] for row in rows[width:]) else [row[width] for row in rows[:width]]


MOST_PRODUCTS = 60000
MOST_QUOTIENTS = 30000
LARGEST_DENOMINATOR = 64
MOST_COLUMNS = 48
LARGEST_FACTOR = 16
MOST_SAMPLES = 8
MOST_MONOMIALS = 400
MOST_TERMS, MOST_OF_THREE, FEW_TERMS = 24, 36, 3
LONGEST = 6  # terms
MANY = 160  # monomials: from here on, not all pairs are tried
MOST_SHIFTED = 80

Columns = Mapping[tuple[str, ...], Vector]  # names of a monomial's factors -> its value in each sample


def monomial(vector: Vector, base: Mapping[str, Vector], pool: Mapping[str, Vector]) -> Formula | None:
    """Fit one monomial of symbols in ``base`` and rounded quotients in ``pool``; None if none fits.

    Only symbols may be divisors.
    """
    return None if min(vector) <= 0 else product_of(vector, {**pool, **base}) or quotient_of(vector, base)


def product_of(vector: Vector, atoms: Mapping[str, Vector]) -> Formula | None:
    """Fit a product of at most five symbols or rounded quotients and an integer factor; None if none fits."""
    for degree in (1, 2, 3, 4, 5):
        if len(atoms) ** degree > MOST_PRODUCTS:
            break
        for chosen in combinations_with_replacement(atoms, degree):
            factor = ratio(vector, [atoms[name] for name in chosen], [])
            if factor is not None and factor.denominator == 1:
                return Formula(((powers(chosen, ()), factor),))
    return None


def quotient_of(vector: Vector, base: Mapping[str, Vector]) -> Formula | None:
    """Fit a product of at most three symbols divided by at most three others; None if none fits."""
    for up, down in ((up, down) for up in (1, 2, 3) for down in (0, 1, 2, 3) if len(base) ** (up + down) <= MOST_QUOTIENTS):
        for below in combinations_with_replacement(base, down):
            for above in combinations_with_replacement([name for name in base if name not in below], up):
                factor = ratio(vector, [base[name] for name in above], [base[name] for name in below])
                if factor is not None and factor.denominator <= LARGEST_DENOMINATOR:
                    return Formula(((powers(above, below), factor),))
    return None


def sum_of_monomials(vector: Vector, atoms: Mapping[str, Vector]) -> Formula | None:
    """Fit a sum of monomials of degree one to four, preferring short sums; None if none fits."""
    longer: Formula | None = None
    different = len(set(zip(*atoms.values(), strict=True)))
    for degree in (1, 2, 3, 4):
        if comb(len(atoms) + degree, degree) > MOST_MONOMIALS:
            return longer
        columns = {(): (1,) * len(vector), **products(atoms, range(1, degree + 1))}
        pair = pair_of(vector, columns) or shifted_pair(vector, columns)
        if longer is not None or pair is not None:
            return min(filter(None, (longer, pair)), key=lambda one: len(one.terms))
        if len(columns) <= min(MOST_TERMS, different - 3):
            longer = long_sum(vector, columns)
            if longer is not None and (degree > 1 or len(longer.terms) <= FEW_TERMS):
                return longer
        elif degree == 2 and len(columns) <= MOST_OF_THREE and len(vector) > 8:
            three = triple(vector, columns)
            if three is not None:
                return three
    return None


def long_sum(vector: Vector, columns: Columns) -> Formula | None:
    """The linear combination of monomials ``columns`` that is ``vector``; None if it is not simple.

    It is simple if it is unique, has few terms and small denominators.
    """
    solved = solve(vector, list(columns.values()))
    if solved is None or any(factor.denominator > 16 for factor in solved):
        return None
    terms = [(powers(chosen, ()), factor) for chosen, factor in zip(columns, solved, strict=True) if factor]
    return sum_of(terms) if len(terms) <= LONGEST else None


def pair_of(vector: Vector, columns: Columns) -> Formula | None:
    """Fit a sum of two monomials with small denominators; None if none fits."""
    items = list(columns.items())
    every: Iterable[Any] = combinations(items, 2)
    if len(items) > MANY:  # only pairs with one monomial of degree 0 or 1
        every = ((one, other) for one in items if len(one[0]) > 1 for other in items if len(other[0]) < 2)
    for (a, first), (b, second) in every:
        found = two_factors(vector, first, second, 0)
        if found is None:
            continue
        terms = [(powers(name, ()), Fraction(value, found[2])) for name, value in ((a, found[0]), (b, found[1])) if value]
        if all(factor.denominator <= 16 for _, factor in terms):
            return sum_of(terms)
    return None


def shifted_pair(vector: Vector, columns: Columns) -> Formula | None:
    """Fit a sum of two monomials and a constant; None if none fits.

    Differences from the first sample eliminate the constant.
    """
    change = differences(vector)
    changes = {name: differences(column) for name, column in columns.items() if name}
    for (a, first), (b, second) in combinations(changes.items(), 2) if len(columns) <= MOST_SHIFTED else ():
        place = next((p for p in range(1, len(vector)) if first[p]), None)
        found = None if place is None else two_factors(change, first, second, place)
        if found is None or not found[0] or not found[1]:
            continue
        one, two = Fraction(found[0], found[2]), Fraction(found[1], found[2])
        rest = vector[0] - one * columns[a][0] - two * columns[b][0]
        if max(one.denominator, two.denominator) <= 4 and rest.denominator == 1:
            return Formula((*sum_of([(powers(a, ()), one), (powers(b, ()), two)]).terms, *number(int(rest)).terms))
    return None


def differences(vector: Vector) -> Vector:
    """Differences of a vector from its value at the first sample."""
    return tuple(value - vector[0] for value in vector)


def triple(vector: Vector, columns: Mapping[tuple[str, ...], Vector]) -> Formula | None:
    """Fit a sum of three monomials with small integer factors, lowest degree first; None if none fits.

    ``columns`` maps the names of a monomial's factors to its values.
    """
    columns = {name: column for name, column in columns.items() if len(set(column)) > 1}
    if len(columns) > MOST_COLUMNS:
        return None
    places = different_samples([vector, *columns.values()])
    if len(places) < 4:
        return None
    short = {name: [column[place] for place in places] for name, column in columns.items()}
    wanted = [vector[place] for place in places]
    for chosen in sorted(combinations(columns, 3), key=lambda names: sum(map(len, names))):
        factors = solved(wanted, [short[name] for name in chosen])
        if factors is not None and holds(vector, factors, [columns[name] for name in chosen]):
            return sum_of((powers(name, ()), Fraction(factor)) for name, factor in zip(chosen, factors, strict=True))
    return None


def holds(vector: Vector, factors: Sequence[int], columns: Sequence[Vector]) -> bool:
    """Whether the vectors ``columns``, each times its factor, sum to ``vector`` at every sample."""
    return all(
        sum(factor * value for factor, value in zip(factors, row, strict=True)) == wanted
        for wanted, row in zip(vector, zip(*columns, strict=True), strict=True)
    )


def different_samples(columns: Sequence[Vector]) -> list[int]:
    """Indices of a few pairwise different samples: the first one, then from the last one backwards."""
    found: dict[tuple[int, ...], int] = {}
    for place in [0, *range(len(columns[0]) - 1, 0, -1)]:
        found.setdefault(tuple(column[place] for column in columns), place)
    return list(found.values())[:MOST_SAMPLES]


def solved(wanted: list[int], columns: list[list[int]]) -> tuple[int, int, int] | None:
    """Nonzero integer factors, at most 16, with which the three ``columns`` sum to ``wanted``; None if none fit."""
    a, b, c = columns
    for x, y, z in ((0, 1, 2), (1, 2, 3), (0, 2, 4), (2, 4, 5)):
        if z >= len(wanted):
            return None
        determinant = minor(a, b, c, x, y, z)
        if not determinant:
            continue
        tops = (minor(wanted, b, c, x, y, z), minor(a, wanted, c, x, y, z), minor(a, b, wanted, x, y, z))
        if any(top % determinant or not 0 < abs(top // determinant) <= LARGEST_FACTOR for top in tops):
            return None
        p, q, r = (top // determinant for top in tops)
        return (p, q, r) if all(p * i + q * j + r * k == v for i, j, k, v in zip(a, b, c, wanted, strict=True)) else None
    return None


def minor(a: list[int], b: list[int], c: list[int], x: int, y: int, z: int) -> int:
    """Determinant of the lists ``a``, ``b`` and ``c`` at the positions ``x``, ``y`` and ``z``."""
    return a[x] * (b[y] * c[z] - b[z] * c[y]) - b[x] * (a[y] * c[z] - a[z] * c[y]) + c[x] * (a[y] * b[z] - a[z] * b[y])
