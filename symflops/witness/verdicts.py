"""Compares verdicts on measured records with the list of records known to be inexact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from symflops.model.verification import KnownInexact
from symflops.witness.records import Record, Verdict

PASSES = ("forward", "backward")


def judged(verdict: Verdict, record: Record, known: Mapping[str, KnownInexact]) -> Verdict:
    """The verdict on a record, given the list: ``inexact`` if it differs exactly as its entry states.

    If a listed record is exact, its entry is ``stale``. If it differs otherwise, the verdict says how.
    """
    entry = known.get(verdict.id)
    if entry is None or verdict.status not in ("exact", "mismatch"):
        return verdict
    if verdict.status == "exact":
        return replace(verdict, status="stale", why="is exact, and known as inexact: take its entry away")
    found = {name: _difference(verdict, name) for name in PASSES}
    stated = {name: getattr(entry, name) for name in PASSES}
    modules = containers(entry, record["by_module_fwd"])
    if verdict.parameters_ok and found == stated and dict(verdict.modules) == modules:
        return replace(verdict, status="inexact", why=entry.reason)
    wrong = [f"{name} is {found[name]:+}, stated is {stated[name]:+}" for name in PASSES if found[name] != stated[name]]
    for name in sorted(verdict.modules.keys() | modules.keys()):
        if verdict.modules.get(name, 0) != modules.get(name, 0):
            wrong.append(f"{name} is {verdict.modules.get(name, 0):+}, stated is {modules.get(name, 0):+}")
    if not verdict.parameters_ok:
        wrong.append(f"parameters differ: {verdict.why}")
    return replace(verdict, why=f"differs otherwise than stated (derived minus measured): {'; '.join(wrong)}")


def containers(entry: KnownInexact, measured: Mapping[str, int]) -> dict[str, int]:
    """The stated differences of modules and, summed, of their measured containers; without sums of zero."""
    found: Counter[str] = Counter()
    for name, difference in entry.modules:
        words = name.split(".")
        for end in range(1, len(words) + 1):
            found[".".join(words[:end])] += difference
    innermost = {name for name, _ in entry.modules}
    return {name: value for name, value in found.items() if value and (name in measured or name in innermost)}


def _difference(verdict: Verdict, name: str) -> int | None:
    derived, measured = verdict.derived[name], verdict.expected[name]
    return None if derived is None or measured is None else derived - measured
