"""The closed forms of two models in the same letters, and their difference."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from symflops.algebra.sparse import Poly
from symflops.analysis.against import Change
from symflops.model.formula import Formula, Sym, symbols
from symflops.model.polynomials import Writer, expanded
from symflops.model.program import Program
from symflops.model.rewriting import Rewriting
from symflops.model.sums import Moment
from symflops.model.terms import plus, times
from symflops.questions.subject import Subject
from symflops.specialise.specialise import specialise

Key = tuple[str, Hashable, str]


def decided(subject: Subject, numbers: Sequence[str]) -> Program:
    """A program with its conditions decided, and with numbers for some of its sizes."""
    program, sizes = subject.program.counting([subject.derived.case.convention]), subject.estimator.sizes
    return specialise(program, {field.letter: sizes[field.letter] for field in program.fields}, numbers)


def renamed(program: Program, first: Program, names: Mapping[str, str]) -> Program:
    """A program with the letters of a first one where they mean the same, else with another letter if the first has it."""
    back = {other: letter for letter, other in names.items()}
    lengths = {stream.name: stream.variables for stream in first.streams}
    for stream in program.streams:
        back |= dict(zip(stream.variables, lengths.get(stream.name, ()), strict=False))
    derived = {one.letter: one.formula for one in first.definitions}
    taken = {*first.keys, *derived}

    def change(formula: Formula) -> Formula | None:
        if not isinstance(formula, Sym):
            return None
        return Sym(back.get(formula.name, f"{formula.name}_2" if formula.name in taken else formula.name))

    for one in program.definitions:
        if Rewriting(change)(one.formula) == derived.get(one.letter):
            back[one.letter] = one.letter
    made: Program = Rewriting(change)(program)
    return made


def meant(program: Program, first: Program, letters: Mapping[str, Formula | None]) -> Program:
    """A program with formulas in place of its letters, and of the sizes that are derived from them.

    A size that the first program derives by the same formula has its letter.
    """
    known, derived = dict(letters), {one.formula: Sym(one.letter) for one in first.definitions}
    for one in program.definitions:
        formula = in_place(one.formula, known)
        known[one.letter] = derived.get(formula, formula)
    made: Program = in_place(program, known)
    return made


def in_place(part: Any, letters: Mapping[str, Formula | None]) -> Any:
    """A formula, or what has formulas, with others in place of letters."""
    return Rewriting(lambda formula: letters.get(formula.name) if isinstance(formula, Sym) else None)(part)


def lengths_of(program: Program) -> frozenset[str]:
    """The letters of lengths: batch variables, and statistics of the batch."""
    found = {name for stream in program.streams for name in stream.variables}
    return frozenset(found | {statistic.name for statistic in program.statistics})


class Work:
    """The closed forms of a specialised program, and of its modules, multiplied out, by what their moments are.

    If formulas may stand in place of ``lengths``, moments are multiplied out, too.
    """

    def __init__(self, program: Program, subject: Subject, lengths: Collection[str] = ()) -> None:
        self.program, self.lengths = program, frozenset(lengths)
        case = subject.derived.case
        self.case = program.case(case.regime, case.convention)
        self.moments: dict[Key, Moment] = {}

    def letters(self) -> Iterator[str]:
        """The letters of the closed forms, in order."""
        for _, formula in self.case.forward:
            yield from symbols(formula)

    def forms(self, work: str, module: str | None) -> dict[Key, Poly]:
        """The coefficient of each moment, forward or backward, of all or of one module."""
        found: dict[Key, Poly] = {}
        for place, formula in getattr(self.case, work) if module is None else self.lines(work, module):
            for key, factor in self.parts(place):
                found[key] = found.get(key, Poly({})) + expanded(formula) * factor
        return found

    def parts(self, place: int) -> Iterator[tuple[Key, Poly]]:
        """A moment as sums of products of lengths, each with its factor."""
        moment = self.program.moments[place]
        named = replace(moment, name=self.program.sum_name(place, self.case.convention))
        if not self.lengths:
            whole: Key = (moment.items, moment.formula, moment.side)
            self.moments.setdefault(whole, named)
            yield whole, Poly.constant(1)
            return
        parts = expanded(moment.formula).split(lambda atom: not self.lengths.isdisjoint(symbols(atom)))
        for product, factor in parts.items():
            formula = Writer(()).plain(Poly({product: Fraction(1)}))
            part: Key = (moment.items, product, moment.side)
            self.moments.setdefault(part, replace(named, formula=formula))
            yield part, factor

    def lines(self, work: str, module: str) -> Iterator[tuple[int, Formula]]:
        """The terms of the lines of a module."""
        program, convention = self.program, self.case.convention
        for line in program.regime(self.case.regime).under(convention):
            if line.module == module and (line.seen or program.row(convention).unseen):
                count = line.forward if work == "forward" else plus(line.backward)
                amount = line.amount.under(program.row(convention).pairs)
                yield from ((place, times(line.unit, count, part)) for place, part in amount)


class Forms:
    """The difference of the closed forms of two models."""

    def __init__(self, one: Work, two: Work) -> None:
        self.one, self.two = one, two
        self.writer = Writer([*one.letters(), *two.letters()])

    def change(self, work: str = "forward", module: str | None = None) -> Change:
        """The second less the first, of all or of one module."""
        before, after = (each.forms(work, module) for each in (self.one, self.two))
        changes = {key: after.get(key, Poly({})) - before.get(key, Poly({})) for key in dict.fromkeys([*before, *after])}
        moments = self.two.moments | self.one.moments
        return tuple((moments[key], self.writer.shortest(poly)) for key, poly in changes.items() if poly)
