"""Takes the census of a spec: surveys each of its classes, and sums up."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symflops.api import Model
from symflops.library.records.census import SCHEMA, spec_digest
from symflops.support.files import digest
from symflops.verify.cases import LiveCase, cases_of
from symflops.verify.census.summary import VERDICTS, summary
from symflops.verify.census.survey import EXACT, NONE, REFUSED, UNRUN, WRONG, Row, Survey
from symflops.verify.classes import class_of
from symflops.verify.live import reference_of

COMPARED = (EXACT, NONE, WRONG)


@dataclass(frozen=True, slots=True)
class Taken:
    """Census of one class: the survey, all its variations, and the number of cases."""

    survey: Survey
    rows: Sequence[Row]
    cases: int

    def __str__(self) -> str:
        counts = Counter(row.verdict for row in self.rows)
        found = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
        return f"{self.survey.reference}: {found or 'nothing'}, from {len(self.survey.bases)} of {self.cases} cases"


def census_by_class(model: Model, seed: int) -> dict[str, Taken]:
    """Take the census of the classes of a spec: ``package.Class`` -> census.

    The classes are those of the spec's live cases. Of classes with the same config class, only the first is in the result.

    Raises:
        SymflopsError: a library is missing, or a class does not exist.
    """
    by_class: dict[str, list[LiveCase]] = {}
    for case in cases_of(model.file):
        by_class.setdefault(reference_of(model, case), []).append(case)
    found = {}
    with quiet():
        for reference in of_each_config(by_class, model.file.path.parent):
            survey = Survey(model, reference, by_class[reference], seed)
            found[reference] = Taken(survey, list(survey.rows()), len(by_class[reference]))
    return found


def document_of(model: Model, found: Mapping[str, Taken]) -> dict[str, Any]:
    """Build the content of a spec's census file from the census of each class."""
    classes = {reference: summary(one.survey, one.rows) for reference, one in found.items()}
    return {"schema": SCHEMA, "spec": spec_digest(model.spec), "classes": classes}


def of_each_config(references: Iterable[str], folder: Path) -> list[str]:
    """List the first of the classes ``references`` for each config class: the others have the same fields."""
    first: dict[Any, str] = {}
    for reference in references:
        kind = class_of(reference, folder)
        first.setdefault(getattr(kind, "config_class", None) or kind, reference)
    return list(first.values())


def recorded(model: Model, found: Mapping[str, Taken], seed: int) -> dict[str, Any]:
    """Convert variations and the real class's figures to JSON data, for tests without the library.

    ``classes`` maps each class to ``bases`` (number of the base -> config) and ``rows``, as :func:`of_row` converts them.
    """
    classes = {}
    for reference, one in found.items():
        bases = {base.number: saved(base.seen.config) for base in one.survey.bases}
        own = {base.number: base.seen.parameters for base in one.survey.bases}
        kept = (
            row for row in one.rows if row.verdict in COMPARED or (is_answerable(row) and row.is_informative(own[row.base]))
        )
        classes[reference] = {"bases": bases, "rows": [of_row(row, bases[row.base]) for row in kept]}
    return {"spec": model.spec.name, "seed": seed, "classes": classes}


def is_answerable(row: Row) -> bool:
    """Whether the spec refuses a variation, or all that is wrong with it is that the class does not run."""
    return row.verdict == REFUSED or (row.verdict == UNRUN and not row.why)


def of_row(row: Row, base: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a variation to JSON data; of its complete config, only fields that differ from ``base`` are kept.

    ``set`` maps the changed fields to their values; ``effect`` is whether the change has an effect; ``passes`` and
    ``parameters`` are the FLOPs and elements of the real class.
    """
    config = saved(row.config)
    return {
        "base": row.base, "set": saved(row.changes), "effect": row.verdict != NONE, **({"edge": True} if row.edge else {}),
        "config": {name: value for name, value in config.items() if name not in base or base[name] != value},
        "batch": saved(row.batch), "passes": row.passes, "shapes": shapes_digest(row.parameters.values()),
        "parameters": sum(map(math.prod, row.parameters.values())),
    }  # fmt: skip


def saved(config: Mapping[str, Any]) -> Any:
    """Convert a config to plain JSON data."""
    return json.loads(json.dumps(config, default=str))


def shapes_digest(shapes: Iterable[Sequence[int]]) -> str:
    """A hash of the shapes of parameters that does not depend on their order."""
    return digest(json.dumps(sorted(map(list, shapes))))[:16]


def text_of(document: Mapping[str, Any]) -> str:
    """Format a census file with a line per entry, for readable diffs."""
    lines = [f'{{"schema": {document["schema"]}, "spec": "{document["spec"]}", "classes": {{']
    for place, (reference, entry) in enumerate(document["classes"].items()):
        lines.append(f" {json.dumps(reference)}: {{")
        parts = []
        for name, value in entry.items():
            if isinstance(value, dict) and name in ("guarded", "words", "unrun", "made_from") and value:
                inner = ",\n".join(f"   {json.dumps(key)}: {json.dumps(item)}" for key, item in value.items())
                parts.append(f"  {json.dumps(name)}: {{\n{inner}\n  }}")
            else:
                parts.append(f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
        lines.append(",\n".join(parts))
        lines.append(" }" + ("," if place < len(document["classes"]) - 1 else ""))
    return "\n".join([*lines, "}}"]) + "\n"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence logging, warnings and standard output of libraries inside the context."""
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    with warnings.catch_warnings(), open(os.devnull, "w") as null, contextlib.redirect_stdout(null):  # noqa: PTH123
        warnings.simplefilter("ignore")
        yield
    logging.disable(level)
