"""Attributes a cost difference between two models: to sizes, changed one by one, then to modules."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from symflops.analysis.subject import Batch, Subject
from symflops.evaluate.config import put
from symflops.evaluate.folding import constant
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.item_analysis import Cause, Change, Figures
from symflops.evaluate.specialise import specialise
from symflops.formula.factoring import Writer, expanded
from symflops.formula.formula import Formula, Sym, symbols
from symflops.formula.sparse import Poly
from symflops.formula.terms import Rewriting, plus, times
from symflops.ir.batch import Moment
from symflops.ir.program import Case, Program
from symflops.support.errors import SymflopsError

Key = tuple[str, Hashable, str]
"""A moment or product of lengths: (index set, formula or product of lengths, ``padded`` or empty)."""


def resolved(subject: Subject, numbers: Sequence[str]) -> Program:
    """Return the subject's program with conditions resolved, and with values for the sizes ``numbers``."""
    program, sizes = subject.program.counting([subject.derived.case.convention]), subject.estimator.sizes
    return specialise(program, {field.letter: sizes[field.letter] for field in program.fields}, numbers)


def renamed(program: Program, first: Program, names: Mapping[str, str]) -> Program:
    """Rename letters of ``program`` to those of ``first`` with equal meaning; other clashes get ``_2``.

    ``names`` maps letters of ``first`` to letters of ``program`` for sizes of the same config field.
    """
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


def translated(program: Program, first: Program, letters: Mapping[str, Formula | None]) -> Program:
    """Replace letters of ``program``, and sizes derived from them, by formulas in letters of ``first``.

    A size that ``first`` derives by the same formula gets the letter of ``first``. A letter with None in ``letters`` stays.
    """
    known, derived = dict(letters), {one.formula: Sym(one.letter) for one in first.definitions}
    for one in program.definitions:
        formula = in_place(one.formula, known)
        known[one.letter] = derived.get(formula, formula)
    made: Program = in_place(program, known)
    return made


def in_place(part: Any, letters: Mapping[str, Formula | None]) -> Any:
    """Substitute formulas for letters in a formula or in any record of formulas; None keeps a letter."""
    return Rewriting(lambda formula: letters.get(formula.name) if isinstance(formula, Sym) else None)(part)


def lengths_of(program: Program) -> frozenset[str]:
    """Return the letters of a program that stand for lengths: batch variables and batch statistics."""
    found = {name for stream in program.streams for name in stream.variables}
    return frozenset(found | {statistic.name for statistic in program.statistics})


class Work:
    """Closed forms of a specialised program and of its modules: moment -> coefficient, as a polynomial.

    If ``lengths``, the letters of lengths, are given, moments are split into products of these letters. Two models whose
    lengths are formulas of each other then have comparable moments.
    """

    def __init__(self, program: Program, case: Case, lengths: Collection[str] = ()) -> None:
        self.program, self.lengths = program, frozenset(lengths)
        self.case = program.case(case.regime, case.convention)
        self.moments: dict[Key, Moment] = {}

    def letters(self) -> Iterator[str]:
        """Yield the letters of the forward closed form, in order of occurrence."""
        for _, formula in self.case.forward:
            yield from symbols(formula)

    def forms(self, work: str, module: str | None) -> dict[Key, Poly]:
        """Map each moment to its coefficient in the pass ``work``, of ``module`` or, if None, of the whole model."""
        found: dict[Key, Poly] = {}
        for place, formula in getattr(self.case, work) if module is None else self.lines(work, module):
            for key, factor in self.parts(place):
                found[key] = found.get(key, Poly({})) + expanded(formula) * factor
        return found

    def parts(self, place: int) -> Iterator[tuple[Key, Poly]]:
        """Split the moment at position ``place`` into products of lengths: yield (key of a product, its factor)."""
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
        """Yield (position of a moment, coefficient) for each term of ``module`` in the pass ``work``."""
        program, convention = self.program, self.case.convention
        for line in program.regime(self.case.regime).under(convention):
            if line.module == module and (line.seen or program.row(convention).unseen):
                count = line.forward if work == "forward" else plus(line.backward)
                amount = line.amount.under(program.row(convention).pairs)
                yield from ((place, times(line.unit, count, part)) for place, part in amount)


