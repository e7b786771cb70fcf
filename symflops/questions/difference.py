"""Why two models cost differently: sizes of one are changed to those of the other one by one, then modules are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from symflops.diagnostics.errors import SymflopsError
from symflops.emit.python.printer import PythonPrinter
from symflops.model.formula import Formula, Sym, symbols
from symflops.model.polynomials import Poly, expanded
from symflops.model.program import Program
from symflops.model.rewriting import Rewriting
from symflops.model.terms import plus, times
from symflops.questions.subject import Batch, Subject
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.specialise.assumed import put
from symflops.specialise.folding import ShortPolys
from symflops.specialise.specialise import specialise

Change = tuple[tuple[str, str], ...]
"""A difference of closed forms: moments, each with its coefficient."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Parameters and FLOPs of one step, or their differences."""

    parameters: int
    forward: int
    backward: int

    @property
    def total(self) -> int:
        """FLOPs of both passes."""
        return self.forward + self.backward

    def less(self, other: Figures) -> Figures:
        """These minus others."""
        passes = self.forward - other.forward, self.backward - other.backward
        return Figures(self.parameters - other.parameters, *passes)


@dataclass(frozen=True, slots=True)
class Cause:
    """What makes a part of a difference: a size (``size``) or a module (``module``), its figures, and its forward formula."""

    kind: str
    words: str
    figures: Figures
    forward: Change


@dataclass(frozen=True, slots=True)
class Difference:
    """The second model minus the first: figures, both closed forms, and causes that sum to the figures."""

    first: Figures
    second: Figures
    forward: Change
    backward: Change
    causes: tuple[Cause, ...]


class Pair:
    """Two models at one batch."""

    def __init__(self, first: Subject, second: Subject, batch: Batch) -> None:
        self.first, self.second, self.batch = first, second, batch
        self.letters = shared(first.program, second.program)

    def difference(self) -> Difference:
        """The difference, cause by cause.

        Raises:
            SymflopsError: one of the models does not take the batch.
        """
        one, two = (figures(subject.estimator, self.batch) for subject in (self.first, self.second))
        middle, sizes = self.changed()
        modules = tuple(self.modules(middle))
        whole = self.forms(self.first, self.second)
        return Difference(one, two, whole.change(), whole.change("backward"), (*sizes, *modules))

    # sizes

    def changed(self) -> tuple[Subject, list[Cause]]:
        """The first model with the second one's sizes, as far as it takes them, and what each of them makes."""
        one, two = self.first.estimator.sizes, self.second.estimator.sizes
        here, causes, waiting = self.first, list[Cause](), list[str]()
        for letter, other in self.letters.items():
            if not self.first.program.keys[letter] or same(one[letter], two[other]):
                continue
            waiting.append(letter)
            there = self.moved(here, {name: two[self.letters[name]] for name in waiting})
            if there is not None:
                found = figures(there.estimator, self.batch).less(figures(here.estimator, self.batch))
                if found != NOTHING:
                    keys, values = (
                        here.program.keys,
                        [(name, told(one[name]), told(two[self.letters[name]])) for name in waiting],
                    )
                    words = ", ".join(f"{keys[name][0]}: {before} -> {after}" for name, before, after in values)
                    causes.append(Cause("size", words, found, self.forms(here, there, waiting).change()))
                here, waiting = there, []
        return here, causes

    def moved(self, here: Subject, values: Mapping[str, Any]) -> Subject | None:
        """A model with other values of some sizes; None if it does not take them."""
        config = here.with_size(*next(iter(values.items())))
        for letter, value in values.items():
            put(config, here.program.keys[letter], list(value) if isinstance(value, tuple) else value)
        try:
            there = Subject(here.spec, config, here.regime, here.convention)
            figures(there.estimator, self.batch)
        except SymflopsError:
            return None
        return there

    # modules

    def modules(self, middle: Subject) -> Iterator[Cause]:
        """What modules of the second model do other than those of the first with its sizes, the largest difference first."""
        done = [by_module(subject.estimator, self.batch) for subject in (middle, self.second)]
        forms, found = self.forms(middle, self.second), []
        for name in dict.fromkeys([*done[0], *done[1]]):
            one, two = (work.get(name) for work in done)
            change = (two or NOTHING).less(one or NOTHING)
            if change != NOTHING:
                alone = self.second if one is None else middle if two is None else None
                words = f"{name} of {alone.program.name} alone" if alone else name
                found.append(Cause("module", words, change, forms.change("forward", name)))
        yield from sorted(found, key=lambda cause: (-abs(cause.figures.total), -abs(cause.figures.parameters)))

    # formulas

    def forms(self, here: Subject, there: Subject, letters: Sequence[str] = ()) -> Forms:
        """The difference of closed forms in sizes that both share; sizes that differ are numbers."""
        one, two = works(here, there, letters)
        counts = {field.letter for field in here.program.fields if field.kind == "count"}
        closed = counts & (set(one.letters()) ^ set(two.letters()))  # one of the two has a number in its place
        return Forms(*(works(here, there, (*letters, *closed)) if closed else (one, two)))


