"""Evaluates closed forms to exact integers: for one step, for a sweep over lengths, and for measured cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

from symflops.evaluate.batch import BatchError
from symflops.evaluate.batch_moments import sides_of
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.item_analysis import ATTENTION, ORDER, part_of
from symflops.evaluate.stored import Stored, stored_of
from symflops.formula.formula import ZERO, Formula, evaluate
from symflops.formula.table import ConfigError
from symflops.ir.index_sets import PADDED
from symflops.ir.program import Case, Program, needed
from symflops.ir.verification import KnownInexact, Verification, VerifiedCase
from symflops.support.errors import SymflopsError

EVERY = 2
"""A page shows every second length of a sweep."""


class Step:
    """Evaluates closed forms as exact integers, at given sizes on a given batch.

    Args:
        program: the program with the closed forms.
        sizes: the value of each size, by letter.
        batch: one entry per item, by stream.
        case: the regime and convention; by default the first of each in the program.
        stored: the program in the interpreter's form, if already converted.

    Raises:
        SymflopsError: the model does not accept the batch.
    """

    def __init__(
        self,
        program: Program,
        sizes: Mapping[str, Any],
        batch: Mapping[str, Any],
        case: Case | None = None,
        stored: Stored | None = None,
    ) -> None:
        self.program, self.sizes, self.batch = program, sizes, batch
        self.case = case or program.case(program.regimes[0].name, program.conventions[0])
        self.stored = stored or stored_of(replace(program, regimes=(), cases=(), tensors=(), amounts=()))
        self.real, self.padded = sides_of(self.stored, batch, sizes, range(len(program.moments)))
        self._parts: dict[str, dict[int, Any]] = {}

    @property
    def total(self) -> int:
        """The work of the forward and backward pass, in the convention's unit."""
        return int(self.value(self.case, (*self.case.forward, *self.case.backward)))

    @property
    def tokens(self) -> int:
        """The number of tokens of the batch; 0 if the program does not define tokens."""
        parts = self.program.regime(self.case.regime).tokens
        return sum(int(evaluate(part, self.sizes)) * self.real[place] for place, part in parts)

    def value(self, case: Case, terms: Iterable[tuple[int, Formula]]) -> Any:
        """Evaluate a closed form, coefficients by moment position, under the convention of ``case``."""
        moments = self.moments(case.convention)
        return sum(evaluate(formula, self.sizes) * moments[place] for place, formula in terms)

    def moments(self, convention: str) -> tuple[int, ...]:
        """The moments of the batch, over padded or real lengths, as the convention counts them."""
        return self.padded if self.program.row(convention).lengths == PADDED else self.real

    def at(self, sizes: Mapping[str, Any] | None = None, batch: Mapping[str, Any] | None = None) -> Step:
        """Copy the step with other sizes or another batch; None keeps the present one."""
        batch = self.batch if batch is None else batch
        found = Step(self.program, self.sizes if sizes is None else sizes, batch, self.case, self.stored)
        found._parts = self._parts if sizes is None else {}
        return found

    def parts(self) -> dict[str, int]:
        """Map each part of the model to its work in both passes; the values sum to ``total``."""
        if not self._parts:
            self._parts |= self._by_moment()
        moments = self.moments(self.case.convention)
        return {part: int(sum(each * moments[at] for at, each in some.items())) for part, some in self._parts.items()}

    def _by_moment(self) -> dict[str, dict[int, Any]]:
        """Map each part of the model to its coefficients in both passes: moment position -> coefficient."""
        rules, share = self.program.row(self.case.convention), Fraction(1, self.program.row(self.case.convention).shares)
        found: dict[str, dict[int, Any]] = {part: {} for part in ORDER}
        for line in self.program.regime(self.case.regime).under(rules.name):
            part = found[part_of(line)]
            if line.seen or rules.unseen:
                counts = (line.forward, *line.backward)
                each = evaluate(line.unit, self.sizes) * sum(evaluate(count, self.sizes) for count in counts) * share
                for place, factor in line.amount.under(rules.pairs):
                    part[place] = part.get(place, 0) + each * evaluate(factor, self.sizes)
        return {part: some for part, some in found.items() if some}


