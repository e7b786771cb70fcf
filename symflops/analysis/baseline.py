"""Finds the baseline that a spec names, validates it, and compares the model with it: by figures, causes and lengths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

from sympy import Expr, Symbol

from symflops.analysis.difference import NOTHING, Difference, Meaning, Pair, in_place
from symflops.analysis.subject import Subject
from symflops.api import Model, load
from symflops.emit.emit import Derived
from symflops.evaluate.config import put
from symflops.evaluate.item_analysis import Against, Cause, Change, Crossing, Point
from symflops.evaluate.typical import as_batch, optional_streams
from symflops.evaluate.typical_values import default_sizes, typical_lengths
from symflops.formula.domain import known, python_value
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import Expression
from symflops.formula.factoring import Writer, expanded
from symflops.formula.formula import Formula, Sym, number as numeral, symbols
from symflops.formula.sparse import Poly
from symflops.formula.truth import UnknownSizeError
from symflops.ir.batch import Moment, StreamInfo
from symflops.ir.program import Program
from symflops.ir.spec import BaselineSpec
from symflops.lower.formulas import Formulas
from symflops.support.findings import Diagnostic, Source, SpecError, SymflopsError, did_you_mean

REGIME, CONVENTION = "full", "symflops"
LENGTHS, SIDES = tuple(2**power for power in range(6, 21)), tuple(2**power for power in range(3, 11))
"""Lengths at which both models are evaluated: of the one axis of a stream, or of each of several axes."""
HERE = (8192, 256)
"""Lengths at which figures are reported: of the one axis of a stream, or of each of several axes."""
FINE, MOST = 1024, 64
"""A crossing is found to 1/``FINE`` of its length, or to a step of ``MOST`` if models reject lengths."""


class Side(Subject):
    """A loaded model as a :class:`Subject`; ``program``, if given, saves deriving its regimes again."""

    def __init__(
        self, model: Model, config: Mapping[str, Any], regime: str, convention: str, program: Program | None = None
    ) -> None:
        self.model, self.stored = model, program
        super().__init__(model.spec.name, config, regime, convention)

    def derivation(self, config: Mapping[str, Any]) -> Derived:
        """Return the closed forms for ``config``: of the given program if ``config`` is empty, else derived."""
        asked, program = (self.regime, self.convention), self.stored if not config else None
        if program and any((case.regime, case.convention) == asked for case in program.cases):
            return Derived(program, program.case(*asked))
        return self.model.derive(*asked, config)

    def of_config(self, config: Mapping[str, Any]) -> Side:
        """Return a side of the same model, regime and convention with the config ``config``."""
        return Side(self.model, config, self.regime, self.convention)


class Comparison:
    """Compares a model with its baseline on batches of one item per stream, as one length grows.

    The growing length is the model's first one that the baseline entry ``spec`` does not derive from another length.
    """

    def __init__(self, own: Side, base: Model, spec: BaselineSpec) -> None:
        self.own, self.model, self.spec = own, base, spec
        self.sizes: dict[str, Any] = default_sizes(own.program) or {}
        self.given = {name.text: formula for name, formula in spec.batch}
        self.fields = {name.text: formula for name, formula in spec.config}
        self.base = Side(self.model, self.config(), own.regime, own.convention)
        _ = self.base.estimator
        dependent = {name.text for name, _ in spec.lengths}
        absent = optional_streams(own.program.streams)
        streams = [stream for stream in own.program.streams if stream.variables and stream not in absent]
        free = [name for stream in streams for name in stream.variables if name not in dependent]
        if not free:
            hint = "leave one out of 'lengths'"
            raise SpecError([Diagnostic("bad-field", "no length is left to grow", spec.name.span, hint)])
        self.letter = free[0]
        self.wide = any(self.letter in stream.variables and len(stream.variables) > 1 for stream in streams)
        self.typical = typical_lengths(own.program)
        self.costs = cache(self.costs_at)

    def config(self) -> dict[str, Any]:
        """Build the baseline's config: fields that ``spec`` defines by formulas, else with this model's values."""
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
        """Evaluate a formula of ``spec`` at the default sizes and at ``lengths``; a tuple becomes a list."""
        try:
            found = python_value(evaluate(formula, {name: known(value) for name, value in {**self.sizes, **lengths}.items()}))
        except UnknownSizeError as error:
            raise SpecError([error.diagnostic]) from None
        whole = int(found) if isinstance(found, Fraction) and found.denominator == 1 else found
        return list(whole) if isinstance(whole, tuple) else whole

    def formula(self, formula: Expression) -> Formula | None:
        """Convert a formula of ``spec`` to one in this model's letters; None if its value is no number."""
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
        """Return name -> length of this model: ``length`` for the growing one, others derived or typical."""
        found = self.typical | {self.letter: length}
        for name, formula in self.spec.lengths:
            found[name.text] = self.value(formula, found)
        return found

    def batch(self, lengths: Mapping[str, int]) -> dict[str, Any]:
        """Build this model's batch of one item per stream with ``lengths``, given by name: stream -> items."""
        return batch_of(self.own.program, lengths)

    def baseline_batch(self, lengths: Mapping[str, int]) -> dict[str, Any]:
        """Build the baseline's batch: stream -> items.

        The item of a stream is defined in ``spec``, else this model's item of the same stream, else one of typical lengths.
        """
        program = self.base.program
        found = batch_of(program, typical_lengths(program))
        here = self.batch(lengths)
        found |= {name: here[name] for name in found if name in here}
        return found | {name: [self.value(formula, lengths)] for name, formula in self.given.items()}

    def costs_at(self, length: int) -> tuple[int, int] | None:
        """Return FLOPs per step as (this model, baseline); None if one rejects ``length`` or the second is 0."""
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
        """Return the baseline's batch, and the baseline's letters as formulas of this model's where possible."""
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
        """Map each axis of a baseline stream to a formula of this model's lengths, or None without one."""
        here = {one.name: one.variables for one in self.own.program.streams}
        typical = typical_lengths(self.base.program)
        if stream.name in self.given:
            formula = self.given[stream.name]
            parts = [self.formula(replace(formula, tree=tree)) for tree in getattr(formula.tree, "elts", [formula.tree])]
            return dict(zip(stream.variables, parts, strict=False))
        if stream.name in here:
            return {name: Sym(own) for name, own in zip(stream.variables, here[stream.name], strict=False)}
        return {name: numeral(typical[name]) for name in stream.variables}

    # answers

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The costs of both models at each tested length that both accept.

        Raises:
            SymflopsError: the models share no valid length.
        """
        lengths = SIDES if self.wide else LENGTHS
        found = tuple(Point(length, *costs) for length in lengths if (costs := self.costs(length)))
        if not found:
            names = f"'{self.own.spec}' or '{self.base.spec}'"
            raise SymflopsError(f"{names} takes none of the lengths from {lengths[0]} to {lengths[-1]:,}")
        return found

    @property
    def here(self) -> int:
        """The length at which figures are reported: the accepted length closest to the one in ``HERE``."""
        return min((point.length for point in self.points), key=lambda length: abs(length - HERE[self.wide]))

    def difference(self) -> Difference:
        """Compute this model's cost minus the baseline's, by cause, at the length ``here``.

        The result's ``first`` is the baseline, its ``second`` this model.
        """
        lengths = self.lengths(self.here)
        found = Pair(self.own, self.base, self.batch(lengths), self.meaning(lengths)).difference()
        causes = (
            Cause("module", NOTHING.less(one.figures), self.negative(one.terms), one.name, one.alone) for one in found.causes
        )
        terms = {work: self.negative(change) for work, change in found.terms.items()}
        return Difference(found.second, found.first, terms, tuple(causes))

    def results(self) -> Against:
        """Return all results of the comparison as an ``Against``, the record that pages print."""
        found, spec = self.difference(), self.spec
        growing = tuple((name.text, formula) for name, text in spec.lengths if (formula := self.formula(text)))
        config, batch, lengths = (
            tuple((name.text, formula.text) for name, formula in some) for some in (spec.config, spec.batch, spec.lengths)
        )
        own, base = self.own, self.base
        return Against(
            base.spec, self.model.spec.title, own.regime, own.convention, self.letter, config, batch, lengths,
            growing, self.wide, self.here, found.second, found.first, found.terms["forward"],
            found.terms["backward"], found.causes,
            self.points, tuple(self.crossings()),
        )  # fmt: skip

    def negative(self, change: Change) -> Change:
        """Negate a change of closed forms; statistics become the length of the batch's only item."""
        alone = {statistic.name: statistic.formula for statistic in self.own.program.statistics}
        found: dict[Formula, tuple[Moment, Poly]] = {}
        for moment, formula in change:
            length = in_place(moment.formula, alone)
            _, before = found.get(length, (moment, Poly({})))
            found[length] = replace(moment, formula=length), before + expanded(formula).scale(-1)
        writer = Writer([*self.own.program.keys, *self.typical])
        return tuple((moment, writer.shortest(poly)) for moment, poly in found.values() if poly)

    def crossings(self) -> Iterator[Crossing]:
        """Yield the lengths from which this model is cheaper than the baseline, or no longer cheaper."""
        turns = [(one, two) for one, two in pairwise(self.points) if (one.own < one.base) != (two.own < two.base)]
        yield from (Crossing(self.between(one.length, two.length), two.own < two.base) for one, two in turns)

    def between(self, low: int, high: int) -> int:
        """Bisect for the first length above ``low`` at which the model that is cheaper at ``high`` is cheaper.

        Only lengths on a grid are tried, which has a relative resolution of 1/``FINE``.
        """
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
        """Whether this model costs less than the baseline at ``length``; None if either rejects it."""
        costs = self.costs(length)
        return costs[0] < costs[1] if costs else None


