"""Totals of several conventions on one typical batch, with the main reason of each difference; for a derivation page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from symflops.analysis.typical_values import default_sizes, typical_batch
from symflops.analysis.worked_figures import ConventionFigures
from symflops.api import Model, convention_of, regime_of
from symflops.model.program import Program
from symflops.witness.differences import Comparison


def convention_figures(
    model: Model, program: Program, config: Mapping[str, Any], names: Sequence[str]
) -> tuple[ConventionFigures, ...]:
    """The figures of the conventions ``names`` at the default sizes, in the first regime of ``program``.

    The others are compared with the first name. The result is empty if a size has no default.

    Raises:
        SymflopsError: a convention is unknown or invalid, or the model does not accept the typical batch.
    """
    return () if default_sizes(program) is None else tuple(_figures(model, program, config, list(dict.fromkeys(names))))


def _figures(model: Model, program: Program, config: Mapping[str, Any], names: Sequence[str]) -> Iterator[ConventionFigures]:
    batch = typical_batch(program) | {stream.name: 1 for stream in program.streams if stream.counts}
    comparison = Comparison(model, config, batch, regime_of(program.regimes[0].name))
    first = 0
    every = {name: convention_of(name).of(model.spec.called) for name in names}
    comparison.pieces.prepare(every.values())
    for name, rules in every.items():
        total = int(comparison.total(rules))
        first = first or total
        ratio = Fraction(total, first) if first else None
        yield ConventionFigures(name, total, ratio, comparison.main_cause(names[0], name), rules.unit)
