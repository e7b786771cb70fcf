"""How large the values of a function of lengths can become: whether 64 bits hold them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

Terms = Callable[..., tuple[Any, ...]]
LIMIT = 2**63
larger = max


class Bound:
    """A number that no value of an expression exceeds, in absolute value; ``most`` is the largest on the way.

    It stands in for lengths in functions of them: a difference is bounded by the sum, a quotient or a rest by the numerator.
    """

    __slots__ = ("most", "value")

    def __init__(self, value: int, most: int = 0) -> None:
        self.value = value
        self.most = max(most, value)

    def _with(self, other: Any, value: int) -> Bound:
        return Bound(value, max(self.most, other.most if isinstance(other, Bound) else 0))

    def __add__(self, other: Any) -> Bound:
        return self._with(other, self.value + _size(other))

    def __mul__(self, other: Any) -> Bound:
        return self._with(other, self.value * _size(other))

    def __pow__(self, exponent: int) -> Bound:
        return self._with(0, self.value**exponent)

    def __floordiv__(self, other: Any) -> Bound:
        return self._with(other, self.value + 1)

    def __rfloordiv__(self, other: Any) -> Bound:
        return self._with(self, _size(other) + 1)

    def __mod__(self, other: Any) -> Bound:
        return self._with(other, self.value + _size(other))

    def __neg__(self) -> Bound:
        return self

    def __eq__(self, other: object) -> Bound:  # type: ignore[override]
        return self._with(other, 1)

    def __ge__(self, other: object) -> Bound:
        return self._with(other, 1)

    def clip(self, min: Any = None, max: Any = None) -> Bound:
        """Elementwise minimum or maximum, as arrays call it."""
        if min is not None:
            return self._with(min, self.value + _size(min))
        return self._with(max, self.value if type(max) is int and max >= 0 else larger(self.value, _size(max)))

    __hash__ = None  # type: ignore[assignment]
    __le__ = __ge__
    __radd__ = __sub__ = __rsub__ = __add__
    __rmul__ = __mul__


def _size(value: Any) -> int:
    return value.value if isinstance(value, Bound) else abs(int(value))


def bounds_of(terms: Terms, bits: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Per term a bound, and one on every intermediate value, for lengths of so many bits."""
    found = [term if isinstance(term, Bound) else Bound(_size(term)) for term in terms(*(Bound(2**bit) for bit in bits))]
    return tuple(bound.value for bound in found), max((bound.most for bound in found), default=0)


def safe_bits(terms: Terms, streams: Sequence[int]) -> int:
    """How many bits the product of a stream's axes may have so that no value leaves 64 bits, all streams alike.

    ``streams`` has the number of axes of each. The product is put into one axis after the other, with twos in the others.
    """
    counts = [max(axes, 1) for axes in streams]
    for bits in range(31, 0, -1):
        for places in product(*map(range, counts)):
            columns = [
                Bound(2**bits if axis == place else 2)
                for place, count in zip(places, counts, strict=True)
                for axis in range(count)
            ]
            if max((_most(term) for term in terms(*columns)), default=0) >= LIMIT:
                break
        else:
            return bits
    return 0


def _most(value: Any) -> int:
    return value.most if isinstance(value, Bound) else abs(int(value))
