"""Reads the census of a spec's classes from the file that ``symflops census`` writes next to the spec."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from symflops.evaluate.classes import class_name
from symflops.ir.spec import Spec
from symflops.read.spec_files import SpecFile
from symflops.read.yaml_nodes import python_value, read_yaml
from symflops.support.files import digest
from symflops.support.findings import Reporter, Source, SymflopsError
from symflops.support.reading import parse_json, read_bytes, read_text

SCHEMA, MISSING = 1, "has no census"
WORD = re.compile(r"[A-Za-z_]\w*")
NAMING = ("title", "doc", "latex", "role", "pipelines", "variants", "model_type", "reference", "name")
PROSE = (*NAMING, "baseline", "expected", "expect")
STORED = ("described", "free", "guarded", "words", "unrun", "left_out")
"""The fields of a class's census that a stored program contains."""


def census_path(spec: Path) -> Path:
    """The path of a spec's census file."""
    return spec.with_name(f"{spec.stem}.census.json")


def census_of(file: SpecFile) -> Mapping[str, Any]:
    """Read the census of a spec: class reference -> census of the class; empty if the spec has none.

    Raises:
        SymflopsError: the file is damaged.
    """
    path = census_path(file.path)
    return _parsed(path, read_text(path))["classes"] if path.is_file() else {}


def stored_fields(file: SpecFile) -> dict[str, Any] | None:
    """Map each class of a spec to the fields ``STORED`` of its census, for a stored program; None without a census."""
    census = census_of(file)
    return {
        class_name(reference): {name: entry[name] for name in STORED if entry.get(name)} for reference, entry in census.items()
    } or None


@lru_cache(maxsize=256)
def _parsed(path: Path, text: str) -> Mapping[str, Any]:
    try:
        found = parse_json(text, str(path))
        if found["schema"] == SCHEMA and isinstance(found["classes"], dict):
            return dict(found)
    except (SymflopsError, LookupError, TypeError):
        pass
    raise SymflopsError(f"{path} is damaged: run 'symflops census {path.name.partition('.')[0]}'")


def spec_digest(spec: Spec, alone: bool = False) -> str:
    """Digest of a spec, its blocks and its bases, ignoring prose, comments and conditions on lengths.

    ``alone`` leaves blocks and bases out.
    """
    lengths = {name.text for stream in spec.streams for part in stream.parts for name, _ in part.axes}
    said = [
        _said(python_value(read_yaml(source), Reporter())) for source in _sorted(spec.sources[:1] if alone else spec.sources)
    ]
    for document in said:
        if isinstance(document, dict) and "requires" in document:
            conditions = document.pop("requires").items()
            kept = {name: text for name, text in conditions if lengths.isdisjoint(WORD.findall(str(text)))}
            document |= {"requires": kept} if any(kept.values()) else {}
    return digest(json.dumps(said, sort_keys=True, default=str))


def _sorted(sources: tuple[Source, ...]) -> list[Source]:
    return sorted({source.path: source for source in sources}.values(), key=lambda source: source.path)


def _said(value: Any) -> Any:
    """Copy of a value without prose fields."""
    if isinstance(value, dict):
        return {str(name): _said(item) for name, item in value.items() if name not in PROSE}
    return [_said(item) for item in value] if isinstance(value, list) else value


def stale(file: SpecFile, spec: Spec) -> Iterator[str]:
    """Yield reasons why the census of a spec is outdated; builds no model and imports no library."""
    path = census_path(file.path)
    if not path.is_file():
        if spec.references:
            yield f"'{spec.name}' {MISSING}"
        return
    found = _parsed(path, read_text(path))
    if found.get("spec") != spec_digest(spec):
        yield f"the spec of '{spec.name}' has changed since its census"
    for reference, entry in found["classes"].items():
        for name, known in entry["made_from"].items():
            now = version_of(name) if name.startswith("version ") else source_digest(name)
            if now and now != known:
                changed = f"{name.removeprefix('version ')} has changed since the census of {reference}"
                yield f"{changed} ({known[:8]}, now {now[:8]})"


def version_of(name: str) -> str:
    """The version of an installed package; empty if it is not installed."""
    try:
        return importlib.metadata.version(name.removeprefix("version "))
    except importlib.metadata.PackageNotFoundError:
        return ""


def source_digest(name: str) -> str:
    """The digest of an installed file ``package/folder/file.py``; empty if it is not installed."""
    package, _, inner = name.partition("/")
    found = importlib.util.find_spec(package)
    folder = Path(found.origin).parent if found is not None and found.origin else None
    path = folder / inner if folder is not None else None
    return digest(read_bytes(path)) if path is not None and path.is_file() else ""
