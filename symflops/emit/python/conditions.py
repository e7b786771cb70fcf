"""Conditions of a program, which are polynomials over 0/1 brackets, as Python conditions with ``and``, ``or`` and ``not``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, product
from math import prod

from symflops.emit.code.infix import CodePrinter
from symflops.formula.formula import Bracket, Formula, Num, Power, Prod, Sum

MOST = 8
"""Brackets of a condition that is rewritten; the table of truth doubles with each."""
Term = tuple[tuple[Bracket, bool], ...]
Signs = tuple[bool | None, ...]


def violated(formula: Formula, printer: CodePrinter) -> str:
    """Print the condition that ``formula``, a polynomial over brackets with values 0 and 1, is 0.

    The text is empty if something other than brackets occurs, or too many brackets.
    """
    found = dict.fromkeys(brackets_in(formula))
    brackets = [one for one in found if one is not None]
    if None in found or len(brackets) > MOST:
        return ""
    rows = list(product((False, True), repeat=len(brackets)))
    possible = [row for row in rows if not contradicts(dict(zip(brackets, row, strict=True)))]
    holds = [row for row in possible if value_of(formula, dict(zip(brackets, row, strict=True))) >= 1]
    fails = [row for row in possible if row not in holds]
    free = [row for row in rows if row not in possible]
    one, two = (text_of(shortest(part, free, brackets), printer) for part in (fails, holds))
    return min(one, f"not ({two})", key=len)


def brackets_in(formula: Formula) -> Iterator[Bracket | None]:
    """Yield the brackets of a polynomial, and None for each part that is neither bracket nor number."""
    match formula:
        case Bracket():
            yield formula
        case Sum(terms=parts) | Prod(factors=parts):
            for part in parts:
                yield from brackets_in(part)
        case Power(base=base, exponent=exponent) if exponent > 0:
            yield from brackets_in(base)
        case Num():
            pass
        case _:
            yield None


def value_of(formula: Formula, known: Mapping[Bracket, bool]) -> int:
    """Return the value of a polynomial; ``known`` says whether each of its brackets holds."""
    match formula:
        case Bracket():
            return int(known[formula])
        case Sum():
            return sum(value_of(term, known) for term in formula.terms)
        case Prod():
            return prod(value_of(factor, known) for factor in formula.factors)
        case Power():
            return int(value_of(formula.base, known) ** formula.exponent)
    assert isinstance(formula, Num)
    return int(formula.value)


def contradicts(known: Mapping[Bracket, bool]) -> bool:
    """Whether two brackets in ``known`` that hold say that one formula equals two different numbers."""
    equal = [one.arguments for one, value in known.items() if value and one.kind == "equal" and len(one.arguments) == 2]
    pairs = [(one, number) for arguments in equal for one, number in (arguments, arguments[::-1]) if isinstance(number, Num)]
    return any(one == two and first != second for (one, first), (two, second) in combinations(pairs, 2))


def shortest(wanted: list[tuple[bool, ...]], free: list[tuple[bool, ...]], brackets: list[Bracket]) -> list[Term]:
    """Return a short disjunction of conjunctions, found by the algorithm of Quine and McCluskey.

    Args:
        wanted: Rows of the truth table in which the disjunction must hold.
        free: Rows in which it may hold or not.
        brackets: The columns of the table.
    """
    current: set[Signs] = {*wanted, *free}
    primes: set[Signs] = set()
    while current:
        merged: set[Signs] = set()
        used: set[Signs] = set()
        for one in current:
            for place in [place for place, sign in enumerate(one) if sign is False]:
                two = (*one[:place], True, *one[place + 1 :])
                if two in current:
                    merged.add((*one[:place], None, *one[place + 1 :]))
                    used |= {one, two}
        primes |= current - used
        current = merged
    left, found, ordered = set(wanted), [], sorted(primes, key=str)
    while left:
        best = max(ordered, key=lambda prime: (len(covered(prime, left)), prime.count(None)))
        left -= covered(best, left)
        found.append(tuple((bracket, sign) for bracket, sign in zip(brackets, best, strict=True) if sign is not None))
    return found


def covered(prime: Signs, rows: set[tuple[bool, ...]]) -> set[tuple[bool, ...]]:
    """Return those of ``rows`` in which the conjunction ``prime`` holds."""
    return {row for row in rows if all(sign is None or sign is value for sign, value in zip(prime, row, strict=True))}


def text_of(terms: list[Term], printer: CodePrinter) -> str:
    """Print a disjunction of conjunctions as a Python expression."""
    texts = [" and ".join(literal(bracket, sign, printer) for bracket, sign in term) or "True" for term in terms]
    return " or ".join(texts) or "False"


def literal(bracket: Bracket, sign: bool, printer: CodePrinter) -> str:
    """Print a bracket as a Python expression; if not ``sign``, its negation."""
    text = printer.text(bracket).removeprefix("(").removesuffix(")") if bracket.kind in OPPOSITES else printer.text(bracket)
    if sign:
        return text
    for one, two in OPPOSITES.get(bracket.kind, {}).items():
        if text.count(one) == 1:
            return text.replace(one, two)
    return f"not {printer.text(bracket)}"


OPPOSITES = {"at_least": {" >= ": " < ", " <= ": " > "}, "equal": {" == ": " != "}}
