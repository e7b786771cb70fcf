"""The index of a site: every model with its description, searchable by name, class and family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from symflops.emit.html.document import FAMILIES, Resources, about, escape, family_title, title_of
from symflops.emit.rendering import template

COLUMNS = (
    ("Model", "text"), ("Family", "text"), ("Parameters", "number"), ("FLOPs of a step", "number"),
    ("FLOPs per token", "number"), ("Measured records", "number"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A model of a library: ``parameters`` at its default sizes, and the FLOPs of one step and per token of a typical item.

    ``verified`` is the number of measured cases that it equals.
    """

    name: str
    group: str
    title: str
    references: Sequence[str]
    pipelines: Sequence[str]
    model_types: Sequence[str]
    parameters: int | None
    verified: int
    step: int | None = None
    token: int | None = None

    @property
    def shown(self) -> dict[str, Any]:
        """The texts of the list, and the words for the search."""
        short = title_of(self.title, self.name)
        family = family_title(self.group)
        words = [self.name, self.title, self.group, family, *self.references, *self.pipelines, *self.model_types]
        return {
            "title": short, "about": about(self.title, short), "group": self.group,
            "reference": (self.references or [self.name])[0],
            "address": f"{self.group or 'models'}/{self.name}.html", "family": family,
            "figures": (self.parameters, self.step, self.token, self.verified or None),
            "words": " ".join(words).lower(),
        }  # fmt: skip


def render(entries: Sequence[Entry], version: str, resources: Resources) -> str:
    """The index of ``entries``."""
    counts = Counter(entry.group for entry in entries)
    order = [*(group for group in FAMILIES if group in counts), *sorted(counts.keys() - FAMILIES.keys())]
    families = [
        (group, family_title(group), counts[group])
        for group in sorted(order, key=lambda group: (group == "nn", -counts[group]))
    ]
    shown = sorted((entry.shown for entry in entries), key=lambda entry: (entry["group"] == "nn", entry["title"].lower()))
    return template("html/index.html.jinja").render(
        version=version, resources=resources, home="", text=escape, models=shown, families=families, columns=COLUMNS,
        description="Parameters and FLOPs of neural networks in closed form, with exact calculators.",
    )  # fmt: skip
