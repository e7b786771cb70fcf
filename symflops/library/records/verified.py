"""Reads the records stored with specs: verifications, published models, and records that no derivation can reproduce.

``symflops verify --save`` writes ``verified.json``, and ``published.json``: measured models with their batches.
``checkpoints.json`` has published checkpoints: the config fields that a spec reads, and their source.

``inexact.yaml`` lists measured records that no derivation can reproduce, each with its reason and difference. Valid reasons lie
outside of the spec: work that depends on data missing from the record, or an error of the counter itself. An entry states how
much the derived figures differ from the measured ones, and verification checks that amount.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from symflops.evaluate.classes import class_name
from symflops.ir.verification import KnownInexact, Verification, VerifiedCase
from symflops.read.shapes import Shapes
from symflops.read.spec_files import SpecFile, read_source, shipped
from symflops.read.yaml_nodes import Node, Scalar, read_yaml
from symflops.support.findings import Reporter, Source, SymflopsError
from symflops.support.reading import parse_json, read_json, read_own, read_text

VERIFIED, INEXACT, PUBLISHED, CHECKPOINTS = "verified.json", "inexact.yaml", "published.json", "checkpoints.json"
REPOSITORIES, RULES = "repositories.json", "measured.json"
MOST = 10
"""The largest number of inexact records."""
ENTRY, DIFFERENCES = ("id", "reason", "difference"), ("forward", "backward", "modules")
WHOLE = re.compile(r"[-+]?[0-9]{1,30}")
CHECKPOINT = {"specs": {...: [{"name": str, "config": dict, "source": str, "parameters": int}]}}


@dataclass(frozen=True, slots=True)
class Published:
    """A measured model: its name and class, the part of its config that the spec reads, and its batch."""

    name: str
    reference: str
    config: Mapping[str, Any]
    batch: Mapping[str, Any]


def published(file: SpecFile) -> tuple[Published, ...]:
    """Return the measured models of one spec from ``published.json``; empty without the file.

    Raises:
        SymflopsError: the file is damaged.
    """
    path = file.root / PUBLISHED
    return _published(path, read_text(path)).get(file.name, ()) if path.is_file() else ()


@lru_cache(maxsize=4)
def _published(path: Path, text: str) -> Mapping[str, tuple[Published, ...]]:
    try:
        specs = parse_json(text, str(path))["specs"]
        return {name: tuple(Published(**item) for item in items) for name, items in specs.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SymflopsError(f"{path}: not what 'symflops verify --save' writes ({error})") from None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A published checkpoint: name, config fields that the spec reads, their source, parameter count."""

    name: str
    config: Mapping[str, Any]
    source: str
    parameters: int


def checkpoints(file: SpecFile) -> tuple[Checkpoint, ...]:
    """The published checkpoints of one spec; empty without ``checkpoints.json``."""
    rows = read_own(file.root / CHECKPOINTS, CHECKPOINT).get("specs", {}).get(file.name, ())
    return tuple(Checkpoint(row["name"], row["config"], row["source"], row["parameters"]) for row in rows)


def repositories(file: SpecFile) -> tuple[str, ...]:
    """The repositories of checkpoints that one spec describes; empty without ``repositories.json``."""
    rows = read_own(file.root / REPOSITORIES, {"repositories": {...: {"model": str}}}).get("repositories", {})
    mine = {name: row for name, row in rows.items() if row["model"].partition("/")[0] == file.name}
    return tuple(one for name, row in mine.items() for one in (name, *row.get("also", ())))


def verifications(file: SpecFile) -> tuple[Verification, ...]:
    """The verifications of one spec, one per class, with the configs of published models.

    Raises:
        SymflopsError: as :func:`all_verifications`.
    """
    models = {(model.reference, model.name): model for model in published(file)}

    def recorded(reference: str, case: VerifiedCase) -> VerifiedCase:
        model = models.get((reference, case.name))
        return case if model is None else replace(case, config=model.config, batch=model.batch)

    return tuple(
        replace(
            found,
            cases=tuple(recorded(found.reference, case) for case in found.cases),
            inexact=tuple((recorded(found.reference, case), known) for case, known in found.inexact),
        )
        for found in all_verifications(file.root).get(file.name, ())
    )


