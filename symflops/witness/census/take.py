"""Takes the census of a spec: surveys each of its classes, and sums up."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from symflops.api import Model
from symflops.records.census import SCHEMA, spec_digest
from symflops.system.digests import digest
from symflops.witness.cases import LiveCase, cases_of
from symflops.witness.census.summary import summary
from symflops.witness.census.survey import EXACT, NONE, REFUSED, WRONG, Row, Survey
from symflops.witness.classes import class_of
from symflops.witness.live import reference_of

FIGURES = (EXACT, NONE, REFUSED, WRONG)


def taken(model: Model, seed: int) -> tuple[dict[str, Any], dict[str, list[Row]]]:
    """The census of a spec, and the variations of each of its classes.

    Raises:
        SymflopsError: a library is missing, or a class does not exist.
    """
    by_class: dict[str, list[LiveCase]] = {}
    for case in cases_of(model.file):
        by_class.setdefault(reference_of(model, case), []).append(case)
    by_class = {reference: by_class[reference] for reference in of_each_config(by_class, model.file.path.parent)}
    classes, surveys = {}, {}
    with quiet():
        for reference, cases in by_class.items():
            survey = Survey(model, reference, cases, seed)
            surveys[reference] = list(survey.rows())
            classes[reference] = summary(survey, surveys[reference])
    return {"schema": SCHEMA, "spec": spec_digest(model.spec), "classes": classes}, surveys


def of_each_config(references: Iterable[str], folder: Path) -> list[str]:
    """The first class of each config class: classes that share one have the same fields."""
    first: dict[Any, str] = {}
    for reference in references:
        kind = class_of(reference, folder)
        first.setdefault(getattr(kind, "config_class", None) or kind, reference)
    return list(first.values())


def recorded(model: Model, surveys: Mapping[str, Sequence[Row]], seed: int) -> dict[str, Any]:
    """The variations that the real class accepts, with its figures, so that a test can compare without the library."""
    rows = [
        {
            "class": reference, "set": dict(row.changes), "config": saved(row.config), "batch": row.batch,
            "effect": row.verdict != NONE, "passes": row.passes,
            "parameters": sum(map(product, row.parameters.values())), "names": names_digest(row.parameters),
        }
        for reference, found in surveys.items() for row in found if row.verdict in FIGURES
    ]  # fmt: skip
    return {"spec": model.spec.name, "seed": seed, "rows": rows}


def saved(config: Mapping[str, Any]) -> Any:
    """A config as JSON."""
    return json.loads(json.dumps(config, default=str))


def names_digest(parameters: Mapping[str, Sequence[int]]) -> str:
    """A digest of the names and shapes of parameters."""
    return digest(json.dumps(sorted((name, list(shape)) for name, shape in parameters.items())))[:16]


def product(shape: Sequence[int]) -> int:
    """The elements of a tensor."""
    total = 1
    for size in shape:
        total *= size
    return total


def text_of(document: Mapping[str, Any]) -> str:
    """The text of a census: a line per entry, so that changes read well."""
    lines = [f'{{"schema": {document["schema"]}, "spec": "{document["spec"]}", "classes": {{']
    for place, (reference, entry) in enumerate(document["classes"].items()):
        lines.append(f" {json.dumps(reference)}: {{")
        parts = []
        for name, value in entry.items():
            if isinstance(value, dict) and name in ("guarded", "words", "made_from") and value:
                inner = ",\n".join(f"   {json.dumps(key)}: {json.dumps(item)}" for key, item in value.items())
                parts.append(f"  {json.dumps(name)}: {{\n{inner}\n  }}")
            else:
                parts.append(f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
        lines.append(",\n".join(parts))
        lines.append(" }" + ("," if place < len(document["classes"]) - 1 else ""))
    return "\n".join([*lines, "}}"]) + "\n"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No warnings of libraries about strange configs."""
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    with warnings.catch_warnings(), open(os.devnull, "w") as null, contextlib.redirect_stdout(null):  # noqa: PTH123
        warnings.simplefilter("ignore")
        yield
    logging.disable(level)
