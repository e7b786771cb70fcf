"""Exact arithmetic on many lengths in numpy: integer columns, an array type without overflow, and symbolic products.

:class:`Costs` never wraps around. Compiled functions of lengths that run on :class:`Monomial` objects instead of arrays return
products of symbolic columns, whose values are computed later, block by block (:mod:`symflops.evaluate.plans`). Equal columns
are shared, and products are kept unevaluated, because their sum is an inner product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from operator import attrgetter
from typing import Any

import numpy as np

from symflops.evaluate.columnwise import LIMIT

HALF = 32
SAFE = frozenset({
    np.minimum, np.maximum, np.floor_divide, np.remainder, np.true_divide, np.equal, np.not_equal, np.less, np.less_equal,
    np.greater, np.greater_equal, np.positive, np.sign, np.negative, np.absolute, np.isfinite, np.isnan, np.sqrt, np.log,
})  # fmt: skip
PRODUCTS = frozenset(
    {np.dot, np.vdot, np.inner, np.outer, np.tensordot, np.einsum, np.convolve, np.correlate, np.kron, np.trace}
)
JOINED = frozenset({np.concatenate, np.where})  # these return plain arrays

FEW = 100  # up to here the minimum is checked at once; in longer columns, negative lengths are found with the maximum
larger, _place = max, attrgetter("place")


def columns_of_array(name: str, entries: Any, count: int) -> list[np.ndarray[Any, Any]]:
    """Split an integer array or tensor with one row per item into its columns, one array per axis.

    Raises:
        ValueError: ``entries`` is masked, has entries other than non-negative integers, or another number of axes.
    """
    if hasattr(entries, "detach"):
        entries = entries.detach().cpu().numpy()
    if np.ma.isMaskedArray(entries) and np.ma.is_masked(entries):
        raise ValueError(f"'{name}' is a masked array: give the entries that count, with '.compressed()'")
    found = np.asarray(entries)
    wrong = _wrong(found, count) if found.size else ""
    if wrong:
        raise ValueError(f"an entry of '{name}' is {count} whole number{'s' * (count > 1)}, not {wrong}")
    wide = found.dtype == np.uint64 and found.size and int(found.max()) >= LIMIT
    found = found.astype(object) if wide else found.astype(np.int64, copy=False)
    return [found] if count == 1 else [np.ascontiguousarray(found[:, axis]) for axis in range(count)]


def _wrong(found: np.ndarray[Any, Any], count: int) -> str:
    """Explain why an array is not one of non-negative integers with ``count`` axes; empty if it is."""
    if found.dtype.kind not in "iu":
        return f"of type {found.dtype}"
    if found.shape != ((len(found),) if count == 1 else (len(found), count)):
        return f"of shape {found.shape[1:]}"
    small = len(found) < FEW or count > 1  # the minimum of a long column is checked with its bounds
    return str(int(found.min())) if small and int(found.min()) < 0 else ""


class Costs(np.ndarray[Any, Any]):
    """int64 array of costs per item; sums and products that could overflow return Python integers.

    ``numpy.asarray`` converts it to a plain array, which overflows silently.
    """

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **options: Any) -> Any:
        given = [_as_array(one) for one in inputs]
        out = options.get("out")
        if out is not None:
            options["out"] = tuple(map(_as_array, out))
        if ufunc not in SAFE and not _fits(ufunc, method, given, options):
            if out is not None or options.get("dtype") is not None or method == "at":
                raise OverflowError("the result could leave 64 bits: leave out 'out' and 'dtype'")
            if ufunc is np.add and method == "reduce" and given[0].ndim == 1 and not options.keys() - {"axis"}:
                return wide_sum(given[0])
            given = [one.astype(object) if isinstance(one, np.ndarray) and one.dtype.kind in "iu" else one for one in given]
        found = getattr(ufunc, method)(*given, **options)
        if out is not None:
            return out[0]
        return _guarded(found)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in PRODUCTS:
            return func(*[_exact(one) for one in args], **{name: _exact(one) for name, one in kwargs.items()})
        found = super().__array_function__(func, types, args, kwargs)
        return _guarded(found) if func in JOINED else found

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return int(found) if isinstance(found, np.integer) else found

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist()) if self.ndim == 1 else super().__iter__()

    def dot(self, other: Any, out: Any = None) -> Any:
        """Exact product with a vector or matrix."""
        return np.dot(self, other, out)


def wide_sum(values: np.ndarray[Any, Any]) -> int:
    """Exact sum of int64 values as a Python int; adds the upper and lower halves separately."""
    return (int(np.add.reduce(values >> HALF)) << HALF) + int(np.add.reduce(values & (2**HALF - 1)))


def _as_array(one: Any) -> Any:
    return one.view(np.ndarray) if isinstance(one, Costs) else one


def _guarded(found: Any) -> Any:
    return found.view(Costs) if isinstance(found, np.ndarray) and found.dtype == np.int64 else found


def _exact(one: Any) -> Any:
    return one.view(np.ndarray).astype(object) if isinstance(one, Costs) else one


def _fits(ufunc: np.ufunc, method: str, given: list[Any], options: dict[str, Any]) -> bool:
    """Whether the result of a ufunc surely fits in 64 bits, by a bound on the operands ``given``."""
    dtype = options.get("dtype")
    if (dtype is not None and np.dtype(dtype).kind not in "iu") or any(
        np.asarray(one).dtype.kind not in "iub" for one in given
    ):
        return True  # floats round, and Python's integers are exact
    if options.get("initial") is not None:
        return False
    if method in {"__call__", "outer"}:
        most = [_most(one) for one in given]
        return sum(most) < LIMIT if ufunc in (np.add, np.subtract) else ufunc is np.multiply and prod(most) < LIMIT
    if ufunc not in (np.add, np.subtract):
        return False
    if method == "at":
        return _most(given[0]) + _most(given[2]) * np.size(given[1]) < LIMIT
    return _most(given[0]) * np.size(given[0]) < LIMIT


def _most(one: Any) -> int:
    """The largest absolute value of the entries; 0 if empty."""
    return max(int(np.max(one)), -int(np.min(one))) if np.size(one) else 0


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Symbolic column with one number per item, which is computed later.

    Attributes:
        place: the column's number, by which columns are compared.
        bound: an upper bound on the absolute value of its entries.
        function: the numpy function that computes the column; None for a column of lengths.
        operands: the two arguments of ``function``, columns or numbers.
    """

    place: int
    bound: int
    function: np.ufunc | None = None
    operands: tuple[Any, Any] = (0, 0)