@dataclass(frozen=True, slots=True)
class Sweep:
    """Batches that differ in the length of all items of one stream; with several axes, the last two grow.

    Attributes:
        batch: one entry per item, by stream.
        stream: the stream whose lengths grow.
        entry: the first item of that stream in ``batch``: an int, or a list with one length per axis.
        every: the step between exponents of the lengths, which are powers of 2.
    """

    batch: Mapping[str, Any]
    stream: str
    entry: Any
    every: int = 1

    @property
    def sides(self) -> list[int]:
        """The lengths in the sweep, powers of 2 in increasing order."""
        powers = range(7, 18, self.every) if isinstance(self.entry, int) else range(3, 10, self.every)
        return [2**power for power in powers]

    def grown(self, side: int) -> Any:
        """The batch entry of an item whose growing axes have the length ``side``."""
        return side if isinstance(self.entry, int) else [*self.entry[:-2], *[side] * min(2, len(self.entry))]

    @property
    def label(self) -> str:
        """The label of the horizontal axis of a plot over the sweep."""
        return f"{'tokens' if isinstance(self.entry, int) else 'positions'} of {self.stream} in an item"

    def tokens(self, side: int) -> int:
        """The number of tokens of an item whose growing axes have the length ``side``."""
        return side if isinstance(self.entry, int) else prod(self.grown(side))

    def at(self, side: int) -> dict[str, Any]:
        """The batch in which every item of the stream has the length ``side``."""
        return {**self.batch, self.stream: [self.grown(side)] * len(self.batch[self.stream])}

    def first(self, holds: Callable[[dict[str, Any]], bool]) -> int | None:
        """Find the least number of tokens per item at which ``holds``, a condition on a batch, is true.

        None unless the condition is false at the shortest length and true at the longest.
        """
        low, *_, high = self.sides
        if holds(self.at(low)) or not holds(self.at(high)):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(self.at(middle)) else (middle, high)
        return self.tokens(high)


def sweep(batch: Mapping[str, Any], stream: str = "") -> Sweep:
    """Create the sweep over ``stream`` of a batch, by default the batch's first stream with lengths.

    Raises:
        SymflopsError: the batch has no such stream, or none with lengths.
    """
    given = {name: entries for name, entries in batch.items() if isinstance(entries, list) and entries}
    if stream and stream not in given:
        raise SymflopsError(f"a picture cannot be over '{stream}': the batch has {', '.join(given) or 'no stream with items'}")
    if not given:
        raise SymflopsError("a picture is over the length of a stream, and the batch has none with items")
    name = stream or next(iter(given))
    return Sweep(batch, name, given[name][0])


@dataclass(frozen=True, slots=True)
class PerToken:
    """The work of both passes at one length of a sweep.

    Attributes:
        length: the length of the growing axes.
        item: the number of tokens of an item.
        tokens: the number of tokens of the batch.
        flops: the work of both passes.
        attention: attention's share of ``flops``.
    """

    length: int
    item: int
    tokens: int
    flops: int
    attention: Fraction

    @property
    def each(self) -> Fraction:
        """FLOPs per token."""
        return Fraction(self.flops, self.tokens)


def grown_steps(step: Step, grown: Sweep) -> Iterator[PerToken]:
    """Evaluate a step at each length of a sweep; lengths that the model refuses are omitted."""
    for side in grown.sides:
        try:
            there = step.at(batch={**step.batch, **grown.at(side)})
        except SymflopsError:
            continue
        total, tokens = there.total, there.tokens
        if tokens:
            share = Fraction(there.parts().get(ATTENTION, 0), total) if total else Fraction(0)
            yield PerToken(side, grown.tokens(side), tokens, total, share)


@dataclass(frozen=True, slots=True)
class OverLength:
    """The work of a step at increasing lengths of the items of ``stream``."""

    stream: str
    rows: tuple[PerToken, ...]