class Forms:
    """Differences between the closed forms of two models."""

    def __init__(self, one: Work, two: Work) -> None:
        self.one, self.two = one, two
        self.writer = Writer([*one.letters(), *two.letters()])

    def change(self, work: str = "forward", module: str | None = None) -> Change:
        """Subtract the first closed form from the second, in the pass ``work``, of ``module`` or of the model."""
        before, after = (each.forms(work, module) for each in (self.one, self.two))
        changes = {key: after.get(key, Poly({})) - before.get(key, Poly({})) for key in dict.fromkeys([*before, *after])}
        moments = self.two.moments | self.one.moments
        return tuple((moments[key], self.writer.shortest(poly)) for key, poly in changes.items() if poly)


@dataclass(frozen=True, slots=True)
class Difference:
    """The cost of a second model compared with that of a first one.

    ``terms`` has the second closed form minus the first, by pass. The figures of all ``causes`` add up to ``second`` minus
    ``first``.
    """

    first: Figures
    second: Figures
    terms: Mapping[str, Change]
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Meaning:
    """The batch of a second model, and its letters as formulas in the letters of a first model."""

    batch: Batch
    letters: Mapping[str, Formula]


class Pair:
    """Two models to compare on one batch; if ``meaning`` is given, the second one on the batch there."""

    def __init__(self, first: Subject, second: Subject, batch: Batch, meaning: Meaning | None = None) -> None:
        self.first, self.second, self.batch, self.meaning = first, second, batch, meaning
        self.other = meaning.batch if meaning else batch
        self.letters = shared(first.program, second.program)

    def difference(self) -> Difference:
        """Compute the cost of the second model minus that of the first, by cause.

        Raises:
            SymflopsError: one of the models rejects its batch.
        """
        one, two = figures(self.first.estimator, self.batch), figures(self.second.estimator, self.other)
        middle, sizes = (self.first, []) if self.meaning else self.changed()
        modules = tuple(self.modules(middle))
        whole = self.forms(self.first, self.second)
        return Difference(one, two, {work: whole.change(work) for work in ("forward", "backward")}, (*sizes, *modules))

    # sizes

    def changed(self) -> tuple[Subject, list[Cause]]:
        """Change the sizes of the first model to those of the second, one by one, where it accepts them.

        Returns (the changed model, a cause for each change with an effect).
        """
        one, two = self.first.estimator.sizes, self.second.estimator.sizes
        here, causes, waiting = self.first, list[Cause](), list[str]()
        for letter, other in self.letters.items():
            if not self.first.program.keys[letter] or same(one[letter], two[other]):
                continue
            waiting.append(letter)
            there = self.with_values(here, {name: two[self.letters[name]] for name in waiting})
            if there is not None:
                found = figures(there.estimator, self.batch).less(figures(here.estimator, self.batch))
                if found != NOTHING:
                    keys = here.program.keys
                    changes = tuple(
                        (keys[name][0], value_text(one[name]), value_text(two[self.letters[name]])) for name in waiting
                    )
                    causes.append(Cause("size", found, self.forms(here, there, waiting).change(), changes=changes))
                here, waiting = there, []
        return here, causes

    def with_values(self, here: Subject, values: Mapping[str, Any]) -> Subject | None:
        """Return ``here`` with ``values`` for the sizes with these letters; None if the model rejects them."""
        config = here.with_size(*next(iter(values.items())))
        for letter, value in values.items():
            put(config, here.program.keys[letter], list(value) if isinstance(value, tuple) else value)
        try:
            there = here.of_config(config)
            figures(there.estimator, self.batch)
        except SymflopsError:
            return None
        return there

    # modules

    def modules(self, middle: Subject) -> Iterator[Cause]:
        """Yield a cause per module, largest first: its cost in the second model minus that in ``middle``.

        ``middle`` is the first model with the sizes of the second.
        """
        done = [by_module(middle.estimator, self.batch), by_module(self.second.estimator, self.other)]
        forms, found = self.forms(middle, self.second), []
        for name in dict.fromkeys([*done[0], *done[1]]):
            one, two = (work.get(name) for work in done)
            change = (two or NOTHING).less(one or NOTHING)
            if change != NOTHING:
                alone = self.second if one is None else middle if two is None else None
                terms = forms.change("forward", name)
                found.append(Cause("module", change, terms, name, alone.program.name if alone else ""))
        yield from sorted(found, key=lambda cause: (-abs(cause.figures.total), -abs(cause.figures.parameters)))

    # formulas

    def forms(self, here: Subject, there: Subject, letters: Sequence[str] = ()) -> Forms:
        """Return the closed forms of two models in the letters of sizes with equal values.

        Other sizes, and those in ``letters``, are numbers.
        """
        one, two = self.works(here, there, letters)
        counts = {field.letter for field in here.program.fields if field.kind == "count"}
        closed = counts & (set(one.letters()) ^ set(two.letters()))  # a count that only one form keeps symbolic
        return Forms(*(self.works(here, there, (*letters, *closed)) if closed else (one, two)))

    def works(self, here: Subject, there: Subject, letters: Sequence[str]) -> tuple[Work, Work]:
        """Build the closed forms of two models: (those of ``here``, those of ``there``).

        They have numbers for ``letters`` and for sizes with unequal values.
        """
        names = shared(here.program, there.program)
        sizes = here.estimator.sizes, there.estimator.sizes
        if there is self.second and self.meaning:
            values = {letter: constant(sizes[0][letter]) for letter in letters}
            known = {letter: in_place(formula, values) for letter, formula in self.meaning.letters.items()}
            numbers = [field.letter for field in there.program.fields if field.letter not in known]
            second, lengths = translated(resolved(there, numbers), here.program, known), lengths_of(here.program)
            return Work(resolved(here, letters), here.derived.case, lengths), Work(second, there.derived.case, lengths)
        unlike = {one: two for one, two in names.items() if one in letters or not same(sizes[0][one], sizes[1][two])}
        first, second = resolved(here, tuple(unlike)), resolved(there, tuple(unlike.values()))
        if there.program.name != here.program.name:
            second = renamed(second, first, names)
        return Work(first, here.derived.case), Work(second, there.derived.case)


