"""Exact arithmetic on vectors of whole numbers, one number per sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod

from symflops.draft.fit.formula import Vector


def product(columns: Iterable[Vector]) -> Vector:
    """The product of vectors, sample by sample."""
    return tuple(map(prod, zip(*columns, strict=True)))


def products(atoms: Mapping[str, Vector], sizes: Iterable[int] = (1, 2)) -> dict[tuple[str, ...], Vector]:
    """The products of as many atoms as ``sizes`` say, by the names of the atoms."""
    chosen = [one for size in sizes for one in combinations_with_replacement(atoms, size)]
    return {one: product(atoms[name] for name in one) for one in chosen}


def ratio(vector: Vector, above: Sequence[Vector], below: Sequence[Vector]) -> Fraction | None:
    """``vector * below / above``; None unless it is one number, not 0, for all samples."""
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
    """A factor and a small shift with ``vector = factor * product(columns) + shift``; no factor if there are none."""
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
    """Numbers with ``x * first + y * second = d * vector``, by Cramer's rule at ``place`` and one more sample.

    Returns:
        ``x``, ``y`` and ``d``, which is not 0; None if there are none.
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
    """The one exact solution of a system with more rows than columns; None if there is none, or more than one."""
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
