"""Sums of three monomials with small whole factors, as widths of fused projections are."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations

from symflops.draft.fit.formula import Formula, Vector, degree_of, powers

MOST_COLUMNS = 48
LARGEST = 16


def triple(vector: Vector, columns: Mapping[tuple[str, ...], Vector]) -> Formula | None:
    """A sum of three of the columns with whole factors; the simplest names first."""
    columns = {name: column for name, column in columns.items() if len(set(column)) > 1}
    if len(columns) > MOST_COLUMNS:
        return None
    places = apart(vector, list(columns.values()))
    if len(places) < 4:
        return None
    short = {name: [column[place] for place in places] for name, column in columns.items()}
    wanted = [vector[place] for place in places]
    for chosen in sorted(combinations(columns, 3), key=lambda names: sum(map(len, names))):
        factors = solved(wanted, [short[name] for name in chosen])
        if factors is None:
            continue
        parts = list(zip(factors, (columns[name] for name in chosen), strict=True))
        if all(sum(factor * column[place] for factor, column in parts) == value for place, value in enumerate(vector)):
            terms = [(powers(name, ()), Fraction(factor)) for name, factor in zip(chosen, factors, strict=True)]
            return Formula(tuple(sorted(terms, key=degree_of)))
    return None


def apart(vector: Vector, columns: list[Vector]) -> list[int]:
    """A few samples in which all columns are different from each other sample."""
    found: list[int] = []
    seen: set[tuple[int, ...]] = set()
    for place in [0, *range(len(vector) - 1, 0, -1)]:
        row = (vector[place], *(column[place] for column in columns))
        if row not in seen:
            seen.add(row)
            found.append(place)
    return found[:8]


def solved(wanted: list[int], columns: list[list[int]]) -> tuple[int, int, int] | None:
    """The whole factors of three columns at three samples, where the other samples agree; None where there are none."""
    a, b, c = columns
    for x, y, z in ((0, 1, 2), (1, 2, 3), (0, 2, 4), (2, 4, 5)):
        if z >= len(wanted):
            return None
        determinant = minor(a, b, c, x, y, z)
        if not determinant:
            continue
        tops = (minor(wanted, b, c, x, y, z), minor(a, wanted, c, x, y, z), minor(a, b, wanted, x, y, z))
        if any(top % determinant or not 0 < abs(top // determinant) <= LARGEST for top in tops):
            return None
        p, q, r = (top // determinant for top in tops)
        return (p, q, r) if all(p * i + q * j + r * k == v for i, j, k, v in zip(a, b, c, wanted, strict=True)) else None
    return None


def minor(a: list[int], b: list[int], c: list[int], x: int, y: int, z: int) -> int:
    """The determinant of three columns at three samples."""
    return a[x] * (b[y] * c[z] - b[z] * c[y]) - b[x] * (a[y] * c[z] - a[z] * c[y]) + c[x] * (a[y] * b[z] - a[z] * b[y])
