"""Checks a spec: syntax, meaning, unused entries, and inferred roles that change what a convention counts.

It can also wait until the spec, or a file that it may read, changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from symflops.analysis.baseline import check as check_baseline
from symflops.analysis.stated import wrong_figures
from symflops.api import Model, convention_of, regime_of
from symflops.build.build import build_through
from symflops.build.roles import first_line, rules
from symflops.cli.actions.structures import findings_of
from symflops.count.count import Effect, effects
from symflops.ir.convention import ROLES, Convention, role_of, role_of_kind
from symflops.ir.graph import Graph
from symflops.ir.nodes import Operator
from symflops.library.records.verified import known_inexact
from symflops.read.definition_order import unused
from symflops.read.read import read_through
from symflops.read.spec_files import SpecFile, pages
from symflops.read.variants import needless_sizes
from symflops.support.findings import Diagnostic, Reporter, SpecError, in_order

UNSURE = ("structural-size", "alternating-repeat", "bad-pattern", "bad-expression", "missing-field")
"""Codes of findings that may only follow from a reported syntax mistake, such as a size without its default."""

State = dict[str, tuple[int, int]]
SECONDS = 0.5  # interval at which the files of a watched spec are polled


def findings(
    file: SpecFile,
    regimes: Iterable[str | Path] = (),
    conventions: Iterable[str | Path] = (),
    configs: Sequence[Mapping[str, Any]] = (),
) -> list[Diagnostic]:
    """Check a spec; return its findings in file order, warnings and notes only if there is no error.

    Derives the structures of the defaults, of each variant, of ``configs`` and of other values of the sizes that decide the
    structure (:mod:`symflops.cli.actions.structures`), applies ``regimes`` to the model, and reads ``conventions`` and the list
    of inexact records of its library.

    Raises:
        SymflopsError: a file cannot be read.
    """
    report = Reporter()
    try:
        reading = read_through(file.source(), file.block, file.base)
    except SpecError as error:
        return in_order(error.diagnostics)
    report.extend(reading.report.diagnostics)
    warnings = Reporter()
    model = Model(file, replace(reading.spec, reading=file.reading()), partial(_built_with, warnings))
    for variant in ("", *model.variants) if reading.buildable else ():
        found = _findings_of(_build, model, variant)
        unsure = UNSURE if reading.report.failed else ("structural-size",) if configs else ()
        report.extend([each for each in found if each.code not in unsure])
    if not report.failed:
        report.extend(findings_of(model, configs))
    if not report.failed:
        report.extend(_of_pages(model, regimes, conventions))
    if not report.failed:
        report.extend(wrong_figures(model))
    if not report.failed and model.spec.baseline:
        report.extend(_findings_of(check_baseline, model))
    if not report.failed:
        report.extend(
            [
                *warnings.diagnostics,
                *unused(reading.spec),
                *_findings_of(known_inexact, file.root),
                *notes_or_none(model, conventions),
            ],
        )
    return in_order(report.diagnostics)


def _build(model: Model, variant: str) -> None:
    """Build the graph of ``variant`` (empty: the defaults), which raises the errors of its structure.

    A variant that may list needless sizes is also derived.
    """
    fixed = model.graph({} if not variant else None, variant).fixed
    if variant and needless_sizes(model.variant(variant), fixed):
        model.structure(variant)


def _built_with(report: Reporter, *given: Any) -> Graph:
    """Build the graph of the spec ``given``, add its warnings to ``report``, and return the graph."""
    graph, found = build_through(*given)
    found.check()
    report.extend(found.diagnostics)
    return graph


def _findings_of(step: Callable[..., object], *given: Any) -> Sequence[Diagnostic]:
    """Call ``step`` with ``given``; return the findings of the :class:`SpecError` that it raises, else ()."""
    try:
        step(*given)
    except SpecError as error:
        return error.diagnostics
    return ()


def load_valid_part(file: SpecFile) -> tuple[Model, list[Diagnostic]]:
    """Load a spec without its faulty entries; return (model, findings about the spec).

    Raises:
        SpecError: the file is not YAML, or a section before its graph is wrong.
    """
    reading = read_through(file.source(), file.block, file.base)
    unfinished = {finding.message for finding in reading.report.diagnostics if finding.code == "missing-field"}
    if not reading.buildable and len(unfinished) < len(reading.report.diagnostics):
        reading.report.check()
    found = findings(file)
    if not any(finding.severity == "error" and finding.code != "other-figure" for finding in found):
        return Model(file, reading.spec), []
    return Model(file, reading.spec, lambda *given: build_through(*given)[0]), found


def _of_pages(model: Model, regimes: Iterable[str | Path], conventions: Iterable[str | Path]) -> list[Diagnostic]:
    """Check that regimes fit a model and that conventions are valid; return the findings."""
    found = [_findings_of(lambda page: model.check_regime(regime_of(page), {}), regime) for regime in regimes]
    found += [_findings_of(convention_of, convention) for convention in conventions]
    return [finding for some in found for finding in some]


class Shown(NamedTuple):
    """Role and regions of an operator, as ``symflops check --roles`` shows them.

    Attributes:
        module: The path of the operator.
        operator: The kind of the operator.
        role: The role by which conventions count it.
        origin: Where the role comes from: ``spec``, ``kind``, ``structure``, or ``path`` and a pattern.
        regions: Each region of the operator, mapped to its origin.
    """

    module: str
    operator: str
    role: str
    origin: str
    regions: dict[str, str]


def role_rows(model: Model) -> list[Shown]:
    """Return one row per operator with work or parameters, over the default structure and all variants."""
    found = (_role_row(operator) for graph in graphs(model) for operator in graph.operators() if _counts(operator))
    return list({(row.module, row.operator, row.role, row.origin): row for row in found}.values())


def graphs(model: Model) -> Iterator[Graph]:
    """Yield the graph of the default config, then the graph of each variant."""
    for variant in ("", *model.variants):
        yield model.graph({} if not variant else None, variant)


def _counts(operator: Operator) -> bool:
    return bool(operator.contractions or operator.parameters or operator.role or operator.inferred)


def _role_row(operator: Operator) -> Shown:
    """Collect the role and the regions of one operator, with their origins."""
    role = role_of(operator)
    origin = "spec" if operator.role else origin_of(operator, role) if operator.inferred else "kind"
    regions = {region: origin_of(operator, region) for region in operator.shown} | dict.fromkeys(operator.regions, "spec")
    return Shown(str(operator.path), operator.kind, role, origin, regions)


def origin_of(operator: Operator, role: str) -> str:
    """Return the origin of the inferred ``role``: ``structure``, or ``path`` and the matching pattern."""
    path = str(operator.path)
    if ROLES[role].group == "region":
        return next(f"path {pattern}" for pattern, region in rules().regions if region == role and fnmatchcase(path, pattern))
    pattern, named = first_line(operator.kind, path)
    return f"path {pattern}" if named == role else "structure"


@cache
def _shipped() -> tuple[Convention, ...]:
    return tuple(map(convention_of, pages("conventions")))


def notes(model: Model, more: Iterable[str | Path] = ()) -> list[Diagnostic]:
    """Return notes on inferred roles that change the figures of a shipped convention or one in ``more``.

    Raises:
        SpecError: the structure needs a size that is not given.
    """
    conventions = [one.of(model.spec.called) for one in (*_shipped(), *map(convention_of, more))]
    groups: dict[object, list[Effect]] = {}
    for graph in graphs(model):
        for effect in effects(graph, conventions):
            region = ROLES[effect.role].group == "region"
            place = origin_of(effect.operator, effect.role) if region else effect.operator.span
            groups.setdefault((effect.role, place), []).append(effect)
    return list(map(_note, groups.values()))


def _note(found: Sequence[Effect]) -> Diagnostic:
    """Build one note on the operators ``found``, which share an inferred role and the role's origin."""
    operator, role, _ = found[0]
    origin = origin_of(operator, role)
    said = "the structure" if origin == "structure" else f"the name of '{operator.path}'"
    region = ROLES[role].group == "region"
    message = f"the {'region' if region else 'role'} '{role}' follows from {said} alone"
    others = len({str(one.operator.path) for one in found}) - 1
    message += f", and that of {others} more" if others and region else ""
    names = list(dict.fromkeys(name for one in found for name in one.conventions))
    hint = f"if it is one, say 'role: {role}'; if not, 'role: {role_of_kind(operator)}'"
    if region:
        hint = f"say 'role: {role}' at the entry around it, or 'role: main' if it is none"
    return Diagnostic(
        "inferred-role", message, operator.span, hint, "note", note=f"it changes the counts of {', '.join(names)}"
    )


def notes_or_none(model: Model, more: Iterable[str | Path] = ()) -> Sequence[Diagnostic]:
    """Return :func:`notes`, or () if the structure of the model needs a size that is not given."""
    try:
        return notes(model, more)
    except SpecError:
        return ()


def changes(files: Iterable[SpecFile]) -> Iterator[None]:
    """Yield once at the start, then after each change to a YAML or JSON file that a spec may read."""
    files, last = list(files), None
    while True:
        now = state(files)
        if now != last:
            last = now
            yield
        time.sleep(SECONDS)


def state(files: Iterable[SpecFile]) -> State:
    """Map the path of each file that a spec may read to (size in bytes, modification time in ns)."""
    folders = {folder for file in files for base in (file.path.parent, file.root) for folder in (base, base / "blocks")}
    found: State = {}
    for path in (path for folder in sorted(folders) for kind in ("yaml", "json") for path in folder.glob(f"*.{kind}")):
        try:
            told = path.stat()
        except OSError:  # it is being replaced
            continue
        found[str(path)] = (told.st_size, told.st_mtime_ns)
    return found
