"""Sparse polynomials over sympy expressions: the working form of costs.

``sympy.expand`` on a whole derivation is slow, and the order of its terms varies. A :class:`Polynomial` is a dictionary from
monomials to rational factors; an atom is a symbol, or a function that is not expanded (a rounded quotient, a bracket).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, reduce

from sympy import Add, Expr, Integer, Mul, Pow, Rational

from symflops.formula.functions import AtLeast, CeilDiv, Excess, Tally, is_bracket
from symflops.formula.sparse import CONSTANT, Factor, Monomial, Poly, ratio
from symflops.formula.written import text_of


class Polynomial(Poly):
    """A sparse polynomial whose atoms are sympy expressions."""

    __slots__ = ()

    @classmethod
    def of(cls, expr: Expr | int) -> Polynomial:
        """Expand ``expr`` to a polynomial (cached)."""
        return _known(Integer(expr) if isinstance(expr, int) else expr)

    @staticmethod
    def product(left: Monomial, right: Monomial) -> Monomial:
        """The product of two monomials; brackets are idempotent, and implied brackets are dropped."""
        if not left or not right:
            return left or right
        powers = dict(left)
        for atom, exponent in right:
            powers[atom] = powers.get(atom, 0) + exponent
        pairs = {(a, 1 if is_bracket(a) else e) for a, e in powers.items() if e}
        bounds = {pair for pair in pairs if isinstance(pair[0], AtLeast)}  # max(0, L - m) implies [L >= k] if m >= k - 1
        return frozenset(pairs - {bound for bound in bounds if any(_implies(other, bound[0]) for other, _ in pairs)})

    def __mul__(self, other: Polynomial) -> Polynomial:
        """Return the product; with unrelated atoms no terms merge, so that monomials are only united."""
        if not self.atoms.isdisjoint(other.atoms) or _meet(self.atoms, other.atoms) or _meet(other.atoms, self.atoms):
            return super().__mul__(other)
        return Polynomial({one | two: a * b for one, a in self.terms.items() for two, b in other.terms.items()})

    @property
    def expr(self) -> Expr:
        """The polynomial as a sympy expression."""
        return Add(
            *(Mul(Rational(f.numerator, f.denominator), *(a**e for a, e in sorted_atoms(m))) for m, f in self.terms.items())
        )

    def split_whole(self, inside: Callable[[Expr], bool]) -> dict[Monomial, Polynomial]:
        """Like :meth:`split`, but a nonempty part also contains the divisors of its monomial."""

        def part(monomial: Monomial) -> Monomial:
            chosen = frozenset(pair for pair in monomial if inside(pair[0]))
            return chosen | frozenset(pair for pair in monomial if pair[1] < 0) if chosen else chosen

        return self.grouped(part)

    def quotient(self, other: Polynomial) -> Polynomial | None:
        """Return the exact quotient if ``other`` is one term, or this polynomial times a number; else None."""
        if len(other.terms) == 1:
            ((divisor, factor),) = other.terms.items()
            terms: dict[Monomial, Factor] = {}
            for monomial, value in self.terms.items():
                powers = dict(monomial)
                for atom, exponent in divisor:
                    powers[atom] = powers.get(atom, 0) - exponent
                if any(powers[atom] < 0 for atom, _ in divisor):
                    return None
                terms[frozenset((a, e) for a, e in powers.items() if e)] = ratio(value, factor)
            return Polynomial(terms)
        for monomial, factor in self.terms.items():
            if monomial in other.terms:
                factor = ratio(factor, other.terms[monomial])
                return Polynomial({CONSTANT: factor}) if self == other.scale(factor) else None
        return None if self else self


def sorted_atoms(monomial: Iterable[tuple[Expr, int]]) -> list[tuple[Expr, int]]:
    """The (atom, exponent) pairs of a monomial, sorted independently of the hash seed."""
    return sorted(monomial, key=lambda pair: (text_of(pair[0]), pair[1]))


def _convert(expr: Expr) -> Polynomial:
    if expr.is_Rational:
        return Polynomial.constant(ratio(int(expr.p), int(expr.q)))
    match expr:
        case Add():
            return Polynomial.total(map(_convert, expr.args))
        case Mul():
            return reduce(Polynomial.__mul__, map(_convert, expr.args))
        case Pow() if expr.exp.is_Integer:
            return _power(expr.base, int(expr.exp))
        case Tally():
            return _tally(expr)
    return Polynomial.atom(expr)


_known = lru_cache(maxsize=1 << 15)(_convert)


def _tally(expr: Tally) -> Polynomial:
    """Expand a tally over the terms of its condition; factors without the index move before it.

    A tally over at most one index is the condition at that index.
    """
    index, low, high, condition = expr.args
    run = high - low
    if is_bracket(run):
        return _convert(run) * _convert(condition.xreplace({index: low}))
    total = Polynomial({})
    for monomial, factor in _convert(condition).terms.items():
        here = frozenset(pair for pair in monomial if index in pair[0].free_symbols)
        atom = Tally(index, low, high, Polynomial({here: 1}).expr)
        total += (Polynomial.atom(atom) if here else _convert(atom)) * Polynomial({monomial - here: factor})
    return total


def _power(base: Expr, exponent: int) -> Polynomial:
    if exponent < 0 or not isinstance(base, (Add, Mul)):
        return Polynomial.atom(_convert(base).expr if isinstance(base, Add) else base, exponent)
    return reduce(Polynomial.__mul__, [_convert(base)] * exponent)


def _meet(conditions: Iterable[Expr], atoms: Iterable[Expr]) -> bool:
    """Whether one of ``atoms`` implies one of ``conditions``."""
    return any(isinstance(one, AtLeast) and any(_implies(atom, one) for atom in atoms) for one in conditions)


@lru_cache(maxsize=1 << 15)
def _implies(factor: Expr, condition: Expr) -> bool:
    """Whether ``factor`` is known to be 0 whenever ``condition`` is 0; False for a factor that is itself a bracket."""
    if is_bracket(factor):
        return False
    base, bound = condition.args
    slack = base - _nothing_at(factor) - bound + 1
    return bool(slack.is_Integer and slack >= 0)


def _nothing_at(atom: Expr) -> Expr:
    """An expression that is at most 0 when ``atom`` is 0: the argument of ``max(0, .)`` or of a ceiling."""
    inner = atom.args[0] if isinstance(atom, Excess) else atom
    runs, rest = inner.as_coeff_Add()
    if isinstance(rest, CeilDiv) and rest.args[1].is_Integer and rest.args[1] > 0 and runs.is_Integer:
        return rest.args[0] + runs * rest.args[1]
    return inner
