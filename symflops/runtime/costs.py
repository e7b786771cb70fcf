"""Costs of items in 64 bits each, whose sums may be wider: an array that never wraps around in numpy's own arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from symflops.runtime.columnwise import LIMIT

HALF = 32
SAFE = frozenset({
    np.minimum, np.maximum, np.floor_divide, np.remainder, np.true_divide, np.equal, np.not_equal, np.less, np.less_equal,
    np.greater, np.greater_equal, np.positive, np.sign, np.negative, np.absolute, np.isfinite, np.isnan, np.sqrt, np.log,
})  # fmt: skip
PRODUCTS = frozenset(
    {np.dot, np.vdot, np.inner, np.outer, np.tensordot, np.einsum, np.convolve, np.correlate, np.kron, np.trace}
)
JOINED = frozenset({np.concatenate, np.where})  # these return plain arrays


class Costs(np.ndarray[Any, Any]):
    """Costs of items as int64. Where a sum or a product could leave 64 bits, the result is of Python's integers.

    ``numpy.asarray`` makes a plain array of it, whose sums wrap around in silence.
    """

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **options: Any) -> Any:
        given = [_plain(one) for one in inputs]
        out = options.get("out")
        if out is not None:
            options["out"] = tuple(map(_plain, out))
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
        """The product with a vector or matrix."""
        return np.dot(self, other, out)


def wide_sum(values: np.ndarray[Any, Any]) -> int:
    """The sum of integers that leaves 64 bits, in two halves."""
    return (int(np.add.reduce(values >> HALF)) << HALF) + int(np.add.reduce(values & (2**HALF - 1)))


def _plain(one: Any) -> Any:
    return one.view(np.ndarray) if isinstance(one, Costs) else one


def _guarded(found: Any) -> Any:
    return found.view(Costs) if isinstance(found, np.ndarray) and found.dtype == np.int64 else found


def _exact(one: Any) -> Any:
    return one.view(np.ndarray).astype(object) if isinstance(one, Costs) else one


def _fits(ufunc: np.ufunc, method: str, given: list[Any], options: dict[str, Any]) -> bool:
    """Whether 64 bits hold what comes out, whatever the entries are."""
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
    """The largest entry, in absolute value."""
    return max(int(np.max(one)), -int(np.min(one))) if np.size(one) else 0
