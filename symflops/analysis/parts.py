"""The parts of the work by the roles of operators, the same for every model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from symflops.model.program import Case, Line, Program
from symflops.runtime.interpreted import InterpretedEstimator

ATTENTION = "attention"
PARTS = {
    "attention": ATTENTION, "scan": "recurrence", "delta": "recurrence", "product": "products of two values",
    "bilinear": "products of two values", "conv": "convolutions", "lm_head": "head", "router": "routing",
    "shared_gate": "routing", "modulation": "modulation", "out_modulation": "modulation", "timestep": "modulation",
    "patch_embed": "first and last projections", "unpatch": "first and last projections",
    "text_in": "first and last projections", "merger": "first and last projections", "pooler": "first and last projections",
}  # fmt: skip
LINEARS, EXPERTS = "linears", "experts"
ORDER = (LINEARS, EXPERTS, *(part for part in dict.fromkeys(PARTS.values()) if part != ATTENTION), ATTENTION)
"""The order of parts from the bottom of a plot to its top."""


def part_of(line: Line) -> str:
    """The part of a line."""
    if line.role == "linear" and "experts" in line.regions:
        return EXPERTS
    return PARTS.get(line.role, LINEARS)


def of_parts(program: Program, config: Mapping[str, Any], case: Case) -> dict[str, InterpretedEstimator]:
    """An estimator for each part of the work of one regime under one convention; their figures sum to the whole."""
    regime = program.regime(case.regime)
    parts = {part: tuple(line for line in regime.under(case.convention) if part_of(line) == part) for part in ORDER}
    found = {part: replace(regime, lines=lines, own=()) for part, lines in parts.items() if lines}
    programs = {part: replace(program, regimes=(lines,)) for part, lines in found.items()}
    return {
        part: InterpretedEstimator(each, config, regime=case.regime, convention=case.convention)
        for part, each in programs.items()
    }