def works(here: Subject, there: Subject, letters: Sequence[str]) -> tuple[Work, Work]:
    """The work of two models, with numbers for ``letters`` of the first one and for what differs."""
    names = shared(here.program, there.program)
    sizes = here.estimator.sizes, there.estimator.sizes
    unlike = {one: two for one, two in names.items() if one in letters or not same(sizes[0][one], sizes[1][two])}
    first, second = decided(here, tuple(unlike)), decided(there, tuple(unlike.values()))
    if there.program.name != here.program.name:
        second = renamed(second, first, names)
    return Work(first, here), Work(second, there)


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


NOTHING = Figures(0, 0, 0)


def shared(one: Program, two: Program) -> dict[str, str]:
    """The letters of sizes that two programs read from the same field of a config."""
    fields = {key: letter for letter, keys in reversed(list(two.keys.items())) for key in keys}
    found = ((letter, next((fields[key] for key in keys if key in fields), None)) for letter, keys in one.keys.items())
    return {letter: other for letter, other in found if other is not None}


def same(one: Any, two: Any) -> bool:
    """Whether two values of sizes are the same; what has no value is like nothing."""
    return type(one) is type(two) and isinstance(one, (int, str, tuple, Fraction, type(None))) and bool(one == two)


def told(value: Any) -> str:
    """A value of a size; of a long list its length."""
    if isinstance(value, tuple):
        return f"{len(value)} entries" if len(value) > 4 else str(list(value))
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def figures(model: InterpretedEstimator, batch: Batch) -> Figures:
    """The figures of one step."""
    m = model.moments(**batch)
    return Figures(model.parameters, model.forward(m), model.backward(m))


def by_module(model: InterpretedEstimator, batch: Batch) -> dict[str, Figures]:
    """The figures of each module."""
    found: dict[str, list[int]] = {}
    for name, flops in model.by_module(model.moments(**batch)).items():
        found[name] = [0, flops.forward, flops.backward]
    for name, count in model.tensors().items():
        found.setdefault(name.rpartition(".")[0] or name, [0, 0, 0])[0] += count
    return {name: Figures(*numbers) for name, numbers in found.items()}


class Work:
    """The closed forms of a specialised program, and of its modules, multiplied out, by what their moments are."""

    def __init__(self, program: Program, subject: Subject) -> None:
        self.program = program
        case = subject.derived.case
        self.case = program.case(case.regime, case.convention)
        self.names: dict[tuple[Any, ...], str] = {}

    def letters(self) -> Iterator[str]:
        """The letters of the closed forms, in order."""
        for _, formula in self.case.forward:
            yield from symbols(formula)

    def forms(self, work: str, module: str | None) -> dict[tuple[Any, ...], Poly]:
        """The coefficient of each moment, forward or backward, of all or of one module."""
        found: dict[tuple[Any, ...], Poly] = {}
        for place, formula in getattr(self.case, work) if module is None else self.lines(work, module):
            moment = self.program.moments[place]
            key = (moment.items, moment.formula, moment.side)
            self.names.setdefault(key, self.program.sum_name(place, self.case.convention))
            found[key] = found.get(key, Poly({})) + expanded(formula)
        return found

    def lines(self, work: str, module: str) -> Iterator[tuple[int, Formula]]:
        """The terms of the lines of a module."""
        program, convention = self.program, self.case.convention
        for line in program.regime(self.case.regime).under(convention):
            if line.module == module and (line.seen or dict(program.unseen)[convention]):
                count = line.forward if work == "forward" else plus(line.backward)
                amount = line.amount.under(dict(program.pairs)[convention])
                yield from ((place, times(line.unit, count, part)) for place, part in amount)


class Forms:
    """The difference of the closed forms of two models."""

    def __init__(self, one: Work, two: Work) -> None:
        self.one, self.two = one, two
        self.writer = ShortPolys([*one.letters(), *two.letters()], frozenset())

    def change(self, work: str = "forward", module: str | None = None) -> Change:
        """The second less the first, of all or of one module."""
        before, after = (each.forms(work, module) for each in (self.one, self.two))
        changes = {key: after.get(key, Poly({})) - before.get(key, Poly({})) for key in dict.fromkeys([*before, *after])}
        names = self.two.names | self.one.names
        return tuple((names[key], PythonPrinter().text(self.writer.shortest(poly))) for key, poly in changes.items() if poly)
