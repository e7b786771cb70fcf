"""Codes of findings with their meanings, read from ``codes.md`` in this folder."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

PAGE = Path(__file__).with_name("codes.md")


@lru_cache(maxsize=1)
def kinds() -> dict[str, str]:
    """Code of each kind of finding -> its explanation in the documentation, on one line."""
    _, *sections = PAGE.read_text("utf-8").split("\n## ")
    parts = (section.partition("\n") for section in sections)
    return {code.strip(): " ".join(text.split()) for code, _, text in parts}
