"""A model beside the baseline that its spec names: the difference by cause, and what both cost over a length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

from sympy import Expr, Symbol

from symflops.algebra.domain import known, plain
from symflops.algebra.evaluate import evaluate
from symflops.algebra.unknown_size import UnknownSizeError
from symflops.api import Model, load
from symflops.diagnostics.findings import Diagnostic, Source, SpecError, SymflopsError, did_you_mean
from symflops.emit.closed_forms import Derived
from symflops.emit.page.against import Against, CauseRow, Change, Crossing, Point
from symflops.emit.page.typical_values import default_sizes, typical_lengths
from symflops.lower.formulas import Formulas
from symflops.model.formula import Formula, Sym, symbols
from symflops.model.formula import number as numeral
from symflops.model.polynomials import expanded
from symflops.model.program import Program
from symflops.model.spec import BaselineSpec
from symflops.model.sums import StreamInfo
from symflops.questions.changes import in_place
from symflops.questions.difference import NOTHING, Cause, Meaning, Pair
from symflops.questions.subject import Subject
from symflops.runtime.typical import as_batch, left_out
from symflops.specialise.assumed import put
from symflops.specialise.folding import ShortPolys
from symflops.syntax.expression import Expression

REGIME, CONVENTION = "full", "symflops"
LENGTHS, SIDES = tuple(2**power for power in range(6, 21)), tuple(2**power for power in range(3, 11))
"""The lengths of a comparison: along one axis, and along each of several."""
HERE = (8192, 256)
"""The length of the figures, along one axis and along each of several."""
FINE, MOST = 1024, 64
"""A crossing is found to this part of the length before it, or to so many if a model takes no length between."""


class Side(Subject):
    """A model that is at hand, as the subject of a question."""

    def __init__(self, model: Model, config: Mapping[str, Any], program: Program | None = None) -> None:
        self.model, self.stored = model, program
        super().__init__(model.spec.name, config, REGIME, CONVENTION)

    def derivation(self, config: Mapping[str, Any]) -> Derived:
        """The closed forms of a config."""
        program = self.stored if not config else None
        if program and any((case.regime, case.convention) == (REGIME, CONVENTION) for case in program.cases):
            return Derived(program, program.case(REGIME, CONVENTION))
        return self.model.derive(REGIME, CONVENTION, config)

    def of_config(self, config: Mapping[str, Any]) -> Side:
        """The same model with another config."""
        return Side(self.model, config)


def against(model: Model, program: Program | None = None) -> Against | None:
    """A model at its defaults less its baseline; None if its spec names none, or a size has no default.

    ``program`` is that of the defaults, if it is at hand.

    Raises:
        SymflopsError: there is no such spec, it has no such field or stream, or it takes none of the lengths.
    """
    if model.spec.baseline is None:
        return None
    own = Side(model, {}, program)
    return None if default_sizes(own.program) is None else Comparison(own, model.spec.baseline).told()


def sources_of(model: Model) -> tuple[Source, ...]:
    """What the pages of a model are made from: its own sources, and those of its baseline."""
    base = baseline_of(model).spec.sources if model.spec.baseline else ()
    return (*model.spec.sources, *base)


def baseline_of(model: Model) -> Model:
    """The baseline of a model that has one.

    Raises:
        SpecError: there is no such spec.
    """
    assert model.spec.baseline is not None
    name = model.spec.baseline.name
    file = model.file.other(name.text)
    if file is None:
        hint = did_you_mean(name.text, model.file.others(), "the name of a spec, as 'symflops list' shows them")
        raise SpecError([Diagnostic("unknown-spec", f"there is no spec '{name}'", name.span, hint)])
    return load(file)


class Comparison:
    """A model and its baseline, at batches of one item whose first length grows."""

    def __init__(self, own: Side, spec: BaselineSpec) -> None:
        self.own, self.spec = own, spec
        self.sizes: dict[str, Any] = default_sizes(own.program) or {}
        self.model = baseline_of(own.model)
        self.given = {name.text: formula for name, formula in spec.batch}
        self.fields = {name.text: formula for name, formula in spec.config}
        self.base = Side(self.model, self.config())
        self.checked()
        dependent = {name.text for name, _ in spec.lengths}
        absent = left_out(own.program.streams)
        streams = [stream for stream in own.program.streams if stream.variables and stream not in absent]
        free = [name for stream in streams for name in stream.variables if name not in dependent]
        if not free:
            hint = "leave one out of 'lengths'"
            raise SpecError([Diagnostic("bad-field", "no length is left to grow", spec.name.span, hint)])
        self.letter = free[0]
        self.wide = any(self.letter in stream.variables and len(stream.variables) > 1 for stream in streams)
        self.typical = typical_lengths(own.program)
        self.costs = cache(self.costs_at)

    def checked(self) -> None:
        """Report fields, streams and lengths that nothing has."""
        own = [name for stream in self.own.program.streams for name in stream.variables]
        keys = [key for size in self.model.spec.sizes for key in size.keys]
        streams = [stream.name for stream in self.base.program.streams if stream.given]
        rows = ((self.spec.config, keys, "field", "unknown-size"), (self.spec.batch, streams, "stream", "unknown-stream"))
        found = []
        for given, names, what, code in (*rows, (self.spec.lengths, own, "length", "unknown-stream")):
            whose = "this spec" if what == "length" else f"'{self.model.spec.name}'"
            for name, _ in given:
                if name.text not in names:
                    hint = did_you_mean(name.text, names, f"it has {', '.join(names)}")
                    found.append(Diagnostic(code, f"{whose} has no {what} '{name}'", name.span, hint))
        if found:
            raise SpecError(found)

    def config(self) -> dict[str, Any]:
        """The config of the baseline: formulas of the spec, else this model's values of the same fields."""
        here = {key: size.name.text for size in self.own.model.spec.sizes for key in size.keys}
        found: dict[str, Any] = {}
        for size in self.model.spec.sizes:
            for key in size.keys:
                if key in self.fields:
                    put(found, size.keys, self.value(self.fields[key], {}))
                elif key in here:
                    value = self.sizes[here[key]]
                    put(found, size.keys, list(value) if isinstance(value, tuple) else value)
        return found

    def value(self, formula: Expression, lengths: Mapping[str, int]) -> Any:
        """The value of a formula of the spec."""
        found = plain(evaluate(formula, {name: known(value) for name, value in {**self.sizes, **lengths}.items()}))
        whole = int(found) if isinstance(found, Fraction) and found.denominator == 1 else found
        return list(whole) if isinstance(whole, tuple) else whole

    def formula(self, formula: Expression) -> Formula | None:
        """A formula of the spec in letters; None if a condition or a list decides what it is."""
        letters: dict[str, Any] = {name: known(value) for name, value in self.sizes.items()}
        numbers = [name for name, value in self.sizes.items() if type(value) is int]
        letters |= {name: Symbol(name, integer=True, nonnegative=True) for name in (*numbers, *self.typical)}
        try:
            found = evaluate(formula, letters)
            return Formulas({}).of(found) if isinstance(found, Expr) else None
        except (SpecError, UnknownSizeError, TypeError):
            return None

    # batches

    def lengths(self, length: int) -> dict[str, int]:
        """All lengths of this model, with a value for the one that grows."""
        found = self.typical | {self.letter: length}
        for name, formula in self.spec.lengths:
            found[name.text] = self.value(formula, found)
        return found

    def batch(self, lengths: Mapping[str, int]) -> dict[str, Any]:
        """This model's batch."""
        return batch_of(self.own.program, lengths)

    def baseline_batch(self, lengths: Mapping[str, int]) -> dict[str, Any]:
        """The baseline's batch: formulas of the spec, else this model's entries of streams of the same name."""
        program = self.base.program
        found = batch_of(program, typical_lengths(program))
        here = self.batch(lengths)
        found |= {name: here[name] for name in found if name in here}
        return found | {name: [self.value(formula, lengths)] for name, formula in self.given.items()}

    def costs_at(self, length: int) -> tuple[int, int] | None:
        """FLOPs of a step of both; None if one of them does not take the length."""
        try:
            lengths = self.lengths(length)
            sides = (self.own.estimator, self.batch(lengths)), (self.base.estimator, self.baseline_batch(lengths))
            own, base = (model.total(model.moments(**batch)) for model, batch in sides)
        except SpecError:
            raise
        except SymflopsError:
            return None
        return (own, base) if base else None

    # letters

    def meaning(self, lengths: Mapping[str, int]) -> Meaning:
        """The baseline's batch, and its letters in those of this model; a letter that is left out is a number."""
        found: dict[str, Formula | None] = {}
        here = {key: size.name.text for size in self.own.model.spec.sizes for key in size.keys}
        for field in self.base.program.fields:
            given = next((key for key in field.keys if key in self.fields), None)
            same = next((here[key] for key in field.keys if key in here), None)
            if given:
                found[field.letter] = self.formula(self.fields[given])
            elif same:
                found[field.letter] = Sym(same)
            elif isinstance(field.default, Formula) and all(found.get(name) for name in symbols(field.default)):
                found[field.letter] = in_place(field.default, found)
        for stream in self.base.program.streams:
            found |= self.lengths_of(stream)
        return Meaning(self.baseline_batch(lengths), {name: formula for name, formula in found.items() if formula})

    def lengths_of(self, stream: StreamInfo) -> dict[str, Formula | None]:
        """The lengths of a stream of the baseline as formulas of this model's lengths."""
        here = {one.name: one.variables for one in self.own.program.streams}
        typical = typical_lengths(self.base.program)
        if stream.name in self.given:
            formula = self.given[stream.name]
            parts = [self.formula(replace(formula, tree=tree)) for tree in getattr(formula.tree, "elts", [formula.tree])]
            return dict(zip(stream.variables, parts, strict=False))
        if stream.name in here:
            return {name: Sym(own) for name, own in zip(stream.variables, here[stream.name], strict=False)}
        return {name: numeral(typical[name]) for name in stream.variables}

    def along(self) -> Iterator[tuple[str, Formula]]:
        """The lengths that grow with the first one, as formulas."""
        for name, text in self.spec.lengths:
            formula = self.formula(text)
            if formula:
                yield name.text, formula

    # answers

    def told(self) -> Against:
        """What a page says."""
        points = tuple(self.points())
        if not points:
            raise SymflopsError(f"neither '{self.own.spec}' nor its baseline takes any length of {LENGTHS[0]} to {LENGTHS[-1]}")
        here = min((point.length for point in points), key=lambda length: abs(length - HERE[self.wide]))
        lengths = self.lengths(here)
        found = Pair(self.own, self.base, self.batch(lengths), self.meaning(lengths)).difference()
        shown = [tuple((name.text, formula.text) for name, formula in some) for some in (self.spec.config, self.spec.batch)]
        lengths_told = tuple((name.text, formula.text) for name, formula in self.spec.lengths)
        passes = (self.negative(found.terms[work]) for work in ("forward", "backward"))
        return Against(
            self.model.spec.name, self.model.spec.title, REGIME, CONVENTION, self.letter, shown[0], shown[1], lengths_told,
            tuple(self.along()), self.wide, here, found.first, found.second, *passes, tuple(map(self.row, found.causes)), points,
            tuple(self.crossings()),
        )  # fmt: skip

    def negative(self, change: Change) -> Change:
        """A difference the other way round."""
        letters = [*self.own.program.keys, *self.typical]
        writer = ShortPolys(letters, frozenset())
        return tuple((moment, writer.shortest(expanded(formula).scale(-1))) for moment, formula in change)

    def row(self, cause: Cause) -> CauseRow:
        """A cause of what this model costs more or less."""
        name = ", ".join(f"{key}: {own}, not {base}" for key, own, base in cause.changes) or cause.name
        return CauseRow(name, cause.kind, cause.alone, NOTHING.less(cause.figures), self.negative(cause.terms))

    def points(self) -> Iterator[Point]:
        """Both costs over the length, as far as both models take it."""
        for length in SIDES if self.wide else LENGTHS:
            costs = self.costs(length)
            if costs:
                yield Point(length, *costs)

    def crossings(self) -> Iterator[Crossing]:
        """Where this model begins to cost less than the baseline, or as much and more."""
        points = list(self.points())
        for one, two in pairwise(points):
            if (one.own < one.base) != (two.own < two.base):
                yield Crossing(self.between(one.length, two.length), two.own < two.base)

    def between(self, low: int, high: int) -> int:
        """The first length after ``low`` with the sign of ``high``, on a grid of lengths that both models take."""
        step = max(1, low // FINE)
        while step < MOST and self.costs(low + step) is None:
            step *= 2
        grid = list(range(low, high + 1, step))
        first, last = 0, len(grid) - 1
        sign = self.less(grid[last])
        while last - first > 1:
            middle = (first + last) // 2
            first, last = (first, middle) if self.less(grid[middle]) == sign else (middle, last)
        return grid[last]

    def less(self, length: int) -> bool | None:
        """Whether this model costs less at a length."""
        costs = self.costs(length)
        return costs[0] < costs[1] if costs else None


def batch_of(program: Program, lengths: Mapping[str, int]) -> dict[str, Any]:
    """One item per stream, of some lengths."""
    return as_batch(program.streams, lengths) | {stream.name: 1 for stream in program.streams if stream.counts}
