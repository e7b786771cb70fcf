"""What to tell somebody whose model no spec describes: the nearest specs by structure, and the commands that help."""

from __future__ import annotations

from symflops.diagnostics.errors import did_you_mean
from symflops.runtime.classes import class_name, listed
from symflops.runtime.unread import EVERYWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Specs = Mapping[str, Mapping[str, Any]]

SIMILAR = 0.4
"""The share of common fields from which two models are called similar."""
WAY = "'symflops list' shows every class, 'symflops draft' writes a spec from a class"


def unknown_model(field: str, word: str, config: Mapping[str, Any], specs: Specs) -> str:
    """The message that no spec describes the class or model type ``word``, which a ``field`` of the config names."""
    kind = config.get("model_type")
    same = [class_name(name) for entry in specs.values() if kind in entry["model_types"] for name in entry["references"]]
    known = {class_name(reference): name for name, entry in specs.items() for reference in entry["references"]}
    alike = similar(config, specs)
    near = did_you_mean(word, [*known, *specs])
    if same:
        near = f"of this model type there is {listed(same)}"
    elif word in specs:
        near = f"the spec '{word}' is of {listed([class_name(name) for name in specs[word]['references']])}"
    elif alike:
        near = f"a config like this one has {', '.join(alike)}"
    return f"no spec describes {word} ({field}); {near + '; ' if near else ''}{WAY}"


def similar(config: Mapping[str, Any], specs: Specs, most: int = 3) -> list[str]:
    """The specs that read most of the fields of a config and few others, the nearest first."""
    every = {key for entry in specs.values() for key in entry.get("keys", ())}
    given = (set(config) & every) - EVERYWHERE
    scores = {}
    for name, entry in specs.items():
        keys = set(entry.get("keys", ())) - EVERYWHERE
        scores[name] = len(given & keys) / len(given | keys) if given | keys else 0.0
    order = sorted(scores, key=lambda name: (-scores[name], name))
    return [name for name in order[:most] if scores[name] >= SIMILAR]
