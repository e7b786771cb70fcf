"""Worked figures: the FLOPs of one typical batch at the default sizes, by regime and by convention, as exact integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from symflops.diagnostics.findings import SymflopsError
from symflops.emit.page.typical_values import default_sizes, typical_batch
from symflops.model.formula import evaluate
from symflops.model.index_sets import PADDED
from symflops.model.program import Case, Program
from symflops.runtime.batch import sides_of
from symflops.runtime.stored import stored_of


@dataclass(frozen=True, slots=True)
class RegimeFigures:
    """FLOPs of one step of a regime; ratios of executed FLOPs to the first regime and to three times its forward pass.

    ``tokens`` are those of the batch, 0 if the program does not say.
    """

    name: str
    doc: str
    trainable: int
    forward: int
    backward: int
    recomputed: int
    to_first: Fraction | None
    to_three_forward: Fraction | None
    tokens: int = 0

    @property
    def executed(self) -> int:
        """FLOPs forward, backward and recomputed."""
        return self.forward + self.backward + self.recomputed


@dataclass(frozen=True, slots=True)
class ConventionFigures:
    """The work of one step under a convention, in its unit; its ratio to the first one, and the main reason of that."""

    name: str
    total: int
    ratio: Fraction | None
    reason: str
    unit: str = "flops"


@dataclass(frozen=True, slots=True)
class Worked:
    """Figures of one step: ``batch`` has one entry per stream, ``convention`` counts the regimes."""

    batch: tuple[tuple[str, object], ...]
    convention: str
    regimes: tuple[RegimeFigures, ...]
    conventions: tuple[ConventionFigures, ...]


def worked(program: Program, conventions: Sequence[ConventionFigures] = ()) -> Worked | None:
    """The figures of all regimes under the first convention, and of ``conventions`` or the program's own.

    None if a size has no default, or the model does not accept the typical lengths.
    """
    sizes = default_sizes(program)
    if sizes is None or not program.cases:
        return None
    batch = typical_batch(program) | {stream.name: 1 for stream in program.streams if stream.counts}
    try:
        figures = _Figures(program, sizes, batch)
    except SymflopsError:
        return None
    entries = tuple((name, given[0] if isinstance(given, list) else given) for name, given in batch.items())
    return Worked(entries, program.conventions[0], tuple(figures.regimes()), tuple(conventions) or tuple(figures.conventions()))


class _Figures:
    def __init__(self, program: Program, sizes: Mapping[str, Any], batch: Mapping[str, Any]) -> None:
        self.program = program
        self.sizes = sizes
        stored = stored_of(program)
        self.real, self.padded = sides_of(stored, batch, sizes, range(len(program.moments)))

    def value(self, case: Case, terms: Sequence[tuple[int, Any]]) -> Any:
        """The value of a closed form."""
        moments = self.padded if dict(self.program.lengths)[case.convention] == PADDED else self.real
        return sum(evaluate(formula, self.sizes) * moments[position] for position, formula in terms)

    def regimes(self) -> Iterator[RegimeFigures]:
        """The figures of each regime."""
        first = 0
        for regime in self.program.regimes:
            case = self.program.case(regime.name, self.program.conventions[0])
            forward, backward, again = (self.value(case, terms) for terms in (case.forward, case.backward, case.recomputed))
            executed = forward + backward + again
            first = first or executed
            yield RegimeFigures(
                regime.name, regime.doc, int(evaluate(regime.trainable, self.sizes)), forward, backward, again,
                Fraction(executed, first) if first else None, Fraction(executed, 3 * forward) if forward else None,
                sum(int(evaluate(part, self.sizes)) * self.real[place] for place, part in regime.tokens),
            )  # fmt: skip

    def conventions(self) -> Iterator[ConventionFigures]:
        """The figures of the program's own conventions in its first regime."""
        first = 0
        for name in self.program.conventions:
            case = self.program.case(self.program.regimes[0].name, name)
            total = self.value(case, case.forward) + self.value(case, case.backward)
            first = first or total
            reason = self.reason(name) if total != first else ""
            unit = dict(self.program.units).get(name, "flops")
            yield ConventionFigures(name, total, Fraction(total, first) if first else None, reason, unit)

    def reason(self, name: str) -> str:
        """The main reason why a convention counts other work than the first one."""
        lines, own = self.program.regimes[0].lines, self.program.conventions[0]
        reasons = []
        pairs, unseen = dict(self.program.pairs), dict(self.program.unseen)
        if pairs[name] != pairs[own] and any(line.amount.useful != line.amount.executed for line in lines):
            reasons.append("all pairs, not the pairs that a mask leaves")
        if unseen[name] != unseen[own] and not all(line.seen for line in lines):
            reasons.append("no work that profilers do not see")
        return ", and ".join(reasons)
