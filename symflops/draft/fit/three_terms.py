"""Sums of three monomials with small whole factors, as widths of fused projections are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from symflops.draft.fit.formula import Formula, Vector, powers, sum_of

MOST_COLUMNS = 48
LARGEST = 16
MOST_SAMPLES = 8


def triple(vector: Vector, columns: Mapping[tuple[str, ...], Vector]) -> Formula | None:
    """A sum of three of the columns with whole factors; the simplest names first."""
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
    """Whether a sum of columns with factors is a vector, at every sample."""
    return all(
        sum(factor * value for factor, value in zip(factors, row, strict=True)) == wanted
        for wanted, row in zip(vector, zip(*columns, strict=True), strict=True)
    )


def different_samples(columns: Sequence[Vector]) -> list[int]:
    """A few samples that all differ from each other: the first one, then from the last one backwards."""
    found: dict[tuple[int, ...], int] = {}
    for place in [0, *range(len(columns[0]) - 1, 0, -1)]:
        found.setdefault(tuple(column[place] for column in columns), place)
    return list(found.values())[:MOST_SAMPLES]


def solved(wanted: list[int], columns: list[list[int]]) -> tuple[int, int, int] | None:
    """The small whole factors of three columns at three samples, if the other samples agree; None if there are none."""
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
