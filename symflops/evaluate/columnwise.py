"""Compiles formulas of lengths to elementwise functions of ints or integer arrays.

The same functions run on upper bounds of lengths, to decide whether every value fits in 64 bits.
"""

from __future__ import annotations

from itertools import product
from operator import itemgetter

from symflops.formula.table import ELEMENTWISE, ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from symflops.formula.table import Formulas

    Column = Callable[[Sequence[Any]], Any]
    Terms = Callable[..., tuple[Any, ...]]

LIMIT = 2**63
larger = max

DIVISIONS = ("floordiv", "ceildiv", "mod")


class Columnwise:
    """Compiles formulas of lengths to functions of a list of columns (ints or arrays), one per length.

    ``rests`` collects functions whose results, remainders of exact divisions, must be 0.

    Args:
        formulas: the table of a stored program.
        places: the index of each length's column in that list.
        sizes: the values of the model's letters; a formula without lengths is evaluated at once.
    """

    def __init__(self, formulas: Formulas, places: Mapping[str, int], sizes: Mapping[str, Any]) -> None:
        self.formulas, self.places, self.sizes = formulas, places, sizes
        self.rests: list[Column] = []

    def constant(self, position: int) -> bool:
        """Whether a formula contains no lengths."""
        return self.formulas.letters(position).isdisjoint(self.places)

    def of(self, position: int) -> Column:
        """Compile the formula at a position of the table.

        Raises:
            ConfigError: a part without lengths has no value. The returned function raises ConfigError if a divisor is 0.
        """
        if self.constant(position):
            value = self.formulas.checked(position, self.sizes)
            return lambda _: value
        node = self.formulas.nodes[position]
        if type(node) is str:
            return itemgetter(self.places[node])
        match node:
            case ["+", *terms]:
                return added(list(map(self.of, terms)))
            case ["*", *factors]:
                return self._product(factors)
            case ["^", base, exponent] if exponent > 0:
                below = self.of(base)
                return lambda c: below(c) ** exponent
            case ["?equal", one, two]:
                left, right = self.of(one), self.of(two)
                return lambda c: (left(c) == right(c)) * 1
            case ["?at_least", one, two]:
                left, right = self.of(one), self.of(two)
                return lambda c: (left(c) >= right(c)) * 1
        if node[0] not in ELEMENTWISE:
            return self._of_numbers(position)
        if node[0] in DIVISIONS and self.constant(node[2]) and self.formulas.checked(node[2], self.sizes) == 0:
            return refused
        function, operands = ELEMENTWISE[node[0]], list(map(self.of, node[1:]))
        return lambda c: function(*[operand(c) for operand in operands])

    def _of_numbers(self, position: int) -> Column:
        """Compile a formula that numpy cannot compute elementwise, to a function of ints."""

        def value(c: Sequence[Any]) -> Any:
            if any(type(c[place]) is not int for place in self.places.values()):
                raise ValueError(f"lengths do not go through {self.formulas.nodes[position][0]}")
            return self.formulas.checked(position, {**self.sizes, **{name: c[place] for name, place in self.places.items()}})

        return value

    def _product(self, factors: Sequence[int]) -> Column:
        """Compile a product; factors after a zero are not evaluated, because they may have no value."""
        number: Any = 1
        rest = []
        for factor in factors:
            if self.constant(factor):
                number = number * self.formulas.checked(factor, self.sizes)
                if number == 0:
                    return lambda _: 0
            else:
                rest.append(factor)
        top, bottom = (number, 1) if isinstance(number, int) else (number.numerator, number.denominator)
        whole = multiplied(top, [self.of(factor) for factor in rest])
        if bottom == 1:
            return whole
        self.rests.append(lambda c: whole(c) % bottom)
        return lambda c: whole(c) // bottom


def refused(_: Sequence[Any]) -> Any:
    """Raise ConfigError; the compiled form of a quotient whose divisor is 0."""
    raise ConfigError("the config does not fit the model: a size by which lengths are divided is 0")


def added(terms: Sequence[Column]) -> Column:
    """Combine functions of columns into one that returns the sum of their results."""
    if len(terms) == 2:
        one, two = terms
        return lambda c: one(c) + two(c)
    first, *others = terms

    def total(c: Sequence[Any]) -> Any:
        found = first(c)
        for term in others:
            found = found + term(c)
        return found

    return total


def multiplied(number: int, factors: Sequence[Column]) -> Column:
    """Combine functions of columns into one that returns the product of ``number`` and their results."""
    if number == 1 and len(factors) == 1:
        return factors[0]
    if number == 1 and len(factors) == 2:
        one, two = factors
        return lambda c: one(c) * two(c)

    def product(c: Sequence[Any]) -> Any:
        found: Any = number
        for factor in factors:
            found = found * factor(c)
        return found

    return product


class Bound:
    """Upper bounds that compiled functions compute if they are called with bounds instead of lengths.

    Attributes:
        value: an upper bound on the absolute value of the expression.
        most: an upper bound on the absolute values of the expression and of all its intermediate values.
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

    def clip(self, min: Any = None, max: Any = None) -> Bound:
        """Bound the result of ``numpy.ndarray.clip`` with one of ``min`` and ``max``."""
        if min is not None:
            return self._with(min, self.value + _size(min))
        return self._with(max, self.value if type(max) is int and max >= 0 else larger(self.value, _size(max)))

    __hash__ = None  # type: ignore[assignment]
    __ge__ = __le__ = __eq__
    __radd__ = __sub__ = __rsub__ = __add__
    __rmul__ = __mul__


def _size(value: Any) -> int:
    return value.value if isinstance(value, Bound) else abs(int(value))


def bounds_of(terms: Terms, bits: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """(Bound on each term, bound on all intermediate values); ``bits`` is the bit length of each column's maximum."""
    found = [term if isinstance(term, Bound) else Bound(_size(term)) for term in terms(*(Bound(2**bit) for bit in bits))]
    return tuple(bound.value for bound in found), max((bound.most for bound in found), default=0)


def safe_bits(terms: Terms, streams: Sequence[int]) -> int:
    """Largest bit length of an item's size for which no intermediate value overflows 64 bits; 0 if none.

    The size of an item is the product of its axes. ``streams`` lists the number of axes of each stream. It is tested with each
    axis in turn as long as the size, and the other axes of length 2.
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
