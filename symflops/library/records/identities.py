"""Identities of specs with their classes, for all sizes, as ``symflops verify --symbolic --save`` writes them.

``identities.json`` beside the specs maps a spec to its identities, a list of objects:

- ``reference``, ``case``: the class that was traced, and the case whose config it was traced with
- ``symbols``: fields of the config and lengths of the inputs that were symbols
- ``held``: letter of the spec -> value, of the sizes that were no symbols: the identity says nothing about others
- ``where``: conditions on fields and lengths, in Python's syntax
- ``points``: random sizes at which figures were compared in place of expressions; 0 if expressions were
- ``spec``: digest of the spec that was compared
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from symflops.ir.spec import Spec
from symflops.library.records.census import spec_digest
from symflops.read.spec_files import SpecFile
from symflops.support.files import write
from symflops.support.reading import read_own

IDENTITIES = "identities.json"
ENTRY = {
    "reference": str, "case": str, "symbols": [str], "held": dict, "where": [str], "points": int, "spec": str,
}  # fmt: skip
FORM = {"specs": {...: [ENTRY]}}


def all_identities(root: Path) -> dict[str, list[dict[str, Any]]]:
    """Map each spec of a library to its identities; empty if the file is missing or damaged."""
    return dict(read_own(root / IDENTITIES, FORM).get("specs", {}))


def identities(file: SpecFile, spec: Spec) -> list[dict[str, Any]]:
    """The identities of a spec that has not changed since they were found."""
    known = all_identities(file.root).get(file.name, [])
    now = spec_digest(spec) if known else ""
    return [one for one in known if one["spec"] == now]


def stale_identities(file: SpecFile, spec: Spec) -> list[str]:
    """Name the classes whose identity was found with another text of the spec."""
    current = identities(file, spec)
    return [one["reference"] for one in all_identities(file.root).get(file.name, []) if one not in current]


def save_identities(path: Path, found: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Write the identities of specs to a file, in place of earlier ones of the same specs; an empty list removes a spec."""
    known = dict(read_own(path, FORM).get("specs", {}))
    known |= {name: [dict(one) for one in some] for name, some in found.items()}
    specs = {name: some for name, some in sorted(known.items()) if some}
    write(path, json.dumps({"schema": 1, "specs": specs}, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
