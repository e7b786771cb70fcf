"""Verdicts on measured records, compared with the list of records known to be inexact.

The user's cache keeps them until the package, the spec or a record changes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from symflops.api import Model, load
from symflops.ir.verification import KnownInexact
from symflops.library.cache import keep, kept, place
from symflops.read.spec_files import SpecFile
from symflops.support.files import digest
from symflops.verify.records import Record, Verdict, expected_of, verify_record

PASSES = ("forward", "backward")


def judged(verdict: Verdict, record: Record, known: Mapping[str, KnownInexact]) -> Verdict:
    """Adjust the verdict on a record that is in the list of known inexact ones (``known``, by name).

    The status becomes ``inexact`` if the record differs exactly as listed, and ``stale`` if it is exact. If it differs in
    another way, the status stays, and ``why`` describes how.
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
    """Add up an entry's FLOP differences by module: each module includes the modules inside it.

    Modules are left out if they are neither ``measured`` nor listed in the entry, or if their sum is 0.
    """
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


class VerifiedSpec:
    """A spec with the cached verdicts of earlier runs on its records; it is loaded only if needed."""

    def __init__(self, file: SpecFile, cold: bool = False) -> None:
        self.file = file
        known = None if cold else self._known()
        self.names: list[str] | None = known["references"] if known else None
        self.verdicts: dict[str, dict[str, Any]] = known["verdicts"] if known else {}
        self.fresh = False

    def _known(self) -> dict[str, Any] | None:
        try:
            found = kept(self._path)
        except OSError:
            return None
        if found is None or found[0].get("facts") != self.file.facts() or not self.file.has(found[0].get("sources", {})):
            return None
        known: dict[str, Any] = json.loads(found[1])
        return known

    @property
    def _path(self) -> Any:
        return place("verdicts") / f"{digest(str(self.file.path))[:16]}.json"

    @cached_property
    def model(self) -> Model:
        """The loaded spec."""
        return load(self.file)

    @property
    def references(self) -> Sequence[str]:
        """The names of the real classes that the spec describes, from the cache if possible."""
        return self.model.spec.references if self.names is None else self.names

    def verdict(self, record: Record) -> Verdict:
        """Return the cached verdict on a record, or derive the record now."""
        key = digest(json.dumps(record, sort_keys=True))
        if key not in self.verdicts:
            self.verdicts[key] = asdict(verify_record(self.model, record))
            self.fresh = True
        return Verdict(**self.verdicts[key])

    def keep(self) -> None:
        """Write new verdicts to the cache, if it is writable."""
        if not self.fresh:
            return
        sources = {source.path: digest(source.text) for source in self.model.spec.sources}
        text = json.dumps({"references": list(self.references), "verdicts": self.verdicts})
        with suppress(OSError):
            keep(self._path, text, sources=sources, facts=self.file.facts())


def verify_records(records: Sequence[Record], specs: Mapping[str, VerifiedSpec]) -> Iterator[Verdict]:
    """Yield the verdict on each record; ``specs`` maps names of real classes to specs."""
    for record in records:
        spec = specs.get(record["class"])
        if spec is None:
            expected = expected_of(record)
            yield Verdict(record["id"], "no-spec", expected=expected, derived=dict.fromkeys(expected), why="no spec")
        else:
            yield spec.verdict(record)
