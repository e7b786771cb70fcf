"""The kinds of findings, each with its meaning, read from ``codes.md`` beside this file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

PAGE = Path(__file__).with_name("codes.md")


@lru_cache(maxsize=1)
def kinds() -> dict[str, str]:
    """The meaning of each kind, by its code: one paragraph on one line."""
    _, *sections = PAGE.read_text("utf-8").split("\n## ")
    parts = (section.partition("\n") for section in sections)
    return {code.strip(): " ".join(text.split()) for code, _, text in parts}
