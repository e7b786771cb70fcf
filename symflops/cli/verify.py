"""Compares specs with the world.

Without --records the real class of each spec is built on the meta device (needs 'pip install symflops[verify]'): every
parameter by name and shape, forward and backward FLOPs, and every module; with --regime what trains under a regime, and both
passes. A reference 'module:Class' is a class of module.py beside the spec; this command runs that file. Pairs that its masks
hide are compared on the CPU, module by module: 'masks: equal', where they differ, or why they are not seen.

With --symbolic the class runs with symbols as its sizes, and its closed forms are subtracted from the spec's, in total and
module by module: an identity holds for all sizes that the class takes. With --save FILE it is kept there, and estimates of
configs in its domain are graded *proven for all sizes*.

With --records the measured records below a folder are compared, without torch; what has not changed since an earlier run is not
derived again, unless with --cold. Records that cannot be exact are listed in inexact.yaml beside the specs, each with its
reason and the difference that is expected.

Figures that a spec states under 'expect' are compared, too; a spec without a class or cases is compared with them alone.

Exit code 1 if a comparison is neither exact nor as its entry in inexact.yaml, or a case fails; with --strict also if a record
has no spec.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from symflops.cli.progress import progress
from symflops.cli.terminal import SPECS, argument, arguments_of
from symflops.support.errors import SymflopsError

STATUSES = ("exact", "inexact", "mismatch", "stale", "error", "no-spec")
FAILURES = ("mismatch", "stale", "error")
SHOWN = {"inexact": "inexact (known)"}


configure = arguments_of(
    SPECS,
    argument("--records", metavar="DIR", help="compare with the measured records below DIR"),
    argument("--regime", metavar="R", help="put a regime on the real class: what trains, adapters, recomputation"),
    argument("--symbolic", action="store_true", help="for all sizes at once: run the class with symbols, and subtract"),
    argument("--strict", action="store_true", help="a record without a spec is a failure, and so are no records"),
    argument("--cold", action="store_true", help="derive records that earlier runs compared, too"),
    argument("--save", metavar="FILE", help="write what came out exact, for pages and evidence"),
    argument("--json", action="store_true", help="print a JSON list"),
)


def run(args: argparse.Namespace) -> int:
    """Compare specs with real classes or measured records; return the exit code, 1 on a difference."""
    if args.regime:
        return in_regime(args)
    if args.symbolic:
        return symbolic(args)
    return records(args) if args.records else live(args)


def symbolic(args: argparse.Namespace) -> int:
    """Subtract the formulas of specs from those that their classes tell; return the exit code, 1 unless all are identities."""
    from symflops.api import load
    from symflops.library.records.identities import save_identities
    from symflops.read.spec_files import chosen_specs
    from symflops.verify.cases import cases_of
    from symflops.verify.symbolic.identity import identity_of, stored

    cases = [(load(file), case) for file in chosen_specs(args.specs) for case in cases_of(file)[:1]]
    seen = {model.spec.name for model, _ in cases}
    for model in (load(file) for file in chosen_specs(args.specs) if args.specs and file.name not in seen):
        print(unseen(model, 0), file=sys.stderr)
    found = []
    for model, case in progress(cases, "tracing", lambda pair: str(pair[0].spec.name)):
        found.append(identity_of(model, case))
        if not args.json:
            print(found[-1], flush=True)
        if args.save:
            save_identities(Path(args.save), {model.file.name: [stored(model, found[-1])]})
    if args.json:
        print(json.dumps([one.as_json() for one in found], indent=1))
    counts = Counter(one.grade for one in found)
    print(", ".join(f"{count} {grade}" for grade, count in counts.most_common()) or "no identities", file=sys.stderr)
    return 0 if found and counts["identity"] == len(found) else 1


def records(args: argparse.Namespace) -> int:
    """Compare specs with measured records; return the exit code, 1 if a record fails."""
    from symflops.read.spec_files import chosen_specs
    from symflops.verify.records import read_records
    from symflops.verify.verdicts import VerifiedSpec

    specs = [VerifiedSpec(file, args.cold) for file in chosen_specs(args.specs)]
    models = {reference.rpartition(".")[2]: spec for spec in specs for reference in spec.references}
    found = [record for record in read_records(Path(args.records)) if not args.specs or record["class"] in models]
    if args.strict and not found:
        raise SymflopsError(f"there are no records below {args.records}")
    verdicts = judge(found, models)
    for spec in specs:
        spec.keep()
    if args.json:
        print(json.dumps([verdict.as_json() for verdict in verdicts], indent=1))
    if args.save:
        save(Path(args.save), found, verdicts, models)
        save_published(Path(args.save), found, {name: spec.model for name, spec in models.items()})
    counts = summary(verdicts)
    failures = (*FAILURES, "no-spec") if args.strict else FAILURES
    return 1 if any(counts[status] for status in failures) else 0


def judge(found: list[Any], models: dict[str, Any]) -> list[Any]:
    """Return a verdict on each record, adjusted by the lists of known inexact records.

    ``models`` maps the names of classes to the specs that derive them.
    """
    from symflops.library.records.verified import known_inexact
    from symflops.verify.verdicts import judged, verify_records

    roots = {spec.file.root for spec in models.values()}
    known = {name: entry for root in roots for name, entry in known_inexact(root).items()}
    steps = progress(found, "verifying", lambda record: str(record["id"]))
    return [judged(verdict, record, known) for record in steps for verdict in verify_records([record], models)]


def summary(verdicts: list[Any]) -> dict[str, int]:
    """Print the verdicts that are not exact; return the number of verdicts by status."""
    for verdict in verdicts:
        if verdict.status not in ("exact", "no-spec"):
            print(
                f"{SHOWN.get(verdict.status, verdict.status)} {verdict.id}: {verdict.why or passes(verdict)}", file=sys.stderr
            )
    counts = {status: sum(verdict.status == status for verdict in verdicts) for status in STATUSES}
    print(", ".join(f"{count} {SHOWN.get(status, status)}" for status, count in counts.items()), file=sys.stderr)
    return counts


def passes(verdict: Any) -> str:
    """Format the measured and the derived value of each figure (parameters, passes) that differs."""
    return "; ".join(
        f"{key} {verdict.expected[key]} measured, {verdict.derived[key]} derived"
        for key in ("parameters", "forward", "backward")
        if verdict.expected[key] != verdict.derived[key]
    )


def save(path: Path, found: list[Any], verdicts: list[Any], models: dict[str, Any]) -> None:
    """Write the exact and the known inexact records to ``path``, by spec, for derivation pages."""
    from symflops.cli.actions.generate import printed
    from symflops.support.files import write

    specs: dict[str, dict[str, Any]] = {}
    for record, verdict in zip(found, verdicts, strict=True):
        if verdict.status not in ("exact", "inexact"):
            continue
        name, reference = models[record["class"]].file.name, f"{record['package']}.{record['class']}"
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
    """Write configs and batches of published models, from the records ``found``, beside ``path``."""
    from symflops.cli.actions.generate import printed
    from symflops.library.records.verified import PUBLISHED
    from symflops.support.files import write
    from symflops.verify.records import published_of

    write(path.with_name(PUBLISHED), printed({"schema": 1, "specs": published_of(found, models)}))


def live(args: argparse.Namespace) -> int:
    """Compare specs with the real classes and with stated figures; faulty entries of a spec are reported and omitted.

    Return the exit code: 1 if anything differs, is faulty, or has neither cases nor stated figures.
    """
    from symflops.verify.classes import default_differences

    parts = readable(args.specs)
    other = other_figures([model for model, found in parts if not found])
    wrong = [difference for model, found in parts if not found for difference in default_differences(model)]
    for difference in wrong:
        print(difference)
    reports = compared([model for model, _ in parts], {model.spec.name for model, found in parts if found}, args.json)
    lacking = [model for model, found in reports if args.specs and not found]
    whole = [model for model, found in parts if not found]
    seen = {model.spec.name: witnessed(model) for model in lacking if model in whole}
    for model in lacking:
        print(unseen(model, stated(model), seen.get(model.spec.name)), file=sys.stderr)
    for model, found in reports if args.specs else ():
        if told := masks(found):
            print(f"{model.spec.name}: {told}", file=sys.stderr)
    results = [report.exact for _, found in reports for report in found]
    failed, figures = results.count(False), sum(map(stated, (model for model, _ in parts)))
    cases = f"{len(results)} cases, {failed} not exact, {len(wrong)} defaults differ from the class's own"
    lines = [cases] if results or wrong or not args.specs else []
    lines += [f"{figures} stated figures, {other} not as derived"] if figures else []
    print(*(f"{line}\n" for line in lines), sep="", end="", file=sys.stderr)
    nothing = [model for model in lacking if not stated(model) and not seen.get(model.spec.name)]
    differ = [found for found in seen.values() if found and not found.exact]
    return 1 if failed or wrong or other or nothing or differ or any(found for _, found in parts) else 0


def stated(model: Any) -> int:
    """Count the figures that a spec states under ``expect``."""
    return sum(len(one.figures) for one in model.spec.expect)


def other_figures(models: list[Any]) -> int:
    """Print the stated figures that differ from the derived ones; return their number."""
    from symflops.analysis.stated import wrong_figures

    found = [finding for model in models for finding in wrong_figures(model)]
    for finding in found:
        print(finding.render(), file=sys.stderr)
    return len(found)


def masks(reports: list[Any]) -> str:
    """Describe how masks compare with those of the class, for the worst case; empty without attention."""
    found = {report.masks.verdict: report.masks for report in reports if not isinstance(report, Failed) and report.masks}
    worst = next((found[verdict] for verdict in ("differ", "not seen", "equal") if verdict in found), None)
    return str(worst).partition(",")[0] if worst and worst.modules else str(worst or "")


def witnessed(model: Any) -> Any:
    """Return the comparison of ``model`` with its skeleton; None if that has gaps, or does not run, which is printed."""
    from symflops.verify.skeletons import witness

    try:
        found = witness(model)
    except SymflopsError as error:
        print(f"{model.spec.name}: the skeleton does not run: {error}", file=sys.stderr)
        return None
    for gap in found.gaps:
        print(f"{model.spec.name}: the skeleton has a gap: {gap}", file=sys.stderr)
    return None if found.gaps else found


def unseen(model: Any, figures: int, seen: Any = None) -> str:
    """Return the message that no class of ``model`` was run: what was compared instead, and what the spec lacks.

    ``seen`` is the comparison with its skeleton.
    """
    from symflops.verify.cases import cases_path

    told = f"{figures} stated figures compared" if figures else "no stated figures" if seen else "nothing compared"
    lines = [str(seen)] if seen else []
    lines += [f"{model.spec.name}: {told}; masks not seen:"]
    lines += [] if model.spec.references else ["it names no class: write 'reference: package.Class'"]
    lines.append(f"there is no {cases_path(model.file.path).name} beside it: list configs and batches there:")
    return "\n  ".join([*lines, "- {config: {...}, batch: {...}}"])


def readable(specs: list[str]) -> list[tuple[Any, list[Any]]]:
    """Return (model without the faulty entries of its spec, findings about them) for each spec.

    The findings are also printed.
    """
    from symflops.cli.actions.check import load_valid_part
    from symflops.read.spec_files import chosen_specs

    parts = [load_valid_part(file) for file in chosen_specs(specs)]
    findings = [finding for _, found in parts for finding in found]
    for finding in findings:
        print(finding.render(), file=sys.stderr)
    if findings:
        print("these entries, and what rests on them, are left out of what follows", file=sys.stderr)
    return parts


def compared(models: list[Any], faulty: Collection[str], as_json: bool) -> list[tuple[Any, list[Any]]]:
    """Compare all cases of ``models`` with the real classes; return (model, its reports).

    The reports are printed, of a model in ``faulty`` only the first.
    """
    from symflops.verify.authoring_report import render
    from symflops.verify.live import verify_live

    reports = reported(models, verify_live)
    if as_json:
        print(
            json.dumps([{"spec": model.spec.name, **report.as_json()} for model, same in reports for report in same], indent=1)
        )
    for model, same in () if as_json else reports:
        whole = [report for report in same if not isinstance(report, Failed)]
        for report in same[:1] if model.spec.name in faulty else same:
            print(report if isinstance(report, Failed) else render(report, whole))
    return reports


@dataclass(frozen=True, slots=True)
class Failed:
    """A case whose comparison failed, with the error."""

    case: str
    error: SymflopsError
    exact: bool = False

    @property
    def why(self) -> str:
        """The message of the error, without the label of the case."""
        return str(self.error).removeprefix(f"{self.case}: ")

    def __str__(self) -> str:
        return f"{self.case}: {self.why}"

    def as_json(self) -> dict[str, Any]:
        """Return the case and its error as JSON data."""
        return {"case": self.case, "exact": False, "error": self.why}


def attempted(compare: Callable[[], Any], case: Any) -> Any:
    """Return the report that ``compare`` makes of ``case``, or a :class:`Failed` if it raises an error."""
    try:
        return compare()
    except SymflopsError as error:
        return Failed(case.label, error)


def checked(reports: Sequence[Any]) -> None:
    """Raise an error if all cases failed for the same reason, such as a missing package.

    Raises:
        SymflopsError: all cases fail for the same reason.
    """
    reasons = {report.why if isinstance(report, Failed) else "" for report in reports}
    first = reports[0] if len(reasons) == 1 else None
    if isinstance(first, Failed):
        raise first.error


def reported(models: list[Any], compare: Callable[[Any, Any], Any]) -> list[tuple[Any, list[Any]]]:
    """Compare all cases of each model, with a progress bar; return (model, its reports).

    ``compare`` makes a report of a model and a case.

    Raises:
        SymflopsError: all cases fail for the same reason, such as a missing package.
    """
    from symflops.verify.cases import cases_of

    pairs = [(model, case) for model in models for case in cases_of(model.file)]
    steps = progress(pairs, "verifying", lambda pair: pair[0].spec.name)
    made = [(model, attempted(partial(compare, model, case), case)) for model, case in steps]
    checked([report for _, report in made])
    return [(model, [report for other, report in made if other is model]) for model in models]


def in_regime(args: argparse.Namespace) -> int:
    """Compare specs with the real classes under a regime.

    Return the exit code: 1 if a case is not exact, or a named spec has no cases.
    """
    from symflops.api import load, regime_of
    from symflops.read.spec_files import chosen_specs
    from symflops.verify.bench import render_regime, verify_regime

    regime = regime_of(args.regime)
    found = reported([load(file) for file in chosen_specs(args.specs)], partial(verify_regime, regime=regime))
    reports = [report for _, same in found for report in same]
    lacking = [model for model, same in found if args.specs and not same]
    for model in lacking:
        print(unseen(model, 0), file=sys.stderr)
    for report in () if args.json else reports:
        print(report if isinstance(report, Failed) else render_regime(report))
    if args.json:
        print(json.dumps({"schema": 1, "regime": regime.name, "cases": [report.as_json() for report in reports]}, indent=1))
    failed = sum(not report.exact for report in reports)
    print(f"{len(reports)} cases, {failed} not exact", file=sys.stderr)
    return 1 if failed or lacking else 0
