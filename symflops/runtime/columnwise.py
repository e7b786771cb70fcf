"""Functions of lengths over whole columns: formulas on ints, and element by element on integer arrays of any kind."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from symflops.model.evaluate import Formulas


class Columnwise:
    """Evaluates formulas; ``rests`` collects what divisions without a remainder leave over.

    ``lengths`` are columns, ``sizes`` the letters of the model, in which a formula without lengths is evaluated as it is.
    """

    def __init__(self, formulas: Formulas, lengths: Mapping[str, Any], sizes: Mapping[str, Any]) -> None:
        self.formulas = formulas
        self.lengths = lengths
        self.sizes = sizes
        self.rests: list[Any] = []

    def value(self, position: int) -> Any:
        """The value of a formula, a column where it has lengths in it.

        Raises:
            ValueError: a function that lengths do not go through.
        """
        if self.formulas.letters(position).isdisjoint(self.lengths):
            return self.formulas.value(position, self.sizes)
        node = self.formulas.nodes[position]
        if type(node) is str:
            return self.lengths[node]
        match node:
            case ["+", first, *terms]:
                total = self.value(first)
                for term in terms:
                    total = total + self.value(term)
                return total
            case ["*", *factors]:
                return self._product(factors)
            case ["^", base, exponent] if exponent > 0:
                return self.value(base) ** exponent
            case ["?equal", one, two]:
                return (self.value(one) == self.value(two)) * 1
            case ["?at_least", one, two]:
                return (self.value(one) >= self.value(two)) * 1
        return _applied(node[0], [self.value(operand) for operand in node[1:]])

    def _product(self, factors: Sequence[int]) -> Any:
        top: Any = 1
        bottom = 1
        for factor in factors:
            match self.formulas.nodes[factor]:
                case ["^", base, exponent] if exponent < 0:
                    bottom *= int(self.formulas.value(base, self.sizes) ** -exponent)
                case ["/", over, under]:
                    top, bottom = top * over, bottom * under
                case _:
                    top = top * self.value(factor)
        if bottom == 1:
            return top
        self.rests.append(top % bottom)
        return top // bottom


def _applied(function: str, values: Sequence[Any]) -> Any:
    match function:
        case "floordiv":
            return values[0] // values[1]
        case "ceildiv":
            return -(-values[0] // values[1])
        case "mod":
            return values[0] % values[1]
        case "excess":
            return most(0, values[0])
        case "min" | "max":
            chosen = values[0]
            for value in values[1:]:
                chosen = least(chosen, value) if function == "min" else most(chosen, value)
            return chosen
    raise ValueError(f"lengths do not go through {function}")


def least(one: Any, two: Any) -> Any:
    """The smaller, element by element of what has elements."""
    if hasattr(one, "clip"):
        return one.clip(max=two)
    return two.clip(max=one) if hasattr(two, "clip") else min(one, two)


def most(one: Any, two: Any) -> Any:
    """The larger, element by element of what has elements."""
    if hasattr(one, "clip"):
        return one.clip(min=two)
    return two.clip(min=one) if hasattr(two, "clip") else max(one, two)
