"""Checks a spec: mistakes of form, mistakes of meaning, and entries that nothing uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from symflops.api import Model, convention_of, regime_of
from symflops.build.build import build_through
from symflops.catalog.library import SpecFile
from symflops.commands.roles import notes_or_none
from symflops.commands.structures import findings_of
from symflops.diagnostics.findings import Diagnostic, Reporter, SpecError, in_order
from symflops.frontend.read import read_through
from symflops.frontend.unused import unused
from symflops.frontend.variants import needless_sizes
from symflops.model.graph import Graph
from symflops.questions.baseline import check as check_baseline
from symflops.records.inexact import known_inexact

UNSURE = ("structural-size", "alternating-repeat", "bad-pattern", "bad-expression", "missing-field")
"""Findings that may follow from a mistake of form already reported, such as a size without its default."""


def findings(
    file: SpecFile,
    regimes: Iterable[str | Path] = (),
    conventions: Iterable[str | Path] = (),
    configs: Sequence[Mapping[str, Any]] = (),
) -> list[Diagnostic]:
    """The findings about a spec, in the order of the file; warnings and notes only if there is no error.

    Derives the structures of the defaults, of each variant, of ``configs`` and of other values of the sizes that decide the
    structure (:mod:`symflops.commands.structures`), applies ``regimes`` to the model, and reads ``conventions`` and the list of
    inexact records beside the spec.

    Raises:
        SymflopsError: a file cannot be read.
    """
    report = Reporter()
    try:
        reading = read_through(file.source(), file.blocks(), file.bases())
    except SpecError as error:
        return in_order(error.diagnostics)
    _keep(report, reading.report.diagnostics)
    warnings = Reporter()
    model = Model(file, replace(reading.spec, reading=file.reading()), partial(_built_with, warnings))
    for variant in ("", *model.variants) if reading.buildable else ():
        found = _findings_of(_build, model, variant)
        unsure = UNSURE if reading.report.failed else ("structural-size",) if configs else ()
        _keep(report, [each for each in found if each.code not in unsure])
    if not report.failed:
        _keep(report, findings_of(model, configs))
    if not report.failed:
        _keep(report, pages(model, regimes, conventions))
    if not report.failed and model.spec.baseline:
        _keep(report, _findings_of(check_baseline, model))
    if not report.failed:
        _keep(
            report,
            [
                *warnings.diagnostics,
                *unused(reading.spec),
                *_findings_of(known_inexact, file.root),
                *notes_or_none(model, conventions),
            ],
        )
    return in_order(report.diagnostics)


def _build(model: Model, variant: str) -> None:
    """Build the structure of the defaults or of a variant; derive a variant that may not need all of its sizes."""
    fixed = model.graph({} if not variant else None, variant).fixed
    if variant and needless_sizes(model.variant(variant), fixed):
        model.structure(variant)


def _built_with(report: Reporter, *given: Any) -> Graph:
    """The graph of a spec, whose warnings go to ``report``."""
    graph, found = build_through(*given)
    found.check()
    _keep(report, found.diagnostics)
    return graph


def _findings_of(step: Callable[..., object], *given: Any) -> Sequence[Diagnostic]:
    """The findings of a step that a mistake in a spec ends."""
    try:
        step(*given)
    except SpecError as error:
        return error.diagnostics
    return ()


def as_far_as(file: SpecFile) -> tuple[Model, list[Diagnostic]]:
    """The model of a spec without its faulty entries, and the findings about these.

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
    return Model(file, reading.spec, lambda *given: build_through(*given)[0]), found


def pages(model: Model, regimes: Iterable[str | Path], conventions: Iterable[str | Path]) -> list[Diagnostic]:
    """The findings about regimes that should fit a model, and about conventions."""
    found = [_findings_of(lambda page: model.check_regime(regime_of(page), {}), regime) for regime in regimes]
    found += [_findings_of(convention_of, convention) for convention in conventions]
    return [finding for some in found for finding in some]


def _keep(report: Reporter, diagnostics: Iterable[Diagnostic]) -> None:
    for diagnostic in diagnostics:
        report.add(diagnostic)
