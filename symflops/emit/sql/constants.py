"""Formulas of a stored program with sizes replaced by numbers, and lengths by columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import prod
from typing import Any

from symflops.formula.formula import ONE, ZERO, Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, evaluate, number, parts
from symflops.formula.table import ELEMENTWISE, Formulas
from symflops.formula.terms import factors_of, product_of, sum_of
from symflops.support.errors import SymflopsError


class Settling:
    """Substitution of sizes in stored formulas; ``rests`` collects remainders that must be 0.

    ``lengths`` maps each batch variable to a column or a number.
    """

    def __init__(self, formulas: Formulas, sizes: Mapping[str, Any], lengths: Mapping[str, Formula]) -> None:
        self.formulas, self.sizes, self.lengths = formulas, sizes, lengths
        self.rests: list[Formula] = []

    def of(self, position: int) -> Formula:
        """Return the formula at ``position`` in terms of columns, with sizes substituted.

        Raises:
            SymflopsError: a length is the operand of a function of lists.
        """
        if self.formulas.letters(position).isdisjoint(self.lengths):
            return Num(Fraction(self.formulas.checked(position, self.sizes)))
        node = self.formulas.nodes[position]
        if type(node) is str:
            return self.lengths[node]
        match node:
            case ["+", *terms]:
                return total(map(self.of, terms))
            case ["*", *factors]:
                return self._product(map(self.of, factors))
            case ["^", base, int(exponent)] if exponent > 0:
                return as_number(Power(self.of(base), exponent))
            case ["?equal" | "?at_least" as kind, *operands]:
                return as_number(Bracket(kind[1:], tuple(map(self.of, operands))))
        if node[0] not in ELEMENTWISE:
            raise SymflopsError(f"a table of lengths is not priced: lengths do not go through {node[0]}")
        return applied(node[0], tuple(map(self.of, node[1:])))

    def _product(self, factors: Iterable[Formula]) -> Formula:
        found = product(factors)
        bottom = found.factors[0].value.denominator if isinstance(found, Prod) and isinstance(found.factors[0], Num) else 1
        if bottom == 1:
            return found
        top = product((number(bottom), found))
        self.rests.append(Apply("mod", (top, number(bottom))))
        return Apply("floordiv", (top, number(bottom)))


def total(terms: Iterable[Formula]) -> Formula:
    """Return the sum of ``terms``, with nested sums flattened and numbers merged into a last term."""
    parts = [part for term in terms for part in (term.terms if isinstance(term, Sum) else (term,))]
    kept = [part for part in parts if not isinstance(part, Num)]
    constant = sum((part.value for part in parts if isinstance(part, Num)), Fraction(0))
    return sum_of([*kept, Num(constant)] if constant or not kept else kept)


def product(factors: Iterable[Formula]) -> Formula:
    """Multiply factors, with nested products flattened and numbers merged into a first factor."""
    parts = [part for factor in factors for part in factors_of(factor)]
    kept = [part for part in parts if not isinstance(part, Num)]
    constant = prod((part.value for part in parts if isinstance(part, Num)), start=Fraction(1))
    if not constant or not kept:
        return Num(constant)
    return product_of(kept if constant == 1 else [Num(constant), *kept])


def applied(function: str, arguments: tuple[Formula, ...]) -> Formula:
    """Apply an integer function, simplifying a division by 1 and the minimum of a length and 0."""
    if function in ("floordiv", "ceildiv") and arguments[1] == ONE:
        return arguments[0]
    if function == "ceildiv" and isinstance(arguments[1], Num) and arguments[1].value > 0:
        return applied("floordiv", (total((arguments[0], Num(arguments[1].value - 1))), arguments[1]))
    if function == "min" and ZERO in arguments and all(isinstance(one, (Num, Sym)) for one in arguments):
        return ZERO
    return as_number(Apply(function, arguments))


def as_number(formula: Power | Apply | Bracket) -> Formula:
    """Evaluate a formula whose arguments are all numbers; else return it unchanged."""
    return Num(Fraction(evaluate(formula, {}))) if all(isinstance(part, Num) for part in parts(formula)) else formula


def is_natural(formula: Formula) -> bool:
    """Whether a formula of lengths is never negative, as far as its form shows; False if it does not."""
    if isinstance(formula, Num):
        return formula.value >= 0
    if isinstance(formula, Apply) and formula.function == "excess":
        return True
    return isinstance(formula, (Sym, Bracket)) or all(map(is_natural, parts(formula)))
