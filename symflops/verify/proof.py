"""Proves an estimate, masks included: a small model of the class, with the config's settings and layers, runs for its masks.

A separate process runs this module (:mod:`symflops.training.introspect.proof`), as it imports the library and runs the class.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from symflops.api import load
from symflops.library.lookup import by_name, interpreted
from symflops.read.spec_files import find_spec
from symflops.support.errors import SymflopsError
from symflops.training.introspect import elsewhere, proof
from symflops.verify.cases import cases_of
from symflops.verify.census.fields import ABOUT_FILES
from symflops.verify.live import masks_of, reference_of
from symflops.verify.pairs import Masks

MOST_LAYERS = 128
"""Longer repeats keep the number of layers of the small model."""


def main() -> None:
    """Compare the class that standard input names, and print the differences as JSON."""
    elsewhere.main(compared)


def compared(name: str, reference: str, config: dict[str, Any]) -> dict[str, Any]:
    """Compare the real class with a spec: parameters as :func:`proof.compared`, with ``masks`` as text."""
    found = proof.compared(name, reference, config)
    masks = masks_beside(name, reference, config)
    more = [str(masks)] if masks and masks.modules else []
    return {**found, "differences": [*found["differences"], *more], "masks": str(masks or "")}


def masks_beside(name: str, reference: str, config: Mapping[str, Any]) -> Masks | None:
    """Compare the masks of a small model of the class with its spec's; None if neither has attention."""
    try:
        model = load(find_spec(name))
        cases = cases_of(model.file)
        case = next((case for case in cases if reference_of(model, case) == reference), None) or next(iter(cases), None)
        fields = interpreted(by_name(name), name, config, tell=lambda text: None).stored.document["fields"]
    except SymflopsError as error:
        return Masks(unseen=str(error))
    if case is None:
        return Masks(unseen=f"'{name}' has no small config to run")
    layers = {key for row in fields if row["kind"] == "count" for key in row["keys"]}
    return masks_of(model, replace(case, reference=reference, config=like(case.config, config, layers)))


def like(small: Mapping[str, Any], config: Mapping[str, Any], layers: Collection[str], place: str = "") -> dict[str, Any]:
    """Return the config ``small`` with the values of ``config``, except for most numbers.

    The model stays small: only numbers under the keys ``layers`` are taken over. ``place`` is the path of a nested config, with
    a dot at its end.
    """
    found = dict(small)
    for key, value in config.items():
        inner = small.get(key)
        if isinstance(value, Mapping) and isinstance(inner, Mapping):
            found[key] = like(inner, value, layers, f"{place}{key}.")
        elif not isinstance(value, Mapping) and key[:1] != "_" and key not in ABOUT_FILES | set(proof.IMPLEMENTATION):
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or (f"{place}{key}" in layers and value <= MOST_LAYERS):
                found[key] = value
    return found
