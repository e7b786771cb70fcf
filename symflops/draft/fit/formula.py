"""Formulas as a fit finds them, and exact arithmetic on vectors of whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, prod

Vector = tuple[int, ...]
Monomial = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Formula:
    """A sum of monomials over atoms; an atom is the name of a size or a length, or a rounded quotient in brackets."""

    terms: tuple[tuple[Monomial, Fraction], ...]

    @property
    def text(self) -> str:
        """The formula in the language of specs."""
        denominator = 1
        for _, factor in self.terms:
            denominator = denominator * factor.denominator // gcd(denominator, factor.denominator)
        if not self.terms:
            return "0"
        pieces = [piece(monomial, int(factor * denominator)) for monomial, factor in self.terms]
        text = pieces[0] + "".join(f" - {one[1:]}" if one.startswith("-") else f" + {one}" for one in pieces[1:])
        lower = [monomial for monomial, _ in self.terms if any(power < 0 for _, power in monomial)]
        if denominator > 1 or lower:
            if len(self.terms) == 1:
                monomial, factor = self.terms[0]
                up = piece(tuple((atom, power) for atom, power in monomial if power > 0), factor.numerator)
                down = piece(tuple((atom, -power) for atom, power in monomial if power < 0), factor.denominator)
                return f"{up}//{bracket(down)}"
            return f"({text})//{denominator}"
        return text

    @property
    def atoms(self) -> set[str]:
        """The atoms."""
        return {atom for monomial, _ in self.terms for atom, _ in monomial}


def bracket(text: str) -> str:
    """A text as one factor."""
    plain = text.translate({ord(letter): "" for letter in "_[]"})
    return text if plain.isalnum() else f"({text})"


def piece(monomial: Monomial, factor: int) -> str:
    """One term."""
    words = [atom if power == 1 else f"{atom}**{power}" for atom, power in monomial]
    if not words:
        return str(factor)
    if factor in (1, -1):
        return ("-" if factor < 0 else "") + "*".join(words)
    return "*".join([str(factor), *words])


def words(text: str) -> list[str]:
    """The names in a text."""
    return "".join(letter if letter.isalnum() or letter in "_[]" else " " for letter in text).split()


def powers(above: Sequence[str], below: Sequence[str]) -> Monomial:
    """Names as a monomial."""
    found: dict[str, int] = {}
    for name in above:
        found[name] = found.get(name, 0) + 1
    for name in below:
        found[name] = found.get(name, 0) - 1
    return tuple((name, power) for name, power in found.items() if power)


def merge(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials."""
    found = dict(a)
    for name, power in b:
        found[name] = found.get(name, 0) + power
    return tuple((name, power) for name, power in found.items() if power)


def ratio(vector: Vector, above: Sequence[Vector], below: Sequence[Vector]) -> Fraction | None:
    """``vector * below / above`` where it is one number for all samples."""
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
    """A factor and a shift with ``vector = factor * product(columns) + shift``."""
    products = [prod(column[place] for column in columns) for place in range(len(vector))]
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


def solve(vector: Vector, columns: Sequence[Vector]) -> list[Fraction] | None:
    """The one exact solution of a system with more rows than columns; None where there is none, or more than one."""
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
    if any(row[width] for row in rows[width:]):
        return None
    return [rows[place][width] for place in range(width)]


def degree_of(term: tuple[Monomial, Fraction]) -> int:
    """What orders the terms of a sum: the highest degree first."""
    return -sum(power for _, power in term[0])