class Monomial:
    """A number times a product of symbolic columns.

    ``made`` is the cache of all columns created so far, by function and operands, which monomials share.
    """

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
        """Elementwise ``numpy.ndarray.clip`` with one of ``min`` and ``max``."""
        if type(max) is int and max >= self.size():
            return self
        function, other = (np.minimum, max) if min is None else (np.maximum, min)
        return self._of(function, self, other, larger(self.size(), _size(other)))

    def _of(self, function: np.ufunc, one: Any, two: Any, bound: int) -> Monomial:
        """Apply ``function`` to two operands, as a product of one new column; ``bound`` limits its entries."""
        return Monomial(1, (made_once(self.made, function, _column(one), _column(two), bound),), self.made)

    def size(self) -> int:
        """An upper bound on the absolute values of the product's entries."""
        return abs(self.number) * prod([column.bound for column in self.factors])

    def column(self) -> Column:
        """The symbolic column of the whole product, including the number."""
        column = product_of(self.factors, self.made)
        return column if self.number == 1 else made_once(self.made, np.multiply, column, self.number, self.size())


def _size(value: Any) -> int:
    return value.size() if isinstance(value, Monomial) else abs(int(value))


def _column(value: Any) -> Column | int:
    return value.column() if isinstance(value, Monomial) else int(value)


def made_once(made: dict[Any, Column], function: np.ufunc, one: Column | int, two: Column | int, bound: int) -> Column:
    """The symbolic column of a function of two operands, from the cache ``made`` or added to it."""
    key = (function, *(side if type(side) is int else (side.place,) for side in (one, two)))  # type: ignore[union-attr]
    if key not in made:
        made[key] = Column(len(made), bound, function, (one, two))
    return made[key]


def product_of(factors: Sequence[Column], made: dict[Any, Column]) -> Column:
    """Multiply columns into one column."""
    product = factors[0]
    for factor in factors[1:]:
        product = made_once(made, np.multiply, product, factor, product.bound * factor.bound)
    return product


def leaves(bits: Sequence[int | None]) -> list[Any]:
    """Create a monomial for each column of lengths below ``2**bits``; 0 in place of a column without bits."""
    made: dict[Any, Column] = {}
    found: list[Any] = []
    for bit in bits:
        if bit is None:
            found.append(0)
        else:
            column = made[len(made)] = Column(len(made), 2**bit)
            found.append(Monomial(1, (column,), made))
    return found