def batch_of(program: Program, lengths: Mapping[str, int]) -> dict[str, Any]:
    """A batch of one item per stream with the given lengths."""
    return as_batch(program.streams, lengths) | {stream.name: 1 for stream in program.streams if stream.counts}


def against(model: Model, program: Program | None = None) -> Against | None:
    """Compare a model with its baseline, as pages print the result; None if :func:`compared` gives None."""
    found = compared(model, REGIME, CONVENTION, program)
    return found.results() if found else None


def compared(model: Model, regime: str, convention: str, program: Program | None = None) -> Comparison | None:
    """Compare a model at default sizes with its baseline.

    Returns None if the spec names no baseline, or if a size has no default. ``program`` is the program derived at the
    defaults, if it already exists.

    Raises:
        SymflopsError: the baseline spec is missing, lacks a named field or stream, or accepts none of the lengths.
    """
    if model.spec.baseline is None:
        return None
    base, own = baseline_of(model), Side(model, {}, regime, convention, program)
    misnamed(own, base, model.spec.baseline)
    return None if default_sizes(own.program) is None else Comparison(own, base, model.spec.baseline)


def check(model: Model) -> None:
    """Check that a model can be compared with its baseline, if it has one.

    Raises:
        SpecError: the comparison fails.
    """
    try:
        against(model)
    except SpecError:
        raise
    except SymflopsError as error:
        assert model.spec.baseline is not None
        hint = "'config' says its config, 'batch' its lengths, 'lengths' those that grow here"
        message = f"the baseline '{model.spec.baseline.name}' does not compare: {error}"
        raise SpecError([Diagnostic("bad-field", message, model.spec.baseline.name.span, hint)]) from None