def catalogued(file: SpecFile) -> dict[str, Any]:
    """Summarise the records of a spec as a dict.

    ``records`` maps each class to its number of exact records; ``inexact`` is the reason of the first inexact record, and
    missing without one.

    Raises:
        SymflopsError: as :func:`all_verifications`.
    """
    found = all_verifications(file.root).get(file.name, ())
    reasons = [known.reason.partition(";")[0] for one in found for _, known in one.inexact]
    counts = {"records": {class_name(one.reference): len(one.cases) for one in found}}
    return {**counts, "inexact": reasons[0]} if reasons else counts


@cache
def measured_rules() -> Mapping[str, Sequence[str]]:
    """Return rule of a regime -> operator kinds on which it was measured, as ``measured.json`` lists them."""
    path = shipped("specs") / RULES
    found: Mapping[str, Sequence[str]] = read_json(str(path))["rules"] if path.is_file() else {}
    return found


def all_verifications(root: Path) -> Mapping[str, tuple[Verification, ...]]:
    """Map each spec of a library to its verifications, one per class; empty without ``verified.json``.

    Raises:
        SymflopsError: ``verified.json`` is damaged, or has an inexact record that ``inexact.yaml`` lacks.
    """
    path = root / VERIFIED
    return _verified(path, read_text(path), tuple(known_inexact(root).values())) if path.is_file() else {}


@lru_cache(maxsize=4)
def _verified(path: Path, text: str, known: tuple[KnownInexact, ...]) -> Mapping[str, tuple[Verification, ...]]:
    entries = {entry.id: entry for entry in known}
    try:
        specs = parse_json(text, str(path)).get("specs", {})
        return {name: tuple(_verification(item, entries) for item in items) for name, items in specs.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = f"not what 'symflops verify --save' writes, or of another {INEXACT} ({error})"
        raise SymflopsError(f"{path}: {hint}") from None


def _verification(item: Mapping[str, Any], known: Mapping[str, KnownInexact]) -> Verification:
    inexact = tuple(
        (VerifiedCase(**{name: value for name, value in case.items() if name != "id"}), known[case["id"]])
        for case in item.get("inexact", ())
    )
    cases = tuple(VerifiedCase(**case) for case in item["cases"])
    return Verification(item["reference"], item["version"], item["torch"], cases, inexact)


def known_inexact(root: Path) -> Mapping[str, KnownInexact]:
    """Read ``inexact.yaml`` of a library of specs: record id -> entry; empty without the file.

    Raises:
        SpecError: lists every finding: wrong shape, missing field, duplicate entry, more than ten entries.
    """
    path = root / INEXACT
    return _entries_of(read_source(path, f"specs/{INEXACT}")) if path.is_file() else {}


@lru_cache(maxsize=4)
def _entries_of(source: Source) -> Mapping[str, KnownInexact]:
    reader = _Reader(Reporter())
    found = reader.entries(read_yaml(source))
    reader.report.check()
    return found


class _Reader(Shapes):
    """Reads the list of entries, and reports mistakes."""

    def entries(self, document: Node) -> dict[str, KnownInexact]:
        """Read all entries, by id."""
        found: dict[str, KnownInexact] = {}
        items = self.sequence(document, "the file")
        for item in items:
            entry = self.entry(item)
            if entry.id in found:
                self.report.error("twice", f"'{entry.id}' has an entry already", item.span, "one entry for each record")
            found[entry.id] = entry
        if len(items) > MOST:
            hint = "more of them means that a mechanism is missing"
            self.report.error("too-many", f"at most {MOST} records may be inexact, not {len(items)}", items[MOST].span, hint)
        return found

    def entry(self, item: Node) -> KnownInexact:
        """Read one entry; all fields are required."""
        given = self.known(item, ENTRY, "an entry")
        for field in ENTRY:
            if field not in given:
                self.report.error("missing-field", f"an entry needs '{field}'", item.span)
        difference = self.known(given["difference"], DIFFERENCES, "'difference'") if "difference" in given else {}
        modules = self.mapping(difference.get("modules"), "'modules'")
        return KnownInexact(
            self.text(given.get("id"), "'id'"),
            self.prose(given.get("reason"), "'reason'"),
            self.whole(difference, "forward"),
            self.whole(difference, "backward"),
            tuple((key.text, self.whole({key.text: value}, key.text)) for key, value in modules),
        )

    def whole(self, given: Mapping[str, Node], name: str) -> int:
        """Read an integer field; 0 if it is absent or, with a finding, if it is no integer."""
        node = given.get(name)
        if node is None:
            return 0
        if not isinstance(node, Scalar) or not WHOLE.fullmatch(node.text):
            self.report.error("bad-number", f"'{name}' must be a whole number of FLOPs", node.span, "derived minus measured")
            return 0
        return int(node.text)
