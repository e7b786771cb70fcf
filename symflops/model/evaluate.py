"""Formulas of a stored program: a table of nodes that refer to each other by position.

A node is a number, a letter, or a list of an operator and its operands: ``["+", 3, 4]`` is the sum of the nodes at 3 and 4.
:mod:`symflops.model.formula` writes such tables.
"""

from __future__ import annotations

from symflops.diagnostics.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

ON_LISTS = ("item", "len", "count", "total")


class ConfigError(SymflopsError):
    """A config lacks what a size needs, or holds something of another type."""


class Formulas:
    """Evaluates the formulas of one table."""

    def __init__(self, nodes: Sequence[Any]) -> None:
        self.nodes = nodes
        self._letters: dict[int, frozenset[str]] = {}

    def letters(self, position: int) -> frozenset[str]:
        """The letters that a formula reads."""
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
        """The value of a formula: an int wherever it is whole, else a Fraction.

        ``names`` maps letters to ints, Fractions, booleans, texts, tuples, or None for null, which counts as 0.
        """
        found = self._value(position, names)
        return int(found) if not isinstance(found, int) and getattr(found, "denominator", 0) == 1 else found

    def settled(self, position: int, names: Mapping[str, Any]) -> Any:
        """The value of a formula of sizes.

        Raises:
            ConfigError: it has no value: a division by zero, a list that is too short, a text where a number is read.
        """
        try:
            return self.value(position, names)
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
                result: Any = 1
                for factor in factors:
                    result = result * self._value(factor, names)
                    if result == 0:
                        return 0
                return result
            case ["+", *terms]:
                return sum([self._value(term, names) for term in terms])
            case ["/", top, bottom]:
                return _fraction(top, bottom)
            case ["text", text]:
                return text
            case ["^", base, exponent]:
                value = self._value(base, names)
                return value**exponent if exponent >= 0 else _fraction(1) / _fraction(value) ** -exponent
            case ["tally", index, low, high, condition]:
                first, end = self._value(low, names), self._value(high, names)
                return sum([self._value(condition, {**names, index: turn}) for turn in range(first, end)])
        operator, *rest = node
        if operator[0] == "?":
            return self._bracket(operator, rest, names)
        return applied(operator, [self._value(one, names) for one in rest])

    def _bracket(self, kind: str, operands: Sequence[int], names: Mapping[str, Any]) -> int:
        """1 where a condition holds, else 0; its letters may stand for texts, lists and null."""
        first = self.nodes[operands[0]]
        if kind == "?given":
            return int(type(first) is str and names[first] is not None)
        values = [names[self.nodes[one]] if type(self.nodes[one]) is str else self._value(one, names) for one in operands]
        match kind:
            case "?at_least":
                return int((values[0] or 0) >= values[1])
            case "?equal":
                return int(values[0] == values[1])
            case "?contains":
                return int(values[0] in (values[1] or ()))
            case "?flag":
                return int(bool(values[0]))
        raise ValueError(kind)


def operands(node: Sequence[Any]) -> Sequence[int]:
    """The positions that a node refers to."""
    match node[0]:
        case "text" | "/":
            return ()
        case "^":
            return node[1:2]
        case "tally":
            return node[2:]
    return node[1:]


def applied(function: str, values: Sequence[Any]) -> Any:
    """An integer function, or a reading of a list."""
    if function in ON_LISTS and values[0] == 0:
        return 0  # null, which counts as 0, and so do its items
    match function:
        case "floordiv":
            return values[0] // values[1]
        case "ceildiv":
            return -(-values[0] // values[1])
        case "mod":
            return values[0] % values[1]
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "excess":
            return max(0, values[0])
        case "item":
            return values[0][values[1]]
        case "each":
            return values[0][values[1]] if isinstance(values[0], tuple) else values[0]
        case "len":
            return len(values[0])
        case "count":
            return list(values[0]).count(values[1])
        case "total":
            return sum(values[0])
    raise ValueError(function)


def _fraction(top: Any, bottom: int = 1) -> Any:
    from fractions import Fraction

    return Fraction(top, bottom)
