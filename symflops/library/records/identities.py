"""Comparisons of specs with the closed forms of their classes, as ``symflops verify --symbolic --save`` writes them.

``identities.json`` beside the specs maps a spec to a list of objects, one for each case that was compared:

- ``reference``, ``case``: the class that was traced, and the case whose config it was traced with
- ``grade``: ``identity``, ``in part``, ``differs`` or ``not traced``; ``why`` it is no identity
- ``symbols``: fields of the config and lengths of the inputs that were symbols
- ``held``: letter of the spec -> value, of the sizes that were no symbols: the identity says nothing about others
- ``where``: conditions on fields and lengths, in Python's syntax
- ``points``: random sizes at which figures were compared in place of expressions; 0 if expressions were
- ``spec``: digest of the spec's own file, without its blocks, whose figures records and ``generated/`` hold
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from symflops.ir.spec import Spec
from symflops.ir.verification import ProvenForms
from symflops.library.records.census import spec_digest
from symflops.read.spec_files import SpecFile
from symflops.support.files import write
from symflops.support.reading import read_own

IDENTITIES, IDENTITY = "identities.json", "identity"
ENTRY = {
    **dict.fromkeys(("reference", "case", "grade", "why", "spec"), str),
    "symbols": [str],
    "held": dict,
    "where": [str],
    "points": int,
}
FORM = {"specs": {...: [ENTRY]}}


def all_comparisons(root: Path) -> dict[str, list[dict[str, Any]]]:
    """Map each spec of a library to its comparisons; empty if the file is missing or damaged."""
    return dict(read_own(root / IDENTITIES, FORM).get("specs", {}))


def identities(file: SpecFile, spec: Spec) -> list[dict[str, Any]]:
    """The identities of a spec that has not changed since they were found."""
    known = list(filter(is_identity, all_comparisons(file.root).get(file.name, [])))
    now = spec_digest(spec, alone=True) if known else ""
    return [one for one in known if one["spec"] == now]


def is_identity(one: Mapping[str, Any]) -> bool:
    """Whether a comparison found no difference for all sizes in its domain."""
    return bool(one["grade"] == IDENTITY)


def proven_forms(one: Mapping[str, Any]) -> ProvenForms:
    """The identity in the form in which a page tells it."""
    return ProvenForms(tuple(one["symbols"]), tuple(one["where"]), one["points"])


def stale_comparisons(file: SpecFile, spec: Spec) -> Iterator[str]:
    """Yield the reason why comparisons of a spec with the forms of its classes are outdated."""
    known = all_comparisons(file.root).get(file.name, [])
    if known and any(one["spec"] != spec_digest(spec, alone=True) for one in known):
        yield f"the spec of '{spec.name}' has changed since it was compared for all sizes ('symflops verify --symbolic')"


def save_identities(path: Path, found: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Write comparisons to a file, in place of earlier ones of the same specs."""
    known = dict(read_own(path, FORM).get("specs", {}))
    known |= {name: [dict(one) for one in some] for name, some in found.items()}
    write(path, json.dumps({"schema": 1, "specs": known}, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
