"""Formulas multiplied out and factored again: polynomials over atoms of formulas, without sympy.

An atom is a letter or an opaque formula: a bracket, a rounded quotient, a count of iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import reduce

from symflops.algebra.sparse import Poly
from symflops.model.factoring import ShortWriter
from symflops.model.formula import Bracket, Formula, Num, Power, Prod, Sum, Sym, symbols

Rule = Callable[[Formula], Poly | None]


def expanded(formula: Formula, rule: Rule = lambda _: None) -> Poly:
    """``formula`` multiplied out; ``rule`` returns the polynomial of an atom, or None for the atom itself."""
    match formula:
        case Num():
            return Poly.constant(formula.value)
        case Sum():
            return Poly.total(expanded(part, rule) for part in formula.terms)
        case Prod():
            return reduce(Poly.__mul__, (expanded(factor, rule) for factor in formula.factors))
        case Power():
            base = expanded(formula.base, rule)
            if formula.exponent >= 0:
                return base**formula.exponent
            if len(base.terms) == 1:
                ((monomial, factor),) = base.terms.items()
                return Poly.constant(1).over(monomial, factor) ** -formula.exponent
            return Poly.atom(Writer(()).plain(base), formula.exponent)
    found = rule(formula)
    return Poly.atom(formula) if found is None else found


class Writer(ShortWriter):
    """Writes polynomials over formulas; ``letters`` is the order of letters."""

    def __init__(self, letters: Iterable[str], counts: Collection[Formula] = ()) -> None:
        super().__init__(counts)
        self.rank = {name: place for place, name in enumerate(dict.fromkeys(letters))}

    def place(self, atom: Formula) -> tuple[int, str]:
        ranks = [self.rank[name] for name in symbols(atom) if name in self.rank]
        return min(ranks, default=len(self.rank)), atom.name if isinstance(atom, Sym) else repr(atom)

    def atom(self, atom: Formula) -> Formula:
        return atom

    def is_choice(self, atom: Formula) -> bool:
        return isinstance(atom, Bracket)
