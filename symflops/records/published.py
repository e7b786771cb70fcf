"""Configs and batches of published models, as ``symflops verify --save`` wrote them down beside the specs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from symflops.catalog.library import SpecFile
from symflops.diagnostics.findings import SymflopsError

FILE = "published.json"


@dataclass(frozen=True, slots=True)
class Published:
    """A model that was measured: its name and class, what its config says of the sizes of its spec, and its batch."""

    name: str
    reference: str
    config: Mapping[str, Any]
    batch: Mapping[str, Any]


def published(file: SpecFile) -> tuple[Published, ...]:
    """The measured models of one spec, published sizes first; nothing where ``published.json`` does not mention it.

    Raises:
        SymflopsError: the file is damaged.
    """
    path = file.root / FILE
    return _parsed(path, path.read_bytes()).get(file.name, ()) if path.is_file() else ()


@lru_cache(maxsize=4)
def _parsed(path: Path, text: bytes) -> Mapping[str, tuple[Published, ...]]:
    try:
        specs = json.loads(text)["specs"]
        return {name: tuple(Published(**item) for item in items) for name, items in specs.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SymflopsError(f"{path}: not what 'symflops verify --save' writes ({error})") from None
