"""Shortest form of formulas, the measure of length (a reader's effort), and cases of a config.

As a case distinction, ``[c]*a + (1 - [c])*b`` is ``a`` if ``c`` holds, else ``b``.

An operator counts 1; a condition or a sum over iterations interrupts a reader, and counts more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, permutations
from typing import Any, TypeVar

from symflops.emit.math.printer import LatexPrinter, fold, width
from symflops.formula.arrangements import negated
from symflops.formula.factoring import Writer, expanded
from symflops.formula.formula import (
    MINUS,
    ONE,
    ZERO,
    Apply,
    Bracket,
    Formula,
    Num,
    Prod,
    Sum,
    Sym,
    TallyOf,
    Text,
    operators,
    parts,
    symbols,
    walk,
)
from symflops.formula.sparse import Factor, Monomial, Poly, extracted, ratio
from symflops.formula.terms import Rewriting, factors_of, is_negative, plus, product_of, times
from symflops.ir.program import Program

T = TypeVar("T")
Conditions = tuple[tuple[Bracket, bool], ...]
"""Conjunction of conditions, each with its truth value."""
Rows = tuple[tuple[Conditions, T], ...]
"""Mutually exclusive cases of a value: (conditions, value)."""


def by_cases(poly: Poly, key: Callable[[Formula], Any]) -> Rows[Poly]:
    """Split a polynomial into the cases of its conditions, the most frequent condition first.

    ``key`` decides between equally frequent conditions.
    """
    uses = Counter(atom for monomial in poly.terms for atom, _ in monomial if isinstance(atom, Bracket))
    if not uses:
        return (((), poly),)
    first = min(uses, key=lambda atom: (-uses[atom], key(atom)))
    return tuple(
        (((first, holds), *conditions), value)
        for holds in (True, False)
        for conditions, value in by_cases(assumed(poly, first, holds), key)
    )


def assumed(poly: Poly, condition: Bracket, holds: bool) -> Poly:
    """Simplify ``poly`` for the case that ``condition`` is true, or if not ``holds``, that it is false."""
    void: set[Formula] = set() if holds else {condition, *_zero(condition)}
    if holds == (condition.kind == "equal"):
        void |= {atom for monomial in poly.terms for atom, _ in monomial if _excluded(atom, condition)}
    kept = {monomial: factor for monomial, factor in poly.terms.items() if not any(atom in void for atom, _ in monomial)}
    true = {condition, Bracket("given", condition.arguments[:1])} if condition.kind == "equal" else {condition}
    return Poly(kept).without(frozenset(true) if holds else frozenset())


def _zero(condition: Bracket) -> Iterator[Formula]:
    """Yield the size that must be 0 if ``condition`` fails: ``n`` for ``n >= 1``."""
    match condition:
        case Bracket("at_least", (Sym() as size, Num(least))) if least == 1:
            yield size


def multiplied_out(formula: Formula) -> Poly:
    """Expand ``formula`` into a polynomial: iterations in canonical form, and ``[a >= 1]*a`` as ``a``.

    Products of conditions that exclude each other vanish.
    """
    poly = expanded(formula, _canonical)
    terms: dict[Monomial, Factor] = {}
    for monomial, factor in poly.terms.items():
        equal = [atom for atom, _ in monomial if isinstance(atom, Bracket) and atom.kind == "equal"]
        if len(equal) > 1 and any(_excluded(one, other) for one, other in combinations(equal, 2)):
            continue
        positive = {Bracket("at_least", (atom, ONE)) for atom, _ in monomial if isinstance(atom, Sym)}
        kept = frozenset(pair for pair in monomial if pair[0] not in positive) if len(monomial) > 1 else monomial
        terms[kept] = terms.get(kept, 0) + factor
    return Poly(terms)


def _canonical(atom: Formula) -> Poly | None:
    """Return the canonical form of a sum over iterations; None for any other formula.

    The index is renamed. The last iterations become all iterations minus the first ones, and those without a condition become
    all iterations minus those with the condition.
    """
    if not isinstance(atom, TallyOf):
        return None
    met = expanded(atom.condition)
    if len(met.terms) > 1:
        return Poly.total(_counted(atom, monomial).scale(factor) for monomial, factor in met.terms.items())
    index = Sym(f"{atom.index.partition('@')[0]}@1_")
    condition = Rewriting(lambda part: index if part == Sym(atom.index) else None)(atom.condition)
    match atom.low, atom.high:
        case Sym() as low, Sum((Apply("excess", (Sum(terms),)), end)) if end == low:
            high = plus([*terms, low])
            first = TallyOf(index.name, ZERO, Apply("min", (high, low)), condition)
            return Poly.atom(TallyOf(index.name, ZERO, high, condition)) - Poly.atom(first)
    return Poly.atom(TallyOf(index.name, atom.low, atom.high, condition))


def _counted(atom: TallyOf, monomial: Monomial) -> Poly:
    """Return the number of iterations of the loop in ``atom`` with all conditions in ``monomial``."""
    if not monomial:
        return multiplied_out(atom.high) - multiplied_out(atom.low)
    written = [part for part in walk(atom.condition) if (part, 1) in monomial]
    return multiplied_out(replace(atom, condition=product_of(list(dict.fromkeys(written)))))


def _excluded(atom: Formula, condition: Bracket) -> bool:
    """Whether ``atom`` and ``condition`` cannot both hold: a size has two values, or a value and null."""
    match atom, condition:
        case Bracket("equal", (one, Num() | Text() as left)), Bracket("equal", (other, Num() | Text() as right)):
            return one == other and left != right
        case Bracket("equal", (one, Text())), Bracket("given", (other,)):
            return one == other
    return False


def joined(rows: Rows[Formula]) -> Formula:
    """Join cases into one formula with conditions as factors; cases of value 0 are omitted."""
    ((conditions, value), *_) = rows
    if not conditions:
        return value
    condition = conditions[0][0]
    terms = []
    for holds in (True, False):
        inner = joined(tuple((rest[1:], each) for rest, each in rows if rest[0][1] is holds))
        if inner != ZERO:
            terms.append(Prod((condition if holds else negated(condition), *factors_of(inner))))
    return ZERO if not terms else terms[0] if len(terms) == 1 else Sum(tuple(terms))


def rows_of(formula: Formula) -> Rows[Formula]:
    """Split a formula that :func:`joined` returned into its cases; any other formula is one case."""
    match formula:
        case Sum((Prod((Bracket() as first, *some)), Prod((Sum((one, Prod((minus, second)))), *others)))) if (
            one == ONE and minus == MINUS and first == second
        ):
            return (*_below(first, True, some), *_below(first, False, others))
        case Prod((Bracket() as first, Sum() as rest)) if len(rows_of(rest)) > 1:
            return (*_below(first, True, [rest]), (((first, False),), ZERO))
    return (((), formula),)


def _below(condition: Bracket, holds: bool, factors: Sequence[Formula]) -> Rows[Formula]:
    """Return the cases of the product of ``factors``, each with ``condition`` as its first condition."""
    inner = product_of(list(factors)) if factors else ONE
    return tuple((((condition, holds), *rest), value) for rest, value in rows_of(inner))


def cases_text(rows: Sequence[tuple[Conditions, Sequence[Formula]]], printer: LatexPrinter, points: float, end: str) -> str:
    """Print values by cases in LaTeX: in each case the values under its conditions.

    Lines are at most ``points`` wide and end with ``end``.
    """
    lines = []
    for place, (conditions, values) in enumerate(rows):
        told = ", ".join(printer.bracket(condition, holds)[0][1:-1] for condition, holds in conditions)
        words = rf"\text{{if }} {told}" if place < len(rows) - 1 else r"\text{otherwise}"
        text = ", ".join(map(printer.text, values))
        *first, last = fold(f"({text})" if len(values) > 1 else text, points - width(words))
        pieces = [f"{part} {end}\n\\quad {{}}" for part in first]
        lines.append(f"{''.join(pieces)}{last} & {words}")
    return rf"\begin{{cases}} {(' ' + end + chr(10)).join(lines)} \end{{cases}}"


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
