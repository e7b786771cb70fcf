"""Configs of published checkpoints, from ``checkpoints.json`` beside the specs: what a spec reads of each, and its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from symflops.catalog.library import SpecFile
from symflops.system.reading import read_own

FILE = "checkpoints.json"
SHAPE = {"specs": {...: [{"name": str, "config": dict, "source": str, "parameters": int}]}}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A published checkpoint: its name, the part of its config that the spec reads, where that stands, and its parameters."""

    name: str
    config: Mapping[str, Any]
    source: str
    parameters: int


def checkpoints(file: SpecFile) -> tuple[Checkpoint, ...]:
    """The published checkpoints of one spec; none without a file of them."""
    rows = read_own(file.root / FILE, SHAPE).get("specs", {}).get(file.name, ())
    return tuple(Checkpoint(row["name"], row["config"], row["source"], row["parameters"]) for row in rows)
