"""Formulas of lengths as functions of their values: ints, or integer arrays of any library, element by element."""

from __future__ import annotations

from operator import itemgetter

from symflops.model.evaluate import ELEMENTWISE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from symflops.model.evaluate import Formulas

    Column = Callable[[Sequence[Any]], Any]


class Columnwise:
    """Makes functions of formulas; ``rests`` collects those of the remainders of divisions that must be exact.

    Args:
        formulas: the table of a stored program.
        places: the place of each length in what the functions take.
        sizes: the values of the model's letters; a formula without lengths is evaluated in these alone.
    """

    def __init__(self, formulas: Formulas, places: Mapping[str, int], sizes: Mapping[str, Any]) -> None:
        self.formulas, self.places, self.sizes = formulas, places, sizes
        self.rests: list[Column] = []

    def constant(self, position: int) -> bool:
        """Whether a formula reads no lengths."""
        return self.formulas.letters(position).isdisjoint(self.places)

    def of(self, position: int) -> Column:
        """A formula as a function.

        Raises:
            ConfigError: a part without lengths has no value.
        """
        if self.constant(position):
            value = self.formulas.settled(position, self.sizes)
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
        function, operands = ELEMENTWISE[node[0]], list(map(self.of, node[1:]))
        return lambda c: function(*[operand(c) for operand in operands])

    def _of_numbers(self, position: int) -> Column:
        """A function of lists or of sizes, which takes numbers alone."""

        def value(c: Sequence[Any]) -> Any:
            if any(type(c[place]) is not int for place in self.places.values()):
                raise ValueError(f"lengths do not go through {self.formulas.nodes[position][0]}")
            return self.formulas.settled(position, {**self.sizes, **{name: c[place] for name, place in self.places.items()}})

        return value

    def _product(self, factors: Sequence[int]) -> Column:
        """A product; factors after a zero are not read, because they may have no value."""
        number: Any = 1
        rest = []
        for factor in factors:
            if self.constant(factor):
                number = number * self.formulas.settled(factor, self.sizes)
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


def added(terms: Sequence[Column]) -> Column:
    """The sum of functions."""
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
    """A number times functions."""
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
