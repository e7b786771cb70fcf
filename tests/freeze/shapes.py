"""The structure of JSON: every path of keys with the types that stand there; entries of a list are one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

OPEN = re.compile(r"(?:^|\.)(?:batch|moments|specs|streams|structures(?:\.\*)?|terms)$")  # tables whose keys are data, not words of the contract


def shape(value: Any) -> dict[str, str]:
    """Path to types, such as ``regimes[].forward`` to ``int``; ``*`` is any key of a table of data."""
    found: dict[str, set[str]] = {}
    for path, kind in walked("", value):
        found.setdefault(path or ".", set()).add(kind)
    return {path: "|".join(sorted(kinds)) for path, kinds in sorted(found.items())}


def walked(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Each path below a value with the type that it has there."""
    yield path, {"NoneType": "null"}.get(type(value).__name__, type(value).__name__)
    if isinstance(value, list):
        for entry in value:
            yield from walked(f"{path}[]", entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from walked(f"{path}.{'*' if OPEN.search(path) else key}".lstrip("."), entry)
