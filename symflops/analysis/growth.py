"""Growth of a model's cost: attention crossovers, one more token or layer, FLOPs per token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from symflops.analysis.subject import Batch, Subject
from symflops.evaluate.assumed import known_of
from symflops.evaluate.batch import BatchError
from symflops.evaluate.growth import analysis
from symflops.evaluate.item_analysis import Crossover
from symflops.evaluate.length_polynomials import Assumption
from symflops.evaluate.step import PerToken, Step, Sweep, grown_steps, sweep
from symflops.evaluate.typical_values import default_sizes
from symflops.formula.factoring import Rule, Writer, expanded
from symflops.formula.formula import Formula, Sym, evaluate, symbols
from symflops.formula.sparse import Poly
from symflops.ir.program import Program
from symflops.support.errors import SymflopsError

MOST_STEP = 64
"""Largest increase of a length that is tried to find the next valid one."""


@dataclass(frozen=True, slots=True)
class Overtaking:
    """The length ``letter`` of ``streams`` from which attention costs at least as much as all other work.

    ``crossover`` is the closed form of this length, and ``root`` its value, or None. ``known`` is True if every letter in the
    closed form has a value. ``assumed`` are the conditions on lengths under which it holds. ``refused`` says why the class
    rejects an item of this length, rounded up; it is empty if the class accepts the item.
    """

    streams: tuple[str, ...]
    letter: str
    crossover: Crossover
    known: bool
    root: float | None
    assumed: tuple[Assumption, ...]
    refused: str = ""


@dataclass(frozen=True, slots=True)
class OneMore:
    """Parameters and FLOPs added by raising a size or length from ``now`` by ``step``.

    ``name`` is that of the config field or stream; ``kind`` is the type of the size, or ``length``. ``formulas`` has pairs
    (moment, change of its coefficient), whose products add up to the added forward FLOPs.
    """

    name: str
    kind: str
    now: int
    step: int
    parameters: int
    forward: int
    backward: int
    formulas: tuple[tuple[str, Formula], ...] = ()


class Growth:
    """How the cost of a model on a batch grows with its sizes and lengths."""

    def __init__(self, subject: Subject, batch: Batch) -> None:
        self.subject, self.batch = subject, dict(batch)
        self.decided = subject.derived.under(known_of(subject.program.keys, subject.config, numeric=False))

    @property
    def program(self) -> Program:
        """The program with every condition on the config resolved."""
        return self.decided.program

    # attention crossovers

    def overtakings(self) -> Iterator[Overtaking]:
        """Yield, for every length, where attention overtakes all other work, forward and in both passes."""
        subject, sizes = self.subject, default_sizes(self.program)
        found = analysis(self.program, subject.regime, subject.convention, sizes)
        known = {**(sizes or {}), **dict(found.lengths)}
        for items in found.items:
            for grown in items.growth:
                for crossover in grown.crossovers:
                    letter, streams = grown.unknown.letter.partition("@")[0], grown.unknown.streams
                    refused = self.refusal(letter, crossover.value)
                    yield Overtaking(streams, letter, crossover, *root(crossover, known), grown.assumed, refused)

    def refusal(self, letter: str, value: int | None) -> str:
        """Return why the class rejects items whose length ``letter`` is ``value``; empty if it does not."""
        model = self.subject.estimator
        if value is None or letter not in model.taken or not self.batch:
            return ""
        try:
            model.moments(**self.subject.with_length(self.batch, letter, value))
        except BatchError as error:
            return str(error)
        return ""

    # cost of one more

    def tokens(self) -> Iterator[OneMore]:
        """Yield, per stream and axis, the cost of raising the first item's length to the next valid one that costs more."""
        subject, model = self.subject, self.subject.estimator
        here = model.moments(**self.batch)
        for stream in subject.program.streams:
            for axis in stream.variables if isinstance(self.batch.get(stream.name), list) else ():
                name, _, (first, *rest) = subject.items(self.batch, axis)
                now = subject.length(self.batch, axis)
                for step in range(1, MOST_STEP + 1):
                    entry = subject.with_length({name: [first]}, axis, now + step)[name]
                    try:
                        there = model.moments(**{**self.batch, name: [*entry, *rest]})
                    except SymflopsError:
                        continue
                    more = model.forward(there) - model.forward(here), model.backward(there) - model.backward(here)
                    if not any(more):
                        continue
                    label = name if len(stream.variables) == 1 else f"{name}.{axis}"
                    yield OneMore(label, "length", now, step, 0, *more)
                    break

    def sizes(self) -> Iterator[OneMore]:
        """Yield the cost of raising each size by one, layer counts first; sizes without effect are omitted.

        So are widths that decide the structure or the lengths inside the model, such as kernels, strides and patches: with
        one more, the batch is another one.
        """
        subject, model = self.subject, self.subject.estimator
        fields = {field.letter: field for field in subject.program.fields}
        lengths = {name for inner in subject.program.inner for name in symbols(inner.formula)}
        shapes = lengths | dict(subject.program.fixed).keys()
        grown = [letter for letter in subject.numbers() if fields[letter].kind == "count" or letter not in shapes]
        for letter in sorted(grown, key=lambda letter: fields[letter].kind != "count"):
            now = model.sizes[letter]
            try:
                other = subject.at(letter, now + 1)
                here, there = model.moments(**self.batch), other.moments(**self.batch)
                passes = other.forward(there) - model.forward(here), other.backward(there) - model.backward(here)
            except SymflopsError:
                continue
            more = other.parameters - model.parameters, *passes
            if any(more):
                formulas = self.formulas(letter, here, passes[0])
                yield OneMore(fields[letter].keys[0], fields[letter].kind, now, 1, *more, formulas)

    def formulas(self, letter: str, here: Any, forward: int) -> tuple[tuple[str, Formula], ...]:
        """Return (moment, change of its coefficient in the forward pass) if the size ``letter`` grows by 1.

        Empty if the size also changes moments or derived sizes, or if the changes do not add up to ``forward``.
        """
        program, case = self.program, self.decided.case
        names = [one.letter for one in program.definitions if letter in set(symbols(one.formula))]
        if names or letter in set().union(*(moment.sizes for moment in program.moments)):
            return ()
        writer = Writer([name for _, formula in case.forward for name in symbols(formula)])
        known, sums = default_sizes(program) or {}, here.sums()
        found, total = [], Fraction(0)
        for position, formula in case.forward:
            change = writer.shortest(expanded(formula, one_more(letter)) - expanded(formula))
            name = program.sum_name(position, case.convention)
            value = Fraction(evaluate(change, known))
            total += value * (1 if program.moments[position].constant else sums[name])
            if value:
                found.append((name, change))
        return tuple(found) if total == forward else ()

    # over a length

    def over(self, stream: str = "") -> tuple[Sweep, list[PerToken]]:
        """Return a sweep over growing items of ``stream``, and the FLOPs per token of both passes in it."""
        grown, subject, model = sweep(self.batch, stream), self.subject, self.subject.estimator
        step = Step(subject.program, model.sizes, self.batch, subject.derived.case, model.stored)
        return grown, list(grown_steps(step, grown))


def one_more(letter: str) -> Rule:
    """Return a rule for :func:`symflops.formula.factoring.expanded` that replaces a size by itself plus 1."""
    rules: dict[Formula, Poly] = {Sym(letter): Poly.atom(Sym(letter)) + Poly.constant(1)}
    return rules.get


def root(found: Crossover, sizes: Mapping[str, Any]) -> tuple[bool, float | None]:
    """Return (whether every letter of a crossover has a value, its length as a number or None)."""
    try:
        if found.kind == "quotient":
            return True, float(Fraction(evaluate(found.above, sizes)) / Fraction(evaluate(found.below, sizes)))
        a, b, c = (Fraction(evaluate(part, sizes)) for part in (found.square, found.linear, found.constant))
        inside = b * b - 4 * a * c
        return True, float((-b + Fraction(float(inside) ** 0.5)) / (2 * a)) if a and inside >= 0 else None
    except (ArithmeticError, LookupError, TypeError, ValueError):  # lengths of other streams have no value
        return False, None
