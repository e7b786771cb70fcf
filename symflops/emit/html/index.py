"""The index of a site: every model with its description, searchable by name, class and family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from symflops.emit.html.document import FAMILIES, Resources, about, escape, family_title, title_of
from symflops.emit.rendering import template


@dataclass(frozen=True, slots=True)
class Entry:
    """A model of a library; ``parameters`` at its default sizes, ``verified`` is the number of measured cases it equals."""

    name: str
    group: str
    title: str
    references: Sequence[str]
    pipelines: Sequence[str]
    model_types: Sequence[str]
    parameters: int | None
    verified: int

    @property
    def shown(self) -> dict[str, str]:
        """The texts of the list, and the words for the search."""
        short = title_of(self.title, self.name)
        family = family_title(self.group)
        words = [self.name, self.title, self.group, family, *self.references, *self.pipelines, *self.model_types]
        figures = [f"{self.parameters:,} parameters"] if self.parameters else []
        figures += [f"{self.verified} verified {'case' if self.verified == 1 else 'cases'}"] if self.verified else []
        return {
            "title": short, "about": about(self.title, short), "group": self.group,
            "reference": (self.references or [self.name])[0],
            "address": f"{self.group or 'models'}/{self.name}.html", "figures": " · ".join(figures),
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
        version=version, resources=resources, home="", text=escape, models=shown, families=families,
        description="Parameters and FLOPs of neural networks in closed form, with exact calculators.",
    )  # fmt: skip
