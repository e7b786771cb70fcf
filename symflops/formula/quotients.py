"""One spelling for rounded quotients, so that equal lengths compare equal.

``((m - 3)//2 + 1 - 3)//2 + 1`` and ``((m - 1)//2 - 1)//2`` are both ``(m + 1)//4 - 1``: nested quotients are one quotient,
multiples of the divisor stand outside, and what a spec requires of remainders is put in.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Expr, Symbol

from symflops.formula.functions import CeilDiv, Equal, FloorDiv, Modulo, size_symbol
from symflops.formula.polynomial import Polynomial
from symflops.formula.truth import Truth

QUOTIENTS = (FloorDiv, CeilDiv, Modulo)


def remainders_of(condition: Truth) -> dict[Symbol, Expr]:
    """Symbol -> ``m*q + r`` with a new symbol ``q``, for each ``symbol % m == r`` that ``condition`` implies."""
    (atoms,) = condition.terms if list(condition.terms.values()) == [1] else ((),)
    found = {}
    for atom in atoms:
        if isinstance(atom, Equal) and isinstance(atom.args[0], Modulo):
            (symbol, by), rest = atom.args[0].args, atom.args[1]
            if symbol.is_Symbol and not by.has(symbol) and not rest.has(symbol):
                found[symbol] = by * size_symbol(f"{symbol.name}//") + rest
    return found


def has_quotients(*exprs: Expr) -> bool:
    """Whether one of ``exprs`` has a rounded quotient or a remainder."""
    return any(expr.has(*QUOTIENTS) for expr in exprs)


def in_one_spelling(expr: Expr, remainders: Mapping[Symbol, Expr]) -> Polynomial:
    """``expr`` with its quotients in one spelling, where the symbols in ``remainders`` have these values."""
    expr = expr.xreplace(dict(remainders))
    return Polynomial.of(expr.replace(lambda found: isinstance(found, QUOTIENTS), _spelled))


def _spelled(quotient: Expr) -> Expr:
    """The quotient or remainder ``quotient``, whose operands are spelled already, by means of one plain quotient."""
    above, below = quotient.args
    if isinstance(quotient, FloorDiv):
        return _floor(above, below)
    return above - below * _floor(above, below) if isinstance(quotient, Modulo) else _floor(above + below - 1, below)


def _floor(above: Expr, below: Expr) -> Expr:
    """``above // below``, with an inner quotient merged and multiples of ``below`` outside."""
    terms = Polynomial.of(above)
    if not (below.is_integer and _is_whole(terms)):
        return FloorDiv(above, below)
    inner = [(monomial, atom) for monomial in terms.terms for atom, _ in monomial if isinstance(atom, FloorDiv)]
    if len(inner) == 1 and inner[0][0] == {(inner[0][1], 1)} and terms.terms[inner[0][0]] == 1:
        ((monomial, atom),) = inner  # (x//d + c)//b is (x + c*d)//(b*d)
        rest = terms + Polynomial({monomial: -1})
        return _floor(atom.args[0] + rest.expr * atom.args[1], below * atom.args[1])
    whole, rest = _parted(terms, Polynomial.of(below))
    alone = rest.expr  # 0 and -1 are their own quotients, rounded down, by any positive number
    return whole.expr + (alone if alone in (0, -1) else FloorDiv(alone, Polynomial.of(below).expr))


def _is_whole(terms: Polynomial) -> bool:
    """Whether each term is an integer for all sizes."""
    pairs = (
        (factor, atom, exponent) for monomial, factor in terms.terms.items() for atom, exponent in monomial or ((None, 1),)
    )
    return all(
        factor.denominator == 1 and exponent > 0 and (atom is None or atom.is_integer) for factor, atom, exponent in pairs
    )


def _parted(terms: Polynomial, by: Polynomial) -> tuple[Polynomial, Polynomial]:
    """``(whole, rest)`` with ``terms == by*whole + rest``; factors in ``rest`` are below those of ``by``."""
    whole, rest = Polynomial({}), Polynomial({})
    if len(by.terms) != 1:
        return whole, terms
    ((_, divisor),) = by.terms.items()
    for monomial, factor in terms.terms.items():
        kind = Polynomial({monomial: divisor}).quotient(by)
        times = factor // divisor if kind is not None else 0
        whole += (kind or Polynomial({})).scale(times)
        rest += Polynomial({monomial: factor - times * divisor})
    return whole, rest
