"""Reads the verifications of specs from the ``verified.json`` that ``symflops verify --save`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from symflops.evaluate.classes import class_name
from symflops.ir.verification import KnownInexact, Verification, VerifiedCase
from symflops.library.records.inexact import FILE as INEXACT, known_inexact
from symflops.library.records.published import published
from symflops.read.spec_files import SpecFile, shipped
from symflops.support.findings import SymflopsError
from symflops.support.reading import parse_json, read_json, read_text

FILE, RULES = "verified.json", "measured.json"


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
    """Summarise the records of a spec.

    ``records`` maps each class to its number of exact records; ``inexact`` is the reason of the first inexact record, if any.

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
    """The verifications of every spec of a library, by spec name; empty without ``verified.json``.

    Raises:
        SymflopsError: ``verified.json`` is damaged, or has an inexact record that ``inexact.yaml`` lacks.
    """
    path = root / FILE
    return _parsed(path, read_text(path), tuple(known_inexact(root).values())) if path.is_file() else {}


@lru_cache(maxsize=4)
def _parsed(path: Path, text: str, known: tuple[KnownInexact, ...]) -> Mapping[str, tuple[Verification, ...]]:
    entries = {entry.id: entry for entry in known}
    try:
        specs = parse_json(text, str(path)).get("specs", {})
        return {name: tuple(_verification(item, entries) for item in items) for name, items in specs.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = f"not what 'symflops verify --save' writes, or of another {INEXACT} ({error})"
        raise SymflopsError(f"{path}: {hint}") from None


def _verification(item: Mapping[str, Any], known: Mapping[str, KnownInexact]) -> Verification:
    cases = tuple(VerifiedCase(**case) for case in item["cases"])
    inexact = []
    for case in item.get("inexact", ()):
        figures = {name: value for name, value in case.items() if name != "id"}
        inexact.append((VerifiedCase(**figures), known[case["id"]]))
    return Verification(item["reference"], item["version"], item["torch"], cases, tuple(inexact))
