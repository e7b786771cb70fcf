"""Dead-code elimination for programs: drops unused moments, statistics and derived sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from symflops.formula.formula import Formula, Sym, symbols, walk
from symflops.formula.terms import Rewriting, Terms
from symflops.ir.program import Definition, Line, Program


def without_idle(program: Program) -> Program:
    """Copy a program without moments, statistics and derived sizes that no formula of the program uses."""
    used = {place for form in forms(program) for place, _ in form}
    made = renumbered(program, {place: number for number, place in enumerate(sorted(used))})
    read = {name for moment in made.moments for name in symbols(moment.formula)}
    made = replace(made, statistics=tuple(one for one in made.statistics if one.name in read))
    return replace(made, definitions=tuple(reversed(list(needed(made)))))


def forms(program: Program) -> Iterator[Terms]:
    """Iterate over all vectors in a program that have a coefficient per moment."""
    for case in program.cases:
        yield from (case.forward, case.backward, case.recomputed)
    for amount in program.amounts:
        yield from (amount.useful, amount.executed)
    yield from (regime.tokens for regime in program.regimes)


def renumbered(program: Program, places: Mapping[int, int]) -> Program:
    """Copy a program with only the moments in ``places`` (old position -> new one), in all its vectors."""

    def moved(terms: Terms) -> Terms:
        return tuple((places[place], formula) for place, formula in terms)

    amounts = {
        amount: replace(amount, useful=moved(amount.useful), executed=moved(amount.executed)) for amount in program.amounts
    }

    def lines(some: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(replace(line, amount=amounts[line.amount]) for line in some)

    regimes = []
    for regime in program.regimes:
        own = tuple((name, lines(some)) for name, some in regime.own)
        regimes.append(replace(regime, lines=lines(regime.lines), own=own, tokens=moved(regime.tokens)))
    cases = tuple(
        replace(case, forward=moved(case.forward), backward=moved(case.backward), recomputed=moved(case.recomputed))
        for case in program.cases
    )
    moments = tuple(program.moments[place] for place in places)
    return replace(program, amounts=tuple(amounts.values()), regimes=tuple(regimes), cases=cases, moments=moments)


def needed(program: Program) -> Iterator[Definition]:
    """Iterate over the derived sizes that formulas of a program use, in reverse order of definition."""
    letters: set[str] = set()

    def noted(formula: Formula) -> Formula:
        letters.update(part.name for part in walk(formula) if isinstance(part, Sym))
        return formula

    Rewriting(noted)(replace(program, definitions=()))
    for one in reversed(program.definitions):
        if one.letter in letters:
            letters.update(symbols(one.formula))
            yield one