NOTHING = Figures(0, 0, 0)


def shared(one: Program, two: Program) -> dict[str, str]:
    """Map letters of ``one`` to letters of ``two``, for sizes that both read from the same config field."""
    fields = {key: letter for letter, keys in reversed(list(two.keys.items())) for key in keys}
    found = ((letter, next((fields[key] for key in keys if key in fields), None)) for letter, keys in one.keys.items())
    return {letter: other for letter, other in found if other is not None}


def same(one: Any, two: Any) -> bool:
    """Whether two values of sizes are equal and of one type; False for a missing value."""
    return type(one) is type(two) and isinstance(one, (int, str, tuple, Fraction, type(None))) and bool(one == two)


def value_text(value: Any) -> str:
    """The text of a size's value; a list of more than four entries is shown by its length."""
    if isinstance(value, tuple):
        return f"{len(value)} entries" if len(value) > 4 else str(list(value))
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def figures(model: InterpretedEstimator, batch: Batch) -> Figures:
    """Return the parameters, forward and backward FLOPs of one step on ``batch``."""
    m = model.moments(**batch)
    return Figures(model.parameters, model.forward(m), model.backward(m))


def by_module(model: InterpretedEstimator, batch: Batch) -> dict[str, Figures]:
    """Map each module's path to its parameters, forward and backward FLOPs of one step on ``batch``."""
    found: dict[str, list[int]] = {}
    for name, flops in model.by_module(model.moments(**batch)).items():
        found[name] = [0, flops.forward, flops.backward]
    for name, count in model.tensors().items():
        found.setdefault(name.rpartition(".")[0] or name, [0, 0, 0])[0] += count
    return {name: Figures(*numbers) for name, numbers in found.items()}
