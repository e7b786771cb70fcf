"""Changes several fields together that were exact alone, because their effects may interact."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from symflops.draft.prove.census import Entry, keep, outside
from symflops.draft.prove.prove import TOGETHER, Proof
from symflops.draft.prove.vary_fields import FieldSurvey, with_values
from symflops.evaluate.classes import kind_of
from symflops.verify.census.fields import value_at
from symflops.verify.census.survey import EXACT, NONE, REFUSED, WRONG, plain_lists
from symflops.verify.census.variations import Changes

WANTED, DRAWS = 12, 48
SWITCHES, NUMBERS = 0.5, 0.25  # shares of the fields that change
FIRST = 0.7


def known_values(survey: FieldSurvey) -> dict[str, list[Any]]:
    """Field -> other values of it, changed alone, at which the draft was exact.

    A switch or word with a value at which the draft was wrong is left out.
    """
    found: dict[str, list[Any]] = {}
    for row in survey.rows:
        if row.verdict in (EXACT, NONE) and len(row.changes) == 1 and not row.base:
            found.setdefault(row.path, []).append(row.changes[row.path])
    wrong = {row.path for row in survey.rows if row.verdict == WRONG}
    return {path: values for path, values in found.items() if path not in wrong or kind_of(values[0]) == "number"}


def joint_proofs(survey: FieldSurvey, entry: Entry, random: Random) -> list[Proof]:
    """Change several fields at once, and return the proof of a change at which the draft is wrong, if any.

    If a switch or word takes part in such a change, ``entry`` is restricted to its given value instead.

    Args:
        survey: The verdicts on fields changed alone.
        entry: The census of the fields, changed in place.
        random: The source of random numbers.
    """
    values, proofs, compared = known_values(survey), [], 0
    for number in range(DRAWS if len(values) > 1 else 0):
        if survey.late() or compared >= WANTED:
            break
        changes = drawn(values, random) if number else {path: found[0] for path, found in values.items() if is_switch(found[0])}
        if any(outside(entry, with_values(survey.config, changes, survey.config, {}))):
            continue
        verdict, why = verdict_on(survey, changes)
        compared += verdict in (EXACT, NONE, WRONG)
        if verdict != WRONG:
            continue
        few = fewest(survey, changes)
        switches = [path for path in few if not (kind_of(few[path]) == "number" and path in entry["described"])]
        if len(few) > 1 and switches:
            for path in switches[-1:]:
                keep(entry, path, [plain_lists(value_at(survey.config, path))])
                values.pop(path)
            continue
        label = ", ".join(f"{path}={value!r}" for path, value in few.items())
        proofs.append(Proof(label, 1, [why], TOGETHER, survey.study.name))
        break
    return proofs


def drawn(values: Mapping[str, list[Any]], random: Random) -> dict[str, Any]:
    """Random changes: some of the fields of ``values``, each with one of its values, usually the first."""
    chosen = {path: found[0] if random.random() < FIRST else random.choice(found) for path, found in values.items()}
    return {path: value for path, value in chosen.items() if random.random() < (SWITCHES if is_switch(value) else NUMBERS)}


def is_switch(value: Any) -> bool:
    """Whether a value is a switch or a word, not a number."""
    return kind_of(value) != "number"


def verdict_on(survey: FieldSurvey, changes: Changes) -> tuple[str, str]:
    """(Verdict, first difference or empty text) on the draft at a config with ``changes`` (field -> value)."""
    if not changes:
        return REFUSED, ""
    row = survey.verdict(next(iter(changes)), changes, survey.changed(changes))
    return row.verdict, row.why


def fewest(survey: FieldSurvey, changes: Changes) -> Mapping[str, Any]:
    """Minimal subset of ``changes`` (field -> value) at which the draft is still wrong."""
    found = dict(changes)
    for path in changes:
        fewer = {name: value for name, value in found.items() if name != path}
        if verdict_on(survey, fewer)[0] == WRONG:
            found = fewer
    return found
