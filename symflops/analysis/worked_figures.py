"""Worked figures: the FLOPs of one typical batch at the default sizes, by regime and by convention, as exact integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from symflops.analysis.one_more import OneMore, one_more
from symflops.analysis.step import OverLength, Step, over_length
from symflops.analysis.typical_values import default_sizes, typical_batch
from symflops.diagnostics.findings import SymflopsError
from symflops.model.formula import evaluate
from symflops.model.program import Program


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
    more: tuple[OneMore, ...] = ()
    over: OverLength | None = None


def worked(program: Program, conventions: Sequence[ConventionFigures] = ()) -> Worked | None:
    """The figures of all regimes under the first convention, and of ``conventions`` or the program's own.

    None if a size has no default, or the model does not accept the typical lengths.
    """
    sizes = default_sizes(program)
    if sizes is None or not program.cases:
        return None
    batch = typical_batch(program) | {stream.name: 1 for stream in program.streams if stream.counts}
    try:
        step = Step(program, sizes, batch)
    except SymflopsError:
        return None
    figures = _Figures(step)
    entries = tuple((name, given[0] if isinstance(given, list) else given) for name, given in batch.items())
    counted = tuple(conventions) or tuple(figures.conventions())
    more = tuple(one_more(step))
    return Worked(entries, program.conventions[0], tuple(figures.regimes()), counted, more, over_length(step))


class _Figures:
    def __init__(self, step: Step) -> None:
        self.program, self.sizes, self.real, self.value = step.program, step.sizes, step.real, step.value

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
            yield ConventionFigures(name, total, Fraction(total, first) if first else None, reason, self.program.row(name).unit)

    def reason(self, name: str) -> str:
        """The main reason why a convention counts other work than the first one."""
        lines, own, rules = self.program.regimes[0].lines, self.program.rows[0], self.program.row(name)
        reasons = []
        if rules.pairs != own.pairs and any(line.amount.useful != line.amount.executed for line in lines):
            reasons.append("all pairs, not the pairs that a mask leaves")
        if rules.unseen != own.unseen and not all(line.seen for line in lines):
            reasons.append("no work that profilers do not see")
        return ", and ".join(reasons)
