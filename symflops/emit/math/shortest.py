"""Shortest form of formulas, and the measure of length: a reader's effort.

An operator counts 1; a condition or a sum over iterations interrupts a reader, and counts more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations

from symflops.emit.math.cases import Rows, by_cases, multiplied_out
from symflops.formula.arrangements import negated
from symflops.formula.factoring import Writer, expanded
from symflops.formula.formula import (
    MINUS,
    ONE,
    ZERO,
    Bracket,
    Formula,
    Num,
    Prod,
    Sum,
    Sym,
    TallyOf,
    operators,
    parts,
    symbols,
    walk,
)
from symflops.formula.sparse import Monomial, Poly, extracted, ratio
from symflops.formula.terms import Rewriting, factors_of, is_negative, plus, product_of, times
from symflops.ir.program import Program

LINE, ROW, CONDITION, TALLY = 3, 2, 3, 5
"""Extra cost, in operators, of a definition, each of its cases, a condition, a sum over iterations."""
ROUNDS = 9  # maximum definitions of a program
COUNT, PART = "count@", "part@"


class Measured(Writer):
    """Writer of formulas in shortest form, which also measures the effort to read them, in operators."""

    def __init__(self, program: Program) -> None:
        lines = [line for regime in program.regimes for line in regime.lines]
        found = dict.fromkeys(count for line in lines for count in (line.forward, *line.backward, line.recomputed))
        counts = {atom for formula in found for atom in atoms(multiplied_out(formula)) if not isinstance(atom, Bracket)}
        made = [f"{COUNT}{number}" for number in range(1, ROUNDS + 1)]
        order = [name for formula in found for name in symbols(formula)]
        order = [*made, *sorted(set(order), key=order.index), *(one.letter for one in program.definitions)]
        super().__init__([*order, *(one.letter for one in program.fields)], frozenset(counts | set(map(Sym, made))))
        self.costs: dict[Poly, int] = {}

    def cost(self, poly: Poly) -> int:
        """Return the effort to read the shortest form of ``poly``, as :func:`measured`; it is cached."""
        if poly not in self.costs:
            self.costs[poly] = measured(self.shortest(poly))
        return self.costs[poly]

    def cases(self, value: Poly) -> Rows[Poly]:
        """Split the value of a definition into the cases of its conditions, as (conditions, value)."""
        return by_cases(value, self.key)

    def worth(self, value: Poly) -> int:
        """Return the effort to read a definition: its line, its cases, and their values."""
        rows = self.cases(value)
        return LINE + sum(self.cost(each) for _, each in rows) + (ROW * len(rows) if len(rows) > 1 else 0)

    def candidates(self, polys: Sequence[Poly]) -> Iterator[Poly]:
        """Yield the polynomials inside of ``polys`` that a definition may replace by a new letter."""
        for poly in polys:
            yield from self.numbers(poly)
            yield from self.choices(poly)
            for part in walk(self.shortest(poly)):
                if isinstance(part, Sum):
                    yield multiplied_out(part)
                elif isinstance(part, TallyOf):
                    yield Poly.atom(part)

    def numbers(self, poly: Poly) -> Iterator[Poly]:
        """Yield the candidates that are numbers of executions.

        They are factors with conditions, with sums over iterations, or with several terms.
        """
        for count in poly.split(lambda atom: not (atom in self.counts or self.is_choice(atom))).values():
            _, common, rest = extracted(count.terms)
            conditions = frozenset(pair for pair in common if self.is_choice(pair[0]))
            if any(isinstance(atom, TallyOf) for atom, _ in common):
                yield Poly({frozenset(pair for pair in common if isinstance(pair[0], (Bracket, TallyOf))): 1})
            if len(rest) > 1:
                yield Poly(rest)
                yield Poly(rest) * Poly({conditions: 1})
                yield from (Poly(rest) * Poly.atom(condition) for condition, _ in conditions)

    def choices(self, poly: Poly) -> Iterator[Poly]:
        """Yield, per condition, the candidate that differs by it: a common part of terms with equal counts."""
        for sizes in poly.split(lambda atom: atom in self.counts).values():
            for condition in sorted({atom for atom in atoms(sizes) if self.is_choice(atom)}, key=self.key):
                powers = sizes.powers(condition)
                without, holds = (powers.get(exponent, Poly({})) for exponent in (0, 1))
                gone = {monomial: factor for monomial, factor in without.terms.items() if holds.terms.get(monomial) == -factor}
                yield Poly(extracted((holds * Poly.atom(condition) + Poly(gone)).terms)[2])


def shared(cases: Rows[Poly]) -> bool:
    """Whether two cases have the same nonzero value, or all cases have a term in common."""
    values = [value for _, value in cases]
    kept = [value for value in values if value]
    return len(set(kept)) < len(kept) or bool(set.intersection(*(set(value.terms.items()) for value in values)))


def measured(formula: Formula) -> int:
    """Return the effort to read a formula: its operators, conditions and sums over iterations, weighted."""
    found = list(outside_tallies(formula))
    conditions, tallies = (sum(isinstance(part, kind) for part in found) for kind in (Bracket, TallyOf))
    return operators(formula) + CONDITION * conditions + TALLY * tallies


@cache
def factored(formula: Formula) -> Formula:
    """Factor a sum into its shortest form; other formulas are returned unchanged."""
    if not isinstance(formula, Sum):
        return formula
    return min((plainer(Writer(list(symbols(formula))).shortest(expanded(formula))), formula), key=measured)


def outside_tallies(formula: Formula) -> Iterator[Formula]:
    """Yield a formula and all its parts, except those inside sums over iterations."""
    yield formula
    for part in () if isinstance(formula, TallyOf) else parts(formula):
        yield from outside_tallies(part)


def atoms(poly: Poly) -> dict[Formula, None]:
    """Return the atoms (bases of the powers) of a polynomial as keys, in the order of its terms."""
    return {atom: None for monomial in poly.terms for atom, _ in monomial}


def weight(monomial: Monomial) -> int:
    """Return the effort to read a monomial, in operators."""
    return 2 + sum(1 if isinstance(atom, Sym) else 2 + operators(atom) for atom, _ in monomial)


def normalised(poly: Poly) -> Poly:
    """Divide ``poly`` by a number such that all its multiples by numbers give the same result."""
    _, number = poly.common
    positive = sum(1 if factor > 0 else -1 for factor in poly.terms.values())
    first = next(iter(poly.terms.values()), 1)
    return poly.scale(ratio(1 if positive > 0 or (positive == 0 and first > 0) else -1, number))


def plainer(formula: Formula) -> Formula:
    """Rewrite ``-c*(a - b)`` as ``c*(b - a)`` in a formula, and differences as :func:`difference` does."""

    def change(part: Formula) -> Formula | None:
        match part:
            case Prod((Num(value), *rest)) if value < 0:
                for place, factor in enumerate(rest):
                    if isinstance(factor, Sum) and turned(factor):
                        opposite = Sum(tuple(sorted((times(MINUS, term) for term in factor.terms), key=is_negative)))
                        return plainer(times(Num(-value), *rest[:place], opposite, *rest[place + 1 :]))
            case Sum(terms):
                for one, other in permutations(terms, 2):
                    if (count := difference(one, other)) is not None:
                        return plainer(plus([count, *(term for term in terms if term not in (one, other))]))
        return None

    changed: Formula = Rewriting(change)(formula)
    return changed


def difference(one: Formula, other: Formula) -> Formula | None:
    """Rewrite ``c*n - c*m``, two numbers of iterations, with one number: ``c*k``.

    None unless ``m`` counts the iterations of ``n`` under one more condition.
    """
    left, right = list(factors_of(one)), list(factors_of(times(MINUS, other)))
    for factor in tuple(left):
        if factor in right:
            left.remove(factor)
            right.remove(factor)
    match left, right:
        case [count], [TallyOf() as less] if (condition := counted(count, less)) is not None:
            factors = factors_of(less.condition)
            more = set(factors).symmetric_difference(factors_of(condition)) - {ONE}
            if len(more) == 1 and more.issubset(factors):
                rest = replace(less, condition=product_of([negated(each) if each in more else each for each in factors]))
                return times(*(rest if factor is count else factor for factor in factors_of(one)))
    return None


def counted(count: Formula, like: TallyOf) -> Formula | None:
    """Return the condition under which ``count`` counts the iterations of ``like``; 1 if it counts all.

    None if it counts others.
    """
    if isinstance(count, TallyOf):
        return count.condition if replace(count, condition=like.condition) == like else None
    return ONE if (like.low, like.high) == (ZERO, count) else None


def turned(formula: Sum) -> bool:
    """Whether a sum has as many negative terms as positive ones, and none that is a number."""
    return 2 * sum(map(is_negative, formula.terms)) == len(formula.terms) and not any(
        isinstance(one, Num) for one in formula.terms
    )
