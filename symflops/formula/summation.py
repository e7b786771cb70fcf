"""Sums over a range in closed form, such as the sum of keys over all queries.

A term is a polynomial in the index and in ``index // B``, ``index % B``, and minima or maxima of these. A ``min``, ``max`` or
bracket that changes sides within the range splits the range in two; full blocks of ``B`` are summed per block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import comb

from sympy import Add, Dummy, Expr, Integer, Rational, Symbol, bernoulli

from symflops.formula.functions import AtLeast, CeilDiv, Excess, FloorDiv, Least, Modulo, Most, size_symbol
from symflops.formula.polynomial import Polynomial
from symflops.formula.written import text_of

ZERO, ONE = Integer(0), Integer(1)
BOUNDS = (Excess, AtLeast)
MAX_DEGREE, MAX_CUTS = 12, 8


@dataclass(frozen=True, slots=True)
class Run:
    """The range ``low <= index < high``, and what is known of it.

    Indices are at least each of ``lows``, and below each of ``highs``. The expressions ``positive`` are at least 1.
    """

    low: Expr
    high: Expr
    lows: tuple[Expr, ...] = (ZERO,)
    highs: tuple[Expr, ...] = ()
    positive: frozenset[Expr] = field(default_factory=frozenset)


def closed_sum(index: Symbol, low: Expr, high: Expr, term: Expr) -> Expr | None:
    """Closed form of the sum of ``term`` over ``low <= index < high`` (``low <= high``); None if unknown."""
    divisors = frozenset(atom.args[1] for atom in term.atoms(FloorDiv, Modulo) if atom.has(index))
    term = term.replace(Modulo, lambda a, b: a - b * FloorDiv(a, b) if a.has(index) else Modulo(a, b))
    found = _total(index, Run(low, high, (low,), (high,), divisors), term)
    return None if found is None else Polynomial.of(found).expr


def _total(index: Symbol, run: Run, term: Expr) -> Expr | None:
    term = _in_simple_arguments(index, run, term)
    if len(run.lows) + len(run.highs) > MAX_CUTS:
        return None
    if _changes_by_runs(index, run, term):
        return _by_runs(index, run, term, [atom for atom in term.atoms(FloorDiv) if atom.has(index)])
    for atom in sorted(
        (atom for atom in term.atoms(*BOUNDS) if atom.has(index)), key=lambda atom: (len(text_of(atom)), text_of(atom))
    ):
        parts = _cut(index, run, atom)
        if parts is not None:
            totals = [_total(index, part, term.xreplace({atom: value})) for part, value in parts]
            return None if any(total is None for total in totals) else Add(*totals)
    quotients = sorted((atom for atom in term.atoms(FloorDiv) if atom.has(index)), key=text_of)
    return _by_runs(index, run, term, quotients) if quotients else _power_sums(index, run, term)


def _changes_by_runs(index: Symbol, run: Run, term: Expr) -> bool:
    """Whether there are ``BOUNDS`` on the index, all of which read it only through one ``index // B``."""
    bounds = [atom for atom in term.atoms(*BOUNDS) if atom.has(index)]
    quotients = [atom for atom in term.atoms(FloorDiv) if atom.has(index)]
    if not bounds or len(quotients) != 1 or quotients[0].args[0] != index or run.low != ZERO:
        return False
    return not any(atom.xreplace({quotients[0]: ONE}).has(index) for atom in bounds)


def _in_simple_arguments(index: Symbol, run: Run, term: Expr) -> Expr:
    """Rewrite index-dependent ``min`` and ``max`` as positive parts, and expand arguments of all bounds."""

    def part(atom: Expr) -> Expr:
        if not atom.has(index):
            return atom
        sides = [Polynomial.of(side).expr for side in atom.args]
        match atom:
            case Least():
                return sides[1] - _excess(index, run, Polynomial.of(sides[1] - sides[0]).expr)
            case Most():
                return sides[0] + _excess(index, run, Polynomial.of(sides[1] - sides[0]).expr)
            case Excess():
                return _excess(index, run, sides[0])
        return atom.func(*sides)

    return Polynomial.of(term.replace(lambda atom: isinstance(atom, (*BOUNDS, Least, Most)), part)).expr


def _excess(index: Symbol, run: Run, value: Expr) -> Expr:
    """``max(0, value)``, simplified if ``index >= size*(index//size)`` and ``size >= 1`` decide the sign."""
    found, rest = value, Dummy(integer=True, nonnegative=True)
    for atom in value.atoms(FloorDiv):
        if _is_quotient(index, atom) and atom.args[0] == index:
            found = found.xreplace({atom: rest}).xreplace({index: atom.args[1] * rest + index})
            break
    found = Polynomial.of(found.xreplace({size: size + 1 for size in run.positive if size.is_Symbol}))
    if all(atom.is_nonnegative for monomial in found.terms for atom, _ in monomial):
        if all(factor >= 0 for factor in found.terms.values()):
            return value
        if all(factor <= 0 for factor in found.terms.values()):
            return ZERO
    return Excess(value)


