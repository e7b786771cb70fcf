"""An estimator for each part of the work."""

from __future__ import annotations

from symflops.model.program import Line

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
