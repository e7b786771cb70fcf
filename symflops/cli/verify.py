"""Compares specs with the world.

Without --records the real class of each spec is built on the meta device (needs 'pip install symflops[verify]'): every
parameter by name and shape, forward and backward FLOPs, and every module; with --regime what trains under a regime, and both
passes. A reference 'module:Class' is a class of module.py beside the spec, a file that this command runs.

With --records the measured records below a folder are compared, without torch. Records that cannot be exact stand in
inexact.yaml beside the specs, each with its reason and its difference, and are held to those.

Exit code 1 when anything that was compared is neither exact nor as its entry says; with --strict also when a record has no
spec.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from symflops.cli.arguments import SPECS, argument, arguments_of

STATUSES = ("exact", "inexact", "mismatch", "stale", "error", "no-spec")
FAILURES = ("mismatch", "stale", "error")
TOLD = {"inexact": "inexact (known)"}


configure = arguments_of(
    SPECS,
    argument("--records", metavar="DIR", help="compare with the measured records below DIR"),
    argument("--regime", metavar="R", help="put a regime on the real class: what trains, adapters, recomputation"),
    argument("--strict", action="store_true", help="a record without a spec is a failure, and so are no records"),
    argument("--save", metavar="FILE", help="write what came out exact, for the derivation pages"),
    argument("--json", action="store_true", help="print a JSON list"),
)


def run(args: argparse.Namespace) -> int:
    """Verify and print."""
    if args.regime:
        return in_regime(args)
    return records(args) if args.records else live(args)


def chosen(args: argparse.Namespace) -> list[Any]:
    """The specs to verify, loaded."""
    from symflops.api import load
    from symflops.catalog.library import roots, specs_in

    return [load(spec) for spec in args.specs or specs_in(roots()[0])]


def records(args: argparse.Namespace) -> int:
    """Compare with measured records."""
    from symflops.cli.progress import progress
    from symflops.diagnostics.errors import SymflopsError
    from symflops.records.inexact import known_inexact
    from symflops.witness.records import read_records, verify_records
    from symflops.witness.verdicts import judged

    models = {reference.rpartition(".")[2]: model for model in chosen(args) for reference in model.spec.references}
    found = list(read_records(Path(args.records)))
    if args.specs:
        found = [record for record in found if record["class"] in models]
    if args.strict and not found:
        raise SymflopsError(f"there are no records below {args.records}")
    known = {
        name: entry for root in {model.file.root for model in models.values()} for name, entry in known_inexact(root).items()
    }
    verdicts: list[Any] = []
    for record in progress(found, "verifying", lambda record: str(record["id"])):
        verdicts.extend(judged(verdict, record, known) for verdict in verify_records([record], models))
    if args.json:
        print(json.dumps([verdict.as_json() for verdict in verdicts], indent=1))
    for verdict in verdicts:
        if verdict.status not in ("exact", "no-spec"):
            print(f"{TOLD.get(verdict.status, verdict.status)} {verdict.id}: {verdict.why or passes(verdict)}", file=sys.stderr)
    counts = {status: sum(verdict.status == status for verdict in verdicts) for status in STATUSES}
    print(", ".join(f"{count} {TOLD.get(status, status)}" for status, count in counts.items()), file=sys.stderr)
    if args.save:
        save(Path(args.save), found, verdicts, models)
        save_published(Path(args.save), found, models)
    failures = (*FAILURES, "no-spec") if args.strict else FAILURES
    return 1 if any(counts[status] for status in failures) else 0


def passes(verdict: Any) -> str:
    """Both numbers of each pass that differs."""
    told = [
        f"{key} {verdict.expected[key]} measured, {verdict.derived[key]} derived"
        for key in ("parameters", "forward", "backward")
        if verdict.expected[key] != verdict.derived[key]
    ]
    return "; ".join(told)


def save(path: Path, found: list[Any], verdicts: list[Any], models: dict[str, Any]) -> None:
    """Write the exact and the known inexact records by spec, for the pages."""
    from symflops.commands.generate import printed
    from symflops.system.files import write

    specs: dict[str, dict[str, Any]] = {}
    for record, verdict in zip(found, verdicts, strict=True):
        if verdict.status not in ("exact", "inexact"):
            continue
        name, reference = models[record["class"]].spec.name, f"{record['package']}.{record['class']}"
        entry = specs.setdefault(name, {}).setdefault(
            reference, {"reference": reference, "version": record["version"], "torch": record["torch"], "cases": []}
        )
        case = {"name": record["id"].rpartition("/")[2], **verdict.derived}
        if verdict.status == "exact":
            entry["cases"].append(case)
        else:
            entry.setdefault("inexact", []).append({"id": verdict.id, **case})
    write(path, printed({"schema": 1, "specs": {name: list(entries.values()) for name, entries in specs.items()}}))


def save_published(path: Path, found: list[Any], models: dict[str, Any]) -> None:
    """Write sizes and batches of published models beside it, for the presets of pages."""
    from symflops.commands.generate import printed
    from symflops.records.published import FILE
    from symflops.system.files import write
    from symflops.witness.published import published_of

    write(path.with_name(FILE), printed({"schema": 1, "specs": published_of(found, models)}))


def live(args: argparse.Namespace) -> int:
    """Compare with the real classes, as far as the specs go."""
    from symflops.catalog.library import find_spec, roots, specs_in
    from symflops.cli.progress import progress
    from symflops.commands.check import as_far_as
    from symflops.witness.authoring_report import render
    from symflops.witness.cases import cases_of, cases_path
    from symflops.witness.defaults import default_differences
    from symflops.witness.live import LiveReport, verify_live

    files = [find_spec(spec) for spec in args.specs] or list(specs_in(roots()[0]))
    parts = [as_far_as(file) for file in files]
    for finding in (finding for _, found in parts for finding in found):
        print(finding.render(), file=sys.stderr)
    if any(found for _, found in parts):
        print("these entries, and what rests on them, are left out of what follows", file=sys.stderr)
    wrong = [difference for model, found in parts if not found for difference in default_differences(model)]
    for difference in wrong:
        print(difference)
    pairs = [(model, case) for model, _ in parts for case in cases_of(model.file)]
    reports: dict[int, list[LiveReport]] = {id(model): [] for model, _ in parts}
    for model, case in progress(pairs, "verifying", lambda pair: pair[0].spec.name):
        reports[id(model)].append(verify_live(model, case))
    for same in reports.values():
        for report in same:
            print(render(report, same))
    for model, _ in parts if args.specs else ():
        if not reports[id(model)]:
            told = "list configs and batches there: - {config: {...}, batch: {...}}"
            print(f"{model.spec.name}: there is no {cases_path(model.file.path).name} beside it: {told}", file=sys.stderr)
    failed = sum(not report.exact for same in reports.values() for report in same)
    print(f"{len(pairs)} cases, {failed} not exact, {len(wrong)} defaults differ from the class's own", file=sys.stderr)
    return 1 if failed or wrong or any(found for _, found in parts) else 0


def in_regime(args: argparse.Namespace) -> int:
    """Compare with the real classes under a regime."""
    from symflops.api import regime_of
    from symflops.cli.progress import progress
    from symflops.witness.cases import cases_of
    from symflops.witness.live_regime import render_regime, verify_regime

    regime = regime_of(args.regime)
    pairs = [(model, case) for model in chosen(args) for case in cases_of(model.file)]
    reports = []
    for model, case in progress(pairs, "verifying", lambda pair: pair[0].spec.name):
        reports.append(verify_regime(model, case, regime))
        if not args.json:
            print(render_regime(reports[-1]))
    if args.json:
        print(json.dumps({"schema": 1, "regime": regime.name, "cases": [report.as_json() for report in reports]}, indent=1))
    failed = sum(not report.exact for report in reports)
    print(f"{len(pairs)} cases, {failed} not exact", file=sys.stderr)
    return 1 if failed else 0