def _cut(index: Symbol, run: Run, atom: Expr) -> list[tuple[Run, Expr]] | None:
    """Split ``run`` where ``atom`` changes from or to 0; returns (part, value of ``atom``) pairs, or None."""
    above, rest = (atom.args[0], atom.args[0]) if isinstance(atom, Excess) else (ONE, atom.args[0] - atom.args[1])
    found = _turn(index, run, rest, isinstance(atom, AtLeast))
    if found is None:
        return None
    place, rises = found
    first, second = (ZERO, above) if rises else (above, ZERO)
    if place in run.lows:
        return [(run, second)]
    if place in run.highs:
        return [(run, first)]
    middle = Least(run.high, Most(run.low, place))
    return [
        (replace(run, high=middle, highs=(*run.highs, place)), first),
        (replace(run, low=middle, lows=(*run.lows, place)), second),
    ]


def _turn(index: Symbol, run: Run, rest: Expr, strict: bool) -> tuple[Expr, bool] | None:
    """Find where ``rest`` changes its sign; returns (index, rises), or None if that is unknown.

    From this index on, ``rest >= 0`` if ``rises``, else ``rest <= 0``, or ``rest < 0`` if ``strict``.
    """
    parts = Polynomial.of(rest).split(lambda atom: atom.has(index))
    moving = [(monomial, factor) for monomial, factor in parts.items() if monomial]
    if not moving:
        return (run.lows[0], True) if rest.is_nonnegative else (run.lows[0], False) if rest.is_negative else None
    if len(moving) != 1 or len(moving[0][0]) != 1:
        return None
    ((atom, power),), factor = moving[0]
    slope, still = factor.expr, parts.get(frozenset(), Polynomial({})).expr
    sign = 1 if _positive(slope, run) else -1 if _positive(-slope, run) else 0
    if power != 1 or not sign or not (atom == index or _is_quotient(index, atom)):
        return None
    ends = [_quotient(CeilDiv, -still * sign, slope * sign), _quotient(FloorDiv, -still * sign, slope * sign) + 1]
    ends = ends[sign < 0 :][:1] if strict else ends  # sides are equal where they meet: either end will do
    if atom != index:
        ends = [Polynomial.of(atom.args[1] * end - (atom.args[0] - index)).expr for end in ends]
    known = {*run.lows, *run.highs}
    return min(ends, key=lambda end: (end not in known, len(Polynomial.of(end).terms))), sign > 0


def _quotient(function: Callable[[Expr, Expr], Expr], above: Expr, below: Expr) -> Expr:
    """``above / below`` if it is an integer polynomial, else ``function(above, below)``."""
    whole = Polynomial.of(above).quotient(Polynomial.of(below))
    return whole.expr if whole is not None and whole.expr.is_integer else function(above, below)


def _is_quotient(index: Symbol, atom: Expr) -> bool:
    return isinstance(atom, FloorDiv) and not (atom.args[0] - index).has(index) and not atom.args[1].has(index)


def _positive(expr: Expr, run: Run) -> bool:
    return bool(expr.is_positive) or expr in run.positive


def _by_runs(index: Symbol, run: Run, term: Expr, quotients: list[Expr]) -> Expr | None:
    """Compute the sum of ``term`` over full blocks of a divisor and the partial last one; None if unknown."""
    first, *others = quotients
    if others or not _is_quotient(index, first):
        return None
    size, shift = first.args[1], first.args[0] - index
    outer, inner = (size_symbol(f"{index.name}{mark}") for mark in ("/", "%"))
    parts = term.xreplace({first: outer}).xreplace({index: outer * size + inner - shift})
    whole = _total(inner, Run(ZERO, size, (ZERO,), (size,), run.positive), parts)
    if whole is None:
        return None

    def up_to(end: Expr) -> Expr | None:
        exact = Polynomial.of(end).quotient(Polynomial.of(size))
        runs = exact.expr if exact is not None and exact.expr.is_integer else FloorDiv(end, size)
        left = ZERO if exact is not None and exact.expr.is_integer else Modulo(end, size)
        full = _total(outer, Run(ZERO, runs, (ZERO,), (runs,), run.positive), whole)
        rest = (
            _total(inner, Run(ZERO, left, (ZERO,), (left,), run.positive), parts.xreplace({outer: runs}))
            if left != ZERO
            else ZERO
        )
        return None if full is None or rest is None else full + rest

    above, below = up_to(run.high + shift), ZERO if run.low + shift == ZERO else up_to(run.low + shift)
    return None if above is None or below is None else above - below


def _power_sums(index: Symbol, run: Run, term: Expr) -> Expr | None:
    """Compute the sum of ``term`` over ``run`` if it is a polynomial in the index; else return None."""
    total: Expr = ZERO
    for monomial, factor in Polynomial.of(term).split(lambda atom: atom.has(index)).items():
        power = dict(monomial).get(index, 0) if monomial else 0
        if (monomial and monomial != frozenset({(index, power)})) or not 0 <= power <= MAX_DEGREE:
            return None
        total += factor.expr * (_powers(power, run.high) - _powers(power, run.low))
    return total


def _powers(power: int, end: Expr) -> Expr:
    """``0**power + 1**power + ... + (end - 1)**power``, by Faulhaber's formula."""
    numbers = [bernoulli(place) if place != 1 else Rational(-1, 2) for place in range(power + 1)]
    factors = [Rational(comb(power + 1, place), power + 1) * number for place, number in enumerate(numbers)]
    return Add(*(factor * end ** (power + 1 - place) for place, factor in enumerate(factors)))
