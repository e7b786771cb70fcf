"""The version of a framework whose figures a convention reproduces."""

from __future__ import annotations

from dataclasses import dataclass

COMMIT = 40
SHORT = 12
"""The digits of a commit, and those that people read."""


@dataclass(frozen=True, slots=True)
class Reproduced:
    """``of`` is the framework, ``version`` its release or commit of ``date``; ``changed`` says what is different since."""

    of: str
    version: str
    date: str
    changed: str = ""

    @property
    def at(self) -> str:
        """The framework and its version, for people."""
        return f"{self.of} {f'at commit {self.version[:SHORT]}' if len(self.version) == COMMIT else self.version}"

    @property
    def sentence(self) -> str:
        """The framework, its version and date, and what has changed since."""
        return f"{self.at} of {self.date}{f'; since then: {self.changed}' if self.changed else ''}"
