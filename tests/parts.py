"""Estimators of single parts of the work: a witness of figures by part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.item_analysis import ORDER, part_of
from symflops.ir.program import Case, Program


def of_parts(program: Program, config: Mapping[str, Any], case: Case) -> dict[str, InterpretedEstimator]:
    """An estimator for each part of the work of one regime under one convention."""
    regime, found = program.regime(case.regime), {}
    for part in ORDER:
        lines = tuple(line for line in regime.under(case.convention) if part_of(line) == part)
        alone = replace(program, regimes=(replace(regime, lines=lines, own=()),))
        if lines:
            found[part] = InterpretedEstimator(alone, config, regime=case.regime, convention=case.convention)
    return found
