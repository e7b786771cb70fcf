"""The version of a framework whose figures a convention reproduces."""

from __future__ import annotations

from dataclasses import dataclass

COMMIT = 40
SHORT = 12
"""Digits of a full commit hash, and of the short form in texts."""


@dataclass(frozen=True, slots=True)
class Reproduced:
    """The reproduced framework: name, ``version`` (release or commit), ``date``, and later changes."""

    of: str
    version: str
    date: str
    changed: str = ""

    @property
    def at(self) -> str:
        """Framework and version as text, e.g. ``X at commit 0123456789ab``."""
        return f"{self.of} {f'at commit {self.version[:SHORT]}' if len(self.version) == COMMIT else self.version}"

    @property
    def sentence(self) -> str:
        """Framework, version, date and later changes as a phrase."""
        return f"{self.at} of {self.date}{f'; since then: {self.changed}' if self.changed else ''}"
