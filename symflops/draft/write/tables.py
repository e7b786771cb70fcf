"""What all writers of one draft share."""

from __future__ import annotations

from dataclasses import dataclass

from symflops.draft.fit.fit import Fitter
from symflops.draft.fit.symbols import Names
from symflops.draft.sample.family import Family
from symflops.draft.trace.steps import Plan
from symflops.draft.write.dimensions import Dimensions
from symflops.draft.write.paths import Paths
from symflops.draft.write.streams import Streams
from symflops.draft.write.values import Values


@dataclass(frozen=True, slots=True)
class Tables:
    """What all writers of one draft share.

    Attributes:
        family: The samples; the first one is written.
        plan: The first sample's steps.
        dims: Formulas of rows and widths.
        streams: Streams by their rows.
        paths: Paths of modules and parameters.
        values: Values by reference.
    """

    family: Family
    plan: Plan
    dims: Dimensions
    streams: Streams
    paths: Paths
    values: Values


def tables_of(family: Family, names: Names, fitter: Fitter) -> Tables:
    """Empty tables for the first sample of a family."""
    plan = family.samples[0].plan
    dims = Dimensions(family, names, fitter)
    streams, paths = Streams(dims), Paths(dims)
    return Tables(family, plan, dims, streams, paths, Values(plan, dims, streams, paths))