def over_length(step: Step) -> OverLength | None:
    """Evaluate a step at increasing lengths of its first stream.

    None if no stream has lengths, or the work per token is the same at each length.
    """
    given = {name: entries for name, entries in step.batch.items() if not isinstance(entries, list) or entries[:1] != [[]]}
    if not any(isinstance(entries, list) and entries for entries in given.values()):
        return None
    grown = sweep(given)
    rows = tuple(row for row in grown_steps(step, replace(grown, every=EVERY)) if row.flops)
    return OverLength(grown.stream, rows) if len({row.each for row in rows}) > 1 else None


COUNTER = "torch"
"""The convention that counts like PyTorch's own counter."""


@dataclass(frozen=True, slots=True)
class Inserted:
    """The closed forms with the numbers of a measured case in place of sizes and moments.

    Attributes:
        reference: the class that was measured.
        torch: the version of PyTorch.
        case: the measured FLOPs with their config and batch.
        regime: the regime of the closed forms.
        sizes: letter and value of each size in the closed forms.
        terms: moment, its value, forward coefficient and backward coefficient.
        known: the known difference from the measurement; None if the case is exact.
    """

    reference: str
    torch: str
    case: VerifiedCase
    regime: str
    sizes: tuple[tuple[str, object], ...]
    terms: tuple[tuple[str, int, int, int], ...]
    known: KnownInexact | None = None

    @property
    def counted(self) -> tuple[int, int]:
        """The FLOPs that PyTorch counted, as (forward, backward)."""
        more = (self.known.forward, self.known.backward) if self.known else (0, 0)
        return self.case.forward - more[0], self.case.backward - more[1]

    @property
    def forward(self) -> int:
        """The FLOPs of the forward pass by its closed form."""
        return sum(value * coefficient for _, value, coefficient, _ in self.terms)

    @property
    def backward(self) -> int:
        """The FLOPs of the backward pass by its closed form."""
        return sum(value * coefficient for _, value, _, coefficient in self.terms)


def first_measured_case(program: Program, verified: Sequence[Verification]) -> Inserted | None:
    """Find the first measured case whose FLOPs ``program`` reproduces; None if there is none.

    Cases without a recorded config are skipped. Known inexact cases are tried last, with their known difference.
    """
    regime = program.regimes[0].name
    if COUNTER not in program.conventions:
        return None
    stored = stored_of(program)
    exact = ((found, case, None) for found in verified for case in found.cases)
    inexact = ((found, case, known) for found in verified for case, known in found.inexact)
    for found, measured, known in (*exact, *inexact):
        if measured.config is not None and measured.batch is not None:
            try:
                made = _with_values(program, stored, regime, found, measured, known)
            except (SymflopsError, ConfigError, BatchError, KeyError, IndexError):
                continue  # the case has another structure, or its batch omits a stream
            if (made.forward, made.backward) == (measured.forward, measured.backward):
                return made  # other cases were measured with gradients of inputs, or on some outputs only
    return None


def _with_values(
    program: Program, stored: Stored, regime: str, found: Verification, measured: VerifiedCase, known: KnownInexact | None
) -> Inserted:
    """Evaluate the sizes and moments in the closed forms of ``program`` for a measured case."""
    estimator = InterpretedEstimator(stored.document, measured.config or {}, regime=regime, convention=COUNTER)
    sizes, case = estimator.sizes, program.case(regime, COUNTER)
    moments = Step(program, sizes, dict(measured.batch or {}), case, stored).moments(COUNTER)
    forward, backward = dict(case.forward), dict(case.backward)
    read = needed([formula for _, formula in (*case.forward, *case.backward)], program)

    def times(terms: Mapping[int, Formula], place: int) -> int:
        return int(evaluate(terms.get(place, ZERO), sizes))

    return Inserted(
        found.reference, found.torch, measured, regime,
        tuple((field.letter, sizes[field.letter]) for field in program.fields if field.letter in read),
        tuple(
            (program.sum_key(place, COUNTER), moments[place], times(forward, place), times(backward, place))
            for place in sorted({*forward, *backward})
        ),
        known,
    )  # fmt: skip
