"""Case distinctions on a config: ``[c]*a + (1 - [c])*b`` is ``a`` if ``c`` holds, else ``b``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeVar

from symflops.emit.math.lines import fold, width
from symflops.emit.math.printer import LatexPrinter
from symflops.formula.arrangements import negated
from symflops.formula.factoring import expanded
from symflops.formula.formula import MINUS, ONE, ZERO, Apply, Bracket, Formula, Num, Prod, Sum, Sym, TallyOf, Text, walk
from symflops.formula.sparse import Factor, Monomial, Poly
from symflops.formula.terms import Rewriting, factors_of, plus, product_of

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
    poly = expanded(formula, _spelled)
    terms: dict[Monomial, Factor] = {}
    for monomial, factor in poly.terms.items():
        equal = [atom for atom, _ in monomial if isinstance(atom, Bracket) and atom.kind == "equal"]
        if len(equal) > 1 and any(_excluded(one, other) for one, other in combinations(equal, 2)):
            continue
        positive = {Bracket("at_least", (atom, ONE)) for atom, _ in monomial if isinstance(atom, Sym)}
        kept = frozenset(pair for pair in monomial if pair[0] not in positive) if len(monomial) > 1 else monomial
        terms[kept] = terms.get(kept, 0) + factor
    return Poly(terms)


def _spelled(atom: Formula) -> Poly | None:
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
