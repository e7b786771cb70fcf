"""The summary of a library: a Markdown table of all measured records, the derived figures, and the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symflops.emit.markdown.document import code, escape
from symflops.emit.rendering import template
from symflops.model.verification import Verification


@dataclass(frozen=True, slots=True)
class Family:
    """The specs of one folder: name -> comparison with measured records; ``unmeasured`` are specs without records."""

    name: str
    specs: Mapping[str, Sequence[Verification]]
    unmeasured: Sequence[str]

    @property
    def folder(self) -> str:
        """The folder of their pages, as the start of a link."""
        return f"{self.name}/" if self.name else ""

    @property
    def exact(self) -> int:
        """The number of exact records."""
        return sum(len(found.cases) for verified in self.specs.values() for found in verified)

    @property
    def inexact(self) -> int:
        """The number of records that are known to differ."""
        return sum(len(found.inexact) for verified in self.specs.values() for found in verified)


def render(families: Sequence[Family], version: str) -> str:
    """The summary of all families."""
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
