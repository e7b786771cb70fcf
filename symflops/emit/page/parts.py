"""An estimator for each part of the work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from symflops.emit.grouping import grouped
from symflops.emit.parts import ATTENTION, EXPERTS, LINEARS, ORDER, PARTS, part_of
from symflops.model.program import Case, Program
from symflops.runtime.interpreted import InterpretedEstimator

__all__ = ["ATTENTION", "EXPERTS", "LINEARS", "ORDER", "PARTS", "of_parts", "part_of"]


def of_parts(program: Program, config: Mapping[str, Any], case: Case) -> dict[str, InterpretedEstimator]:
    """An estimator for each part of the work of one regime under one convention; their figures sum to the whole."""
    regime = program.regime(case.regime)
    parts = grouped((part_of(line), line) for line in regime.under(case.convention))
    found = {part: replace(regime, lines=tuple(parts[part]), own=()) for part in ORDER if part in parts}
    programs = {part: replace(program, regimes=(lines,)) for part, lines in found.items()}
    return {
        part: InterpretedEstimator(each, config, regime=case.regime, convention=case.convention)
        for part, each in programs.items()
    }
