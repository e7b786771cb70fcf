"""Formulas of a stored program: a table of nodes that refer to each other by position.

A node is a number, a letter, or a list of an operator and its operands: ``["+", 3, 4]`` is the sum of the nodes at 3 and 4.
:mod:`symflops.formula.formula` writes such tables.
"""

from __future__ import annotations

from symflops.support.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


class ConfigError(SymflopsError, ValueError):
    """A config lacks a required value, or has a value of a wrong type."""


class Formulas:
    """Evaluates the formulas of one table, whose rows are ``nodes``."""

    def __init__(self, nodes: Sequence[Any]) -> None:
        self.nodes = nodes
        self._letters: dict[int, frozenset[str]] = {}

    def letters(self, position: int) -> frozenset[str]:
        """The letters that the formula at ``position`` reads (cached)."""
        found = self._letters.get(position)
        if found is None:
            node = self.nodes[position]
            if type(node) is list:
                found = frozenset().union(*map(self.letters, operands(node)))
                found -= {node[1]} if node[0] == "tally" else set()
            else:
                found = frozenset((node,)) if type(node) is str else frozenset()
            self._letters[position] = found
        return found

    def value(self, position: int, names: Mapping[str, Any]) -> Any:
        """Evaluate the formula at ``position``: an int if the value is whole, else a Fraction.

        ``names`` maps letters to ints, Fractions, booleans, texts, tuples, or None for null, which counts as 0.
        """
        found = self._value(position, names)
        return int(found) if not isinstance(found, int) and getattr(found, "denominator", 0) == 1 else found

    def checked(self, position: int, names: Mapping[str, Any]) -> Any:
        """Evaluate a formula of sizes; failures become errors about the config.

        Raises:
            ConfigError: a division by zero, a list that is too short, or a text instead of a number.
        """
        try:
            return self.value(position, names)
        except ZeroDivisionError:
            zeros = " and ".join(name for name in sorted(self.letters(position)) if names.get(name, 1) == 0) or "what divides"
            raise ConfigError(f"the config does not fit the model: {zeros} is 0, which nothing divides by") from None
        except IndexError:
            lists = (
                " or ".join(name for name in sorted(self.letters(position)) if isinstance(names.get(name), tuple)) or "a list"
            )
            raise ConfigError(
                f"the config does not fit the model: {lists} has fewer items than the model reads of it"
            ) from None
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ConfigError(f"the config does not fit the model: {error}") from None

    def _value(self, position: int, names: Mapping[str, Any]) -> Any:
        node = self.nodes[position]
        if type(node) is int:
            return node
        if type(node) is str:
            value = names[node]
            return 0 if value is None else value
        match node:
            case ["*", *factors]:
                return self._product(factors, names)
            case ["+", *terms]:
                return sum([self._value(term, names) for term in terms])
            case ["/", top, bottom]:
                return _fraction(top, bottom)
            case ["text", text]:
                return text
            case ["^", base, exponent]:
                return _power(self._value(base, names), exponent)
            case ["tally", index, low, high, condition]:
                return self._tally(index, range(self._value(low, names), self._value(high, names)), condition, names)
        operator, *operands = node
        if operator[0] == "?":
            return self._bracket(operator, operands, names)
        values = [self._value(operand, names) for operand in operands]
        if operator in ELEMENTWISE:
            return ELEMENTWISE[operator](*values)
        return ON_LISTS[operator](*values) if values[0] != 0 else 0  # a null list counts as 0, and so do its items

    def _tally(self, index: str, turns: range, condition: int, names: Mapping[str, Any]) -> Any:
        """Compute the sum of the formula ``condition`` over the values ``turns`` of ``index``."""
        return sum([self._value(condition, {**names, index: turn}) for turn in turns])

    def _product(self, factors: Sequence[int], names: Mapping[str, Any]) -> Any:
        """The product of factors; evaluation stops at a zero, because later factors may be undefined."""
        result: Any = 1
        for factor in factors:
            result = result * self._value(factor, names)
            if result == 0:
                return 0
        return result

    def _bracket(self, condition: str, operands: Sequence[int], names: Mapping[str, Any]) -> int:
        """Return 1 if a condition on ``operands`` holds, else 0; letters may be texts, lists or null."""
        nodes = [self.nodes[operand] for operand in operands]
        if condition == "?given":
            return int(type(nodes[0]) is str and names[nodes[0]] is not None)
        pairs = zip(nodes, operands, strict=True)
        values = [names[node] if type(node) is str else self._value(operand, names) for node, operand in pairs]
        return int(CONDITIONS[condition](*values))


class BoundFormulas(Formulas):
    """Evaluates the formulas of a table for fixed ``names``; tallies are cached."""

    def __init__(self, nodes: Sequence[Any], names: Mapping[str, Any]) -> None:
        super().__init__(nodes)
        self.names = names
        self._tallies: dict[tuple[Any, ...], Any] = {}

    def _tally(self, index: str, turns: range, condition: int, names: Mapping[str, Any]) -> Any:
        if names is not self.names:
            return super()._tally(index, turns, condition, names)
        key = (index, turns, condition)
        if key not in self._tallies:
            self._tallies[key] = super()._tally(index, turns, condition, names)
        return self._tallies[key]


def operands(node: Sequence[Any]) -> Sequence[int]:
    """Return the positions of the nodes that are operands of ``node``."""
    match node[0]:
        case "text" | "/":
            return ()
        case "^":
            return node[1:2]
        case "tally":
            return node[2:]
    return node[1:]


def least(one: Any, *others: Any) -> Any:
    """The minimum, elementwise if an argument is an array."""
    for two in others:
        one = one.clip(max=two) if hasattr(one, "clip") else two.clip(max=one) if hasattr(two, "clip") else min(one, two)
    return one


def most(one: Any, *others: Any) -> Any:
    """The maximum, elementwise if an argument is an array."""
    for two in others:
        one = one.clip(min=two) if hasattr(one, "clip") else two.clip(min=one) if hasattr(two, "clip") else max(one, two)
    return one


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "floordiv": lambda top, bottom: top // bottom,
    "ceildiv": lambda top, bottom: -(-top // bottom),
    "mod": lambda top, bottom: top % bottom,
    "excess": lambda value: most(0, value),
    "min": least,
    "max": most,
}
"""Integer functions of numbers or arrays."""
ON_LISTS: dict[str, Callable[..., Any]] = {
    "item": lambda values, index: values[index],
    "each": lambda values, index: 0 if isinstance(values, str) else values[index] if isinstance(values, tuple) else values,
    "len": lambda values: len(values),
    "count": lambda values, value: list(values).count(value),
    "total": lambda values: sum(values),
}
"""Functions of lists. ``each`` also accepts one number for all items; a text gives 0."""
CONDITIONS: dict[str, Callable[..., bool]] = {
    "?at_least": lambda one, two: (one or 0) >= two,
    "?equal": lambda one, two: one == two,
    "?contains": lambda one, two: one in (two or ()),
    "?flag": bool,
}


def _power(base: Any, exponent: int) -> Any:
    return base**exponent if exponent >= 0 else _fraction(1) / _fraction(base) ** -exponent


def _fraction(top: Any, bottom: int = 1) -> Any:
    from fractions import Fraction

    return Fraction(top, bottom)
