"""The summary of a library: a Markdown table of every measured record, what is derived for it, and how much that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symflops.emit.markdown.document import code, escape
from symflops.emit.rendering import template
from symflops.model.verification import Verification


@dataclass(frozen=True, slots=True)
class Family:
    """The specs of one folder: name -> what the records of its classes say; ``unmeasured`` are those without records."""

    name: str
    specs: Mapping[str, Sequence[Verification]]
    unmeasured: Sequence[str]

    @property
    def folder(self) -> str:
        """Where their pages are, as links start."""
        return f"{self.name}/" if self.name else ""

    @property
    def exact(self) -> int:
        """How many records are exact."""
        return sum(len(found.cases) for verified in self.specs.values() for found in verified)

    @property
    def inexact(self) -> int:
        """How many records are known to differ."""
        return sum(len(found.inexact) for verified in self.specs.values() for found in verified)


def render(families: Sequence[Family], version: str) -> str:
    """The page."""
    return template("verified.md.jinja").render(
        version=version,
        families=families,
        total=sum(family.exact + family.inexact for family in families),
        inexact=sum(family.inexact for family in families),
        code=code,
        text=escape,
        count="{:,}".format,
        signed="{:+,}".format,
    )
