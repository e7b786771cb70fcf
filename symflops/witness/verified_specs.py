"""Verdicts on measured records by spec, kept in the user's cache until the package, the spec or a record changes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

from symflops.api import Model, load
from symflops.catalog.cache import keep, kept, place
from symflops.catalog.library import SpecFile
from symflops.system.digests import digest
from symflops.witness.records import Record, Verdict, expected_of, verify_record


class VerifiedSpec:
    """A spec, the classes that it names, and what earlier runs found of its records; it is only read where a run must."""

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
        """The spec as it is loaded."""
        return load(self.file)

    @property
    def references(self) -> Sequence[str]:
        """The classes that it names."""
        return self.model.spec.references if self.names is None else self.names

    def verdict(self, record: Record) -> Verdict:
        """What an earlier run found of a record, else what is found now."""
        key = digest(json.dumps(record, sort_keys=True))
        if key not in self.verdicts:
            self.verdicts[key] = asdict(verify_record(self.model, record))
            self.fresh = True
        return Verdict(**self.verdicts[key])

    def keep(self) -> None:
        """Keep what this run found, where the cache can be written."""
        if not self.fresh:
            return
        sources = {source.path: digest(source.text) for source in self.model.spec.sources}
        text = json.dumps({"references": list(self.references), "verdicts": self.verdicts})
        try:
            keep(self._path, text, sources=sources, facts=self.file.facts())
        except OSError:
            return


def verify_records(records: Sequence[Record], specs: Mapping[str, VerifiedSpec]) -> Iterator[Verdict]:
    """The verdict on each record; ``specs`` maps class names to specs."""
    for record in records:
        spec = specs.get(record["class"])
        if spec is None:
            expected = expected_of(record)
            yield Verdict(record["id"], "no-spec", expected=expected, derived=dict.fromkeys(expected), why="no spec")
        else:
            yield spec.verdict(record)