def sources_of(model: Model) -> tuple[Source, ...]:
    """Source files of a model's pages: its own spec files and those of its baseline."""
    base = baseline_of(model).spec.sources if model.spec.baseline else ()
    return (*model.spec.sources, *base)


def baseline_of(model: Model) -> Model:
    """Load the model that ``model`` names as its baseline; it must name one.

    Raises:
        SpecError: no spec has that name.
    """
    assert model.spec.baseline is not None
    name = model.spec.baseline.name
    file = model.file.other(name.text)
    if file is None:
        hint = did_you_mean(name.text, model.file.others(), "the name of a spec, as 'symflops list' shows them")
        raise SpecError([Diagnostic("unknown-spec", f"there is no spec '{name}'", name.span, hint)])
    return load(file)


def misnamed(own: Side, base: Model, spec: BaselineSpec) -> None:
    """Check that the fields and streams of ``base`` and the lengths of ``own`` that ``spec`` names exist.

    Raises:
        SpecError: lists every unknown name.
    """
    lengths = [name for stream in own.program.streams for name in stream.variables]
    keys = [key for size in base.spec.sizes for key in size.keys]
    streams = [stream.name.text for stream in base.spec.streams]
    found = []
    for given, names, what, code in (
        (spec.config, keys, "field", "unknown-size"),
        (spec.batch, streams, "stream", "unknown-stream"),
        (spec.lengths, lengths, "length", "unknown-stream"),
    ):
        whose = "this spec" if what == "length" else f"'{base.spec.name}'"
        for name, _ in given:
            if name.text not in names:
                hint = did_you_mean(name.text, names, f"it has {', '.join(names)}")
                found.append(Diagnostic(code, f"{whose} has no {what} '{name}'", name.span, hint))
    if found:
        raise SpecError(found)
