"""Products of columns of lengths, as functions of lengths make them when they run on monomials in place of arrays.

Columns stand for values that are made later, block by block (:mod:`symflops.runtime.plans`). A column that a function needs
twice is the same one, and products stay products: their sum is an inner product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from operator import attrgetter
from typing import Any

import numpy as np

larger, _place = max, attrgetter("place")


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column of lengths (``function`` is None), or of a function of two operands: columns, or numbers.

    No value exceeds ``bound``, in absolute value.
    """

    place: int
    bound: int
    function: np.ufunc | None = None
    operands: tuple[Any, Any] = (0, 0)


class Monomial:
    """A number times a product of columns; ``made`` holds the columns so far."""

    __slots__ = ("factors", "made", "number")

    def __init__(self, number: int, factors: tuple[Column, ...], made: dict[Any, Column]) -> None:
        self.number, self.factors, self.made = number, factors, made

    def __mul__(self, other: Any) -> Monomial:
        if isinstance(other, Monomial):
            factors = tuple(sorted(self.factors + other.factors, key=_place))
            return Monomial(self.number * other.number, factors, self.made)
        return Monomial(self.number * int(other), self.factors, self.made)

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Monomial:
        return Monomial(self.number**exponent, tuple(one for one in self.factors for _ in range(exponent)), self.made)

    def __neg__(self) -> Monomial:
        return self * -1

    def __add__(self, other: Any) -> Monomial:
        return self._of(np.add, self, other, self.size() + _size(other))

    def __sub__(self, other: Any) -> Monomial:
        return self._of(np.subtract, self, other, self.size() + _size(other))

    def __rsub__(self, other: Any) -> Monomial:
        return self._of(np.subtract, other, self, self.size() + _size(other))

    def __floordiv__(self, other: Any) -> Monomial:
        return self._of(np.floor_divide, self, other, self.size() + 1)

    def __rfloordiv__(self, other: Any) -> Monomial:
        return self._of(np.floor_divide, other, self, _size(other) + 1)

    def __mod__(self, other: Any) -> Monomial:
        return self._of(np.remainder, self, other, self.size() + _size(other))

    def __eq__(self, other: object) -> Monomial:  # type: ignore[override]
        return self._of(np.equal, self, other, 1)

    def __ge__(self, other: object) -> Monomial:
        return self._of(np.greater_equal, self, other, 1)

    def __le__(self, other: object) -> Monomial:
        return self._of(np.less_equal, self, other, 1)

    __radd__ = __add__
    __hash__ = None  # type: ignore[assignment]

    def clip(self, min: Any = None, max: Any = None) -> Monomial:
        """Elementwise minimum or maximum, as arrays call it."""
        if type(max) is int and max >= self.size():
            return self
        function, other = (np.minimum, max) if min is None else (np.maximum, min)
        return self._of(function, self, other, larger(self.size(), _size(other)))

    def _of(self, function: np.ufunc, one: Any, two: Any, bound: int) -> Monomial:
        """The column of a function of two operands."""
        return Monomial(1, (made_once(self.made, function, _column(one), _column(two), bound),), self.made)

    def size(self) -> int:
        """What no value exceeds, in absolute value."""
        return abs(self.number) * prod([column.bound for column in self.factors])

    def column(self) -> Column:
        """All of it as one column."""
        column = product_of(self.factors, self.made)
        return column if self.number == 1 else made_once(self.made, np.multiply, column, self.number, self.size())


def _size(value: Any) -> int:
    return value.size() if isinstance(value, Monomial) else abs(int(value))


def _column(value: Any) -> Column | int:
    return value.column() if isinstance(value, Monomial) else int(value)


def made_once(made: dict[Any, Column], function: np.ufunc, one: Column | int, two: Column | int, bound: int) -> Column:
    """The column of a function of two operands, the same one each time."""
    key = (function, *(side if type(side) is int else (side.place,) for side in (one, two)))  # type: ignore[union-attr]
    if key not in made:
        made[key] = Column(len(made), bound, function, (one, two))
    return made[key]


def product_of(factors: Sequence[Column], made: dict[Any, Column]) -> Column:
    """The product of columns as one."""
    product = factors[0]
    for factor in factors[1:]:
        product = made_once(made, np.multiply, product, factor, product.bound * factor.bound)
    return product


def leaves(bits: Sequence[int | None]) -> list[Any]:
    """A monomial per column of lengths of so many bits, numbered in their order; 0 where a column is left out."""
    made: dict[Any, Column] = {}
    found: list[Any] = []
    for bit in bits:
        if bit is None:
            found.append(0)
        else:
            column = made[len(made)] = Column(len(made), 2**bit)
            found.append(Monomial(1, (column,), made))
    return found
