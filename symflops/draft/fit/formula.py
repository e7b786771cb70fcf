"""Formulas (sums of monomials in sizes, lengths and rounded quotients), and exact vector arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from math import lcm, prod

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
    """Fit ``vector = factor * product(columns) + shift``; returns (factor, shift), (None, 0) if none fits."""
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
    """Factors with which ``columns`` sum to ``vector`` at all samples; None if there are none or several."""
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
