"""Functions of lengths over whole columns: formulas on ints, and element by element on integer arrays of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symflops.model.formula import Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, evaluate, symbols


class Columnwise:
    """Evaluates formulas; ``rests`` collects what divisions without a remainder leave over.

    ``lengths`` are columns, ``sizes`` the letters of the model, in which a formula without lengths is evaluated as it is.
    """

    def __init__(self, lengths: Mapping[str, Any], sizes: Mapping[str, Any]) -> None:
        self.lengths = lengths
        self.sizes = sizes
        self.rests: list[Any] = []

    def value(self, formula: Formula) -> Any:
        """The value of ``formula``, a column where it has lengths in it.

        Raises:
            ValueError: a function that lengths do not go through.
        """
        if not any(name in self.lengths for name in symbols(formula)):
            return evaluate(formula, self.sizes)
        match formula:
            case Sym():
                return self.lengths[formula.name]
            case Sum():
                return self._sum(formula)
            case Prod():
                return self._product(formula)
            case Power() if formula.exponent > 0:
                return self.value(formula.base) ** formula.exponent
            case Apply():
                return self._apply(formula.function, [self.value(argument) for argument in formula.arguments])
            case Bracket() if formula.kind in ("equal", "at_least"):
                one, two = (self.value(argument) for argument in formula.arguments)
                return (one == two) * 1 if formula.kind == "equal" else (one >= two) * 1
        raise ValueError(f"lengths do not go through {type(formula).__name__}")

    def _sum(self, formula: Sum) -> Any:
        total = self.value(formula.terms[0])
        for term in formula.terms[1:]:
            total = total + self.value(term)
        return total

    def _product(self, formula: Prod) -> Any:
        top: Any = 1
        bottom = 1
        for factor in formula.factors:
            if isinstance(factor, Power) and factor.exponent < 0:
                bottom *= int(evaluate(Power(factor.base, -factor.exponent), self.sizes))
            elif isinstance(factor, Num):
                top, bottom = top * factor.value.numerator, bottom * factor.value.denominator
            else:
                top = top * self.value(factor)
        if bottom == 1:
            return top
        self.rests.append(top % bottom)
        return top // bottom

    def _apply(self, function: str, values: list[Any]) -> Any:
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
