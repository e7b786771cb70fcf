"""Evaluates formulas on whole columns of lengths: ints, or integer arrays of any library, element by element."""

from __future__ import annotations

from symflops.model.evaluate import ELEMENTWISE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from symflops.model.evaluate import Formulas


class Columnwise:
    """Evaluates formulas; ``rests`` collects the remainders of divisions that must be exact.

    Args:
        formulas: the table of a stored program.
        lengths: a column per batch variable.
        sizes: the values of the model's letters; a formula without lengths is evaluated in these alone.
    """

    def __init__(self, formulas: Formulas, lengths: Mapping[str, Any], sizes: Mapping[str, Any]) -> None:
        self.formulas = formulas
        self.lengths = lengths
        self.sizes = sizes
        self.rests: list[Any] = []

    def value(self, position: int) -> Any:
        """The value of a formula: a column if the formula reads lengths.

        Raises:
            ValueError: a length is the operand of a function of lists or of sizes.
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
        if node[0] not in ELEMENTWISE:
            raise ValueError(f"lengths do not go through {node[0]}")
        return ELEMENTWISE[node[0]](*(self.value(operand) for operand in node[1:]))

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
