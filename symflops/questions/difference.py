"""Why two models cost differently: sizes of one are changed to those of the other one by one, then modules are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from symflops.analysis.against import Cause, Change, Figures
from symflops.diagnostics.errors import SymflopsError
from symflops.model.formula import Formula
from symflops.model.program import Program
from symflops.questions.changes import Forms, Work, decided, in_place, lengths_of, meant, renamed
from symflops.questions.subject import Batch, Subject
from symflops.runtime.interpreted import InterpretedEstimator
from symflops.specialise.assumed import put
from symflops.specialise.folding import constant


@dataclass(frozen=True, slots=True)
class Difference:
    """The second model minus the first: figures, both closed forms, and causes that sum to the figures."""

    first: Figures
    second: Figures
    terms: Mapping[str, Change]
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the second model of a pair gets, in terms of the first: its batch, and its letters as formulas."""

    batch: Batch
    letters: Mapping[str, Formula]


class Pair:
    """Two models at one batch, or at two that ``meaning`` relates."""

    def __init__(self, first: Subject, second: Subject, batch: Batch, meaning: Meaning | None = None) -> None:
        self.first, self.second, self.batch, self.meaning = first, second, batch, meaning
        self.other = meaning.batch if meaning else batch
        self.letters = shared(first.program, second.program)

    def difference(self) -> Difference:
        """The difference, cause by cause.

        Raises:
            SymflopsError: one of the models does not take the batch.
        """
        one, two = figures(self.first.estimator, self.batch), figures(self.second.estimator, self.other)
        middle, sizes = (self.first, []) if self.meaning else self.changed()
        modules = tuple(self.modules(middle))
        whole = self.forms(self.first, self.second)
        return Difference(one, two, {work: whole.change(work) for work in ("forward", "backward")}, (*sizes, *modules))

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
                    keys = here.program.keys
                    changes = tuple((keys[name][0], told(one[name]), told(two[self.letters[name]])) for name in waiting)
                    causes.append(Cause("size", found, self.forms(here, there, waiting).change(), changes=changes))
                here, waiting = there, []
        return here, causes

    def moved(self, here: Subject, values: Mapping[str, Any]) -> Subject | None:
        """A model with other values of some sizes; None if it does not take them."""
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
        """What modules of the second model do other than those of the first with its sizes, the largest difference first."""
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
        """The difference of closed forms in sizes that both share; sizes that differ are numbers."""
        one, two = self.works(here, there, letters)
        counts = {field.letter for field in here.program.fields if field.kind == "count"}
        closed = counts & (set(one.letters()) ^ set(two.letters()))  # one of the two has a number in its place
        return Forms(*(self.works(here, there, (*letters, *closed)) if closed else (one, two)))

    def works(self, here: Subject, there: Subject, letters: Sequence[str]) -> tuple[Work, Work]:
        """The work of two models, with numbers for ``letters`` of the first one and for what differs."""
        names = shared(here.program, there.program)
        sizes = here.estimator.sizes, there.estimator.sizes
        if there is self.second and self.meaning:
            values = {letter: constant(sizes[0][letter]) for letter in letters}
            known = {letter: in_place(formula, values) for letter, formula in self.meaning.letters.items()}
            numbers = [field.letter for field in there.program.fields if field.letter not in known]
            second, lengths = meant(decided(there, numbers), here.program, known), lengths_of(here.program)
            return Work(decided(here, letters), here, lengths), Work(second, there, lengths)
        unlike = {one: two for one, two in names.items() if one in letters or not same(sizes[0][one], sizes[1][two])}
        first, second = decided(here, tuple(unlike)), decided(there, tuple(unlike.values()))
        if there.program.name != here.program.name:
            second = renamed(second, first, names)
        return Work(first, here), Work(second, there)


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
