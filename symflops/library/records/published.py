"""Reads published models: measured models with their batches, and checkpoints with the source of their configs.

``symflops verify --save`` writes ``published.json``; ``checkpoints.json`` has the config fields that a spec reads, and their
source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from symflops.read.spec_files import SpecFile
from symflops.support.findings import SymflopsError
from symflops.support.reading import parse_json, read_own, read_text

FILE, CHECKPOINTS = "published.json", "checkpoints.json"
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
    path = file.root / FILE
    return _parsed(path, read_text(path)).get(file.name, ()) if path.is_file() else ()


@lru_cache(maxsize=4)
def _parsed(path: Path, text: str) -> Mapping[str, tuple[Published, ...]]:
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
