"""Simplified sums and products of formulas, and rewriting of formulas inside dataclasses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import prod
from operator import is_
from typing import Any

from symflops.formula.formula import ONE, ZERO, Apply, Bracket, Formula, Num, Power, Prod, Sum, Sym, TallyOf, Text
from symflops.formula.sparse import Factor

Terms = tuple[tuple[int, Formula], ...]


@lru_cache(maxsize=1 << 12)
def _whole(number: int) -> Num:
    return Num(Fraction(number))


def numeral(number: Factor) -> Num:
    """A number as a formula node."""
    return _whole(number) if type(number) is int else Num(Fraction(number))


def times(*formulas: Formula) -> Formula:
    """The simplified product: one number first, equal factors as powers, brackets and sums (and their powers) last."""
    number: Factor = 1
    powers: dict[Formula, int] = {}
    for formula in formulas:
        for factor in formula.factors if type(formula) is Prod else (formula,):
            base, exponent = (factor.base, factor.exponent) if type(factor) is Power else (factor, 1)
            if type(base) is Num:
                value = base.value if exponent == 1 else base.value**exponent
                number *= value.numerator if value.denominator == 1 else value
            else:
                powers[base] = powers.get(base, 0) + exponent
    rest = [base if exponent == 1 else Power(base, exponent) for base, exponent in powers.items() if exponent]
    if number == 0 or not rest:
        return numeral(number)
    if len(rest) > 1:
        rest.sort(key=lambda factor: isinstance(factor.base if type(factor) is Power else factor, (Bracket, Sum)))
    return product_of(rest if number == 1 else [numeral(number), *rest])


def plus(formulas: Sequence[Formula]) -> Formula:
    """The simplified sum of formulas, with equal terms merged and opposite terms cancelled."""
    counts: dict[Formula, Factor] = {}
    for formula in formulas:
        for term in formula.terms if isinstance(formula, Sum) else (formula,):
            number, rest = coefficient(term)
            counts[rest] = counts.get(rest, 0) + number
    return sum_of([rest if number == 1 else times(numeral(number), rest) for rest, number in counts.items() if number])


def coefficient(term: Formula) -> tuple[Factor, Formula]:
    """Split a term into its numeric coefficient and the product of its other factors."""
    if isinstance(term, Num):
        return term.value, ONE
    if not isinstance(term, Prod):
        return 1, term
    others = [factor for factor in term.factors if not isinstance(factor, Num)]
    number = prod([factor.value for factor in term.factors if isinstance(factor, Num)])
    return number.numerator if number.denominator == 1 else number, times(*others)


def factors_of(formula: Formula) -> tuple[Formula, ...]:
    """Return the factors of a product; any other formula is its only factor."""
    return formula.factors if isinstance(formula, Prod) else (formula,)


def product_of(factors: Sequence[Formula]) -> Formula:
    """The product of ``factors`` in this order, not simplified; a single factor is returned itself."""
    return factors[0] if len(factors) == 1 else Prod(tuple(factors))


def sum_of(terms: Iterable[Formula]) -> Formula:
    """The sum of ``terms`` in this order, not simplified; a single term is returned itself, none give 0."""
    found = tuple(terms)
    return ZERO if not found else found[0] if len(found) == 1 else Sum(found)


def is_negative(formula: Formula) -> bool:
    """Whether a term has a negative number as its first factor, and so prints with a minus."""
    first = factors_of(formula)[0]
    return isinstance(first, Num) and first.value < 0


NODES = frozenset((Num, Sym, Text, Sum, Prod, Power, Apply, Bracket, TallyOf))
PLAIN = frozenset({str, int, bool, float, Fraction, type(None)})


class Rewriting:
    """Replaces the formulas in nested dataclasses and tuples.

    ``change(formula)`` returns the formula to put in place of another, or None to keep that one and rewrite the formulas
    within it. A value without changed formulas stays the same object, and a shared object is rewritten once.
    """

    def __init__(self, change: Callable[[Formula], Formula | None]) -> None:
        self.change = change
        self.fields: dict[type, tuple[str, ...]] = {}
        self.known: dict[int, tuple[Any, Any]] = {}  # by identity, with the value itself, so that its id is not reused

    def __call__(self, value: Any) -> Any:
        if type(value) in PLAIN:
            return value
        found = self.known.get(id(value))
        if found is None:
            found = self.known[id(value)] = (value, self.rewritten(value))
        return found[1]

    def rewritten(self, value: Any) -> Any:
        """Rewrite ``value`` without the cache of :meth:`__call__`."""
        formula = self.change(value) if type(value) in NODES else None
        if formula is not None:
            return formula
        if isinstance(value, tuple):
            items = [self(item) for item in value]
            return value if all(map(is_, items, value)) else tuple(items)
        old = {name: getattr(value, name) for name in self.names(type(value))}
        new = {name: self(part) for name, part in old.items()}
        changed = {name: part for name, part in new.items() if part is not old[name]}
        return replace(value, **changed) if changed else value

    def names(self, kind: type) -> tuple[str, ...]:
        """Return the names of the fields of a dataclass; empty for other types."""
        if kind not in self.fields:
            self.fields[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
        return self.fields[kind]
