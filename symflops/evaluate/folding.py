"""Constant folding of formulas with known letters: decides conditions, evaluates functions, shortens sums and products."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

from symflops.formula.factoring import Writer, expanded
from symflops.formula.formula import (
    MINUS,
    ONE,
    ZERO,
    Apply,
    Bracket,
    Formula,
    Num,
    Power,
    Prod,
    Sum,
    Sym,
    TallyOf,
    Text,
    evaluate,
    operators,
    parts,
    symbols,
    walk,
)
from symflops.formula.sparse import Poly, ratio
from symflops.formula.terms import Rewriting, plus, times

DECIDING = (Apply, Bracket, TallyOf)
NO_VALUE = (ArithmeticError, LookupError, TypeError, ValueError)


class Folding:
    """Simplifies formulas given the values of some letters (constant folding).

    Args:
        values: The values of the known letters; null is None.
        numbers: The letters to replace by their values. Other known letters stay and only decide conditions, unless their
            value is 0 or no number.
        whole: The letters that are non-negative integers.
        writer: Converts expanded sums back to formulas, in its order of letters.
    """

    def __init__(self, values: Mapping[str, Any], numbers: Collection[str], whole: Collection[str], writer: Writer) -> None:
        self.values, self.whole, self.writer = values, frozenset(whole), writer
        self.numbers = {name: value for name, value in values.items() if name in numbers or not is_size(value)}
        self.rewritten = Rewriting(self.folded)
        self.known: dict[int, tuple[Formula, Formula]] = {}  # by identity: hashing a formula traverses it

    def folded(self, formula: Formula) -> Formula:
        """Fold a formula and return its shortest form (cached)."""
        found = self.known.get(id(formula))
        if found is None:
            found = self.known[id(formula)] = (formula, self._folded(formula))
        return found[1]

    def _folded(self, formula: Formula) -> Formula:
        if not any(
            isinstance(part, DECIDING) or (isinstance(part, Sym) and part.name in self.numbers) for part in walk(formula)
        ):
            return formula
        inner = self.inner(formula)
        return formula if inner == formula else self.short(inner)

    def short(self, formula: Formula) -> Formula:
        """Return the formula or its expanded and refactored form, whichever has fewer operators."""
        return min((formula, self.writer.shortest(expanded(formula))), key=operators)

    def inner(self, formula: Formula) -> Formula:
        """Fold each part of a formula, without expanding sums and products."""
        match formula:
            case Sym(name) if name in self.numbers:
                return constant(self.numbers[name]) or formula
            case Num() | Sym() | Text():
                return formula
            case Sum(terms):
                return plus([self.inner(term) for term in terms])
            case Prod(factors):
                return self.product(factors)
            case Power(base, exponent):
                return times(Power(self.inner(base), exponent)) if self.inner(base) != ZERO or exponent < 0 else ZERO
            case TallyOf():
                return self.tally(formula)
        return self.decided(formula)

    def product(self, factors: Sequence[Formula]) -> Formula:
        """Fold a product; a false condition makes it 0 without evaluating the other factors."""
        conditions = {place: self.inner(factor) for place, factor in enumerate(factors) if isinstance(factor, Bracket)}
        if ZERO in conditions.values():
            return ZERO
        found = []
        for place, factor in enumerate(factors):
            found.append(conditions[place] if place in conditions else self.inner(factor))
            if found[-1] == ZERO:
                return ZERO
        return times(*found)

    def decided(self, formula: Apply | Bracket) -> Formula:
        """Fold a function or a condition."""
        letters = set(symbols(formula))
        if letters <= self.values.keys():
            found = self.value(formula)
            if found is not None and (self.is_plain(formula) or letters <= self.numbers.keys()):
                return found
        if isinstance(formula, Bracket):
            return self.condition(formula, letters)
        if formula.function in ("min", "max"):
            return self.extreme(formula)
        arguments = tuple(map(self.inner, formula.arguments))
        if formula.function == "excess":
            return self.excess(arguments[0], formula.arguments[0])
        if formula.function in ("floordiv", "ceildiv", "mod"):
            return self.rounded(formula.function, *arguments)
        return Apply(formula.function, arguments)

    @staticmethod
    def is_plain(formula: Apply | Bracket) -> bool:
        """Whether a known value may replace the formula: a condition, a remainder or a function of lists."""
        return isinstance(formula, Bracket) or formula.function not in ("min", "max", "excess", "floordiv", "ceildiv")

    def value(self, formula: Formula) -> Formula | None:
        """Evaluate a formula of known letters; None if it has no value."""
        try:
            found = evaluate(formula, self.values)
        except NO_VALUE:
            return None
        return constant(found)

    def condition(self, formula: Bracket, letters: Collection[str]) -> Formula:
        """Decide a condition if the known letters and signs allow it, else fold its sides."""
        if formula.kind not in ("at_least", "equal"):
            return formula
        one, two = sides = tuple(map(self.inner, formula.arguments))
        if all(isinstance(side, (Num, Text)) for side in sides):
            found = self.value(Bracket(formula.kind, sides))
            return Bracket(formula.kind, sides) if found is None else found
        if isinstance(one, Text) or isinstance(two, Text):
            return Bracket(formula.kind, sides)
        over, under = self.difference(one, two), self.difference(two, one)
        if formula.kind == "equal":
            never = any(self.is_positive(way) for way in (over, under))
            return ONE if not over else ZERO if never else Bracket(formula.kind, sides)
        if self.is_negative_never(over):
            return ONE
        return ZERO if self.is_positive(under) else Bracket(formula.kind, sides)

    def extreme(self, formula: Apply) -> Formula:
        """Fold a minimum or maximum, dropping arguments that are never selected."""
        values = [self.value(part) if set(symbols(part)) <= self.values.keys() else None for part in formula.arguments]
        sides = [self.inner(part) for part in formula.arguments]
        if all(isinstance(value, Num) for value in values):
            numbers = [value.value for value in values if isinstance(value, Num)]
            return sides[numbers.index((min if formula.function == "min" else max)(numbers))]
        kept = list(dict.fromkeys(sides))
        for one, two in permutations(list(kept), 2):
            over = self.difference(one, two) if formula.function == "min" else self.difference(two, one)
            if one in kept and two in kept and self.is_negative_never(over):
                kept.remove(one)
        return kept[0] if len(kept) == 1 else Apply(formula.function, tuple(kept))

    def excess(self, inner: Formula, formula: Formula) -> Formula:
        """Fold ``max(0, inner)``."""
        value = self.value(formula) if set(symbols(formula)) <= self.values.keys() else None
        if isinstance(value, Num):
            return inner if value.value > 0 else ZERO
        poly = expanded(inner)
        if self.is_negative_never(poly):
            return inner
        return ZERO if self.is_negative_never(poly.scale(-1)) else Apply("excess", (inner,))

    def rounded(self, function: str, above: Formula, below: Formula) -> Formula:
        """Fold a rounded quotient or a remainder; the rounding is dropped if the divisor divides each term."""
        if isinstance(above, Num) and isinstance(below, Num) and below.value:
            floor = above.value // below.value
            rest = above.value - floor * below.value
            return Num(Fraction({"floordiv": floor, "ceildiv": floor + bool(rest)}.get(function, rest)))
        top, bottom = expanded(above), expanded(below)
        if len(bottom.terms) == 1:
            ((monomial, factor),) = bottom.terms.items()
            quotient = top.over(monomial, factor)
            atoms = [pair for term in quotient.terms for pair in term]
            whole = all(type(ratio(one, 1)) is int for one in quotient.terms.values())
            if whole and all(power > 0 and self.is_whole(atom) for atom, power in atoms):
                return ZERO if function == "mod" else self.writer.shortest(quotient)
        return Apply(function, (above, below))

    def tally(self, formula: TallyOf) -> Formula:
        """Fold a number of iterations: evaluate it if all its letters are known, else simplify its parts."""
        if set(symbols(formula)) <= self.values.keys():
            found = self.value(formula)
            if found is not None:
                return found
        low, high, condition = (self.inner(part) for part in parts(formula))
        if condition == ZERO:
            return ZERO
        if formula.index not in symbols(condition):
            turns = plus([high, times(MINUS, low)])
            return times(condition, self.excess(turns, turns))
        return TallyOf(formula.index, low, high, condition)

    # signs

    def difference(self, one: Formula, two: Formula) -> Poly:
        """Expand ``one - two``."""
        return expanded(one) - expanded(two)

    def is_negative_never(self, poly: Poly) -> bool:
        """Whether every term is at least 0 for all values of the letters; False if undecided."""
        return all(factor > 0 and all(self.is_whole(atom) for atom, _ in term) for term, factor in poly.terms.items())

    def is_positive(self, poly: Poly) -> bool:
        """Whether a polynomial is at least 1 for all values of the letters; False if undecided."""
        return poly.terms.get(frozenset(), 0) >= 1 and self.is_negative_never(poly)

    def is_whole(self, atom: Formula) -> bool:
        """Whether a formula is a non-negative integer for all values of its letters; False if undecided."""
        match atom:
            case Sym(name):
                return name in self.whole
            case Bracket() | TallyOf():
                return True
            case Apply("floordiv" | "ceildiv" | "mod" | "min" | "max", arguments):
                return all(self.is_negative_never(expanded(argument)) for argument in arguments)
            case Apply("excess" | "len" | "count"):
                return True
        return False


def is_size(value: Any) -> bool:
    """Whether a size with this value may stay a letter in formulas: a number other than 0, not a boolean."""
    return isinstance(value, (int, Fraction)) and not isinstance(value, bool) and value != 0


def constant(value: Any) -> Formula | None:
    """Convert a value to a constant formula: null to 0, a flag to 0 or 1; None for a list."""
    if value is None or isinstance(value, (bool, int, Fraction)):
        return Num(Fraction(value or 0))
    return Text(value) if isinstance(value, str) else None
