"""All findings about a spec in one go: mistakes of form, mistakes of meaning, and what nobody reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from symflops.api import Model, convention_of, regime_of
from symflops.build.build import build_through
from symflops.catalog.library import SpecFile
from symflops.diagnostics.findings import Diagnostic, Reporter, SpecError, in_order
from symflops.frontend.read import read_through
from symflops.frontend.unused import unused
from symflops.frontend.variants import needless_sizes
from symflops.model.graph import Graph
from symflops.model.needs_size import NeedsSize
from symflops.records.inexact import known_inexact

UNSURE = ("structural-size", "alternating-repeat", "bad-pattern", "bad-expression", "missing-field")
"""What may follow from a mistake of form that is told already: a size that has lost its default, say."""


def findings(file: SpecFile, regimes: Iterable[str | Path] = (), conventions: Iterable[str | Path] = ()) -> list[Diagnostic]:
    """The findings about a spec, in the order of the file; warnings are among them only where there is no error.

    Its structure is that of the defaults, and that of each variant. ``regimes`` are held against it, ``conventions`` are read,
    and so is the list of records that may be inexact beside it.

    Raises:
        SymflopsError: a file cannot be read.
    """
    report = Reporter()
    try:
        reading = read_through(file.source(), file.blocks(), file.bases())
    except SpecError as error:
        return in_order(error.diagnostics)
    _keep(report, reading.report.diagnostics)
    model = Model(file, reading.spec)
    if reading.buildable:
        for variant in ("", *model.variants):
            try:
                fixed = model.graph({} if not variant else None, variant).fixed
                if variant and needless_sizes(model.variant(variant), fixed):
                    model.published(variant)
            except SpecError as error:
                sure = [found for found in error.diagnostics if not reading.report.failed or found.code not in UNSURE]
                _keep(report, sure)
    if not report.failed:
        _keep(report, pages(model, regimes, conventions))
    if not report.failed:
        _keep(report, unused(reading.spec))
        try:
            known_inexact(file.root)
        except SpecError as error:
            _keep(report, error.diagnostics)
    return in_order(report.diagnostics)


def as_far_as(file: SpecFile) -> tuple[Model, list[Diagnostic]]:
    """The model of a spec; of one that is not valid, what can be made of it without its mistakes, and those.

    Raises:
        SpecError: it is no YAML, or what stands before its graph is wrong.
    """
    reading = read_through(file.source(), file.blocks(), file.bases())
    unfinished = {finding.message for finding in reading.report.diagnostics if finding.code == "missing-field"}
    if not reading.buildable and len(unfinished) < len(reading.report.diagnostics):
        reading.report.check()
    found = findings(file)
    if not any(finding.severity == "error" for finding in found):
        return Model(file, reading.spec), []
    return Model(file, reading.spec, _built_through), found


def _built_through(*given: Any) -> Graph | NeedsSize:
    """The graph of a spec without its faulty entries."""
    built = build_through(*given)
    return built if isinstance(built, NeedsSize) else built[0]


def pages(model: Model, regimes: Iterable[str | Path], conventions: Iterable[str | Path]) -> list[Diagnostic]:
    """The findings about regimes that should fit a model, and about conventions."""
    found: list[Diagnostic] = []
    for regime in regimes:
        try:
            model.check_regime(regime_of(regime), {})
        except SpecError as error:
            found += error.diagnostics
    for convention in conventions:
        try:
            convention_of(convention)
        except SpecError as error:
            found += error.diagnostics
    return found


def _keep(report: Reporter, diagnostics: Iterable[Diagnostic]) -> None:
    for diagnostic in diagnostics:
        report.add(diagnostic)
