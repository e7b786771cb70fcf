"""Holds verdicts on measured records to the list of those that are known to be inexact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from symflops.model.verification import KnownInexact
from symflops.witness.records import Record, Verdict

PASSES = ("forward", "backward")


def judged(verdict: Verdict, record: Record, known: Mapping[str, KnownInexact]) -> Verdict:
    """The verdict on a record that stands in the list: ``inexact`` where it differs as stated and only so.

    An entry about a record that is exact is ``stale``; of one that differs otherwise, the verdict says what is stated.
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
    told = [f"{name} is {found[name]:+}, stated is {stated[name]:+}" for name in PASSES if found[name] != stated[name]]
    for name in sorted(verdict.modules.keys() | modules.keys()):
        if verdict.modules.get(name, 0) != modules.get(name, 0):
            told.append(f"{name} is {verdict.modules.get(name, 0):+}, stated is {modules.get(name, 0):+}")
    if not verdict.parameters_ok:
        told.append(f"parameters differ: {verdict.why}")
    return replace(verdict, why=f"differs otherwise than stated (derived minus measured): {'; '.join(told)}")


def containers(entry: KnownInexact, measured: Mapping[str, int]) -> dict[str, int]:
    """What is stated of modules, and follows for those around them that were measured; without those that even out."""
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
