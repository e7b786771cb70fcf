"""The version of a framework whose figures a convention reproduces."""

from __future__ import annotations

from dataclasses import dataclass

COMMIT = 40
SHORT = 12
"""Digits of a full commit hash, and of the short form in texts."""


@dataclass(frozen=True, slots=True)
class Reproduced:
    """The version of a framework whose figures a convention reproduces.

    Attributes:
        of: The framework.
        version: Its release, or the full hash of a commit.
        date: The date of that version.
        changed: What the framework counts otherwise since then; empty if nothing.
    """

    of: str
    version: str
    date: str
    changed: str = ""

    @property
    def at(self) -> str:
        """Framework and version as text, such as ``X at commit 0123456789ab`` or ``X 1.2``."""
        return f"{self.of} {f'at commit {self.version[:SHORT]}' if len(self.version) == COMMIT else self.version}"

    @property
    def sentence(self) -> str:
        """Framework, version, date and later changes as the end of a sentence."""
        return f"{self.at} of {self.date}{f'; since then: {self.changed}' if self.changed else ''}"
