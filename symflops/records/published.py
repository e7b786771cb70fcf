"""Configs and batches of published models, from the ``published.json`` that ``symflops verify --save`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from symflops.catalog.library import SpecFile
from symflops.diagnostics.findings import SymflopsError
from symflops.system.reading import parse_json, read_text

FILE = "published.json"


@dataclass(frozen=True, slots=True)
class Published:
    """A measured model: its name and class, the part of its config that the spec reads, and its batch."""

    name: str
    reference: str
    config: Mapping[str, Any]
    batch: Mapping[str, Any]


def published(file: SpecFile) -> tuple[Published, ...]:
    """The measured models of one spec, published sizes first; none if ``published.json`` does not mention it.

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
