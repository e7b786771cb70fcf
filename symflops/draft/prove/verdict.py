"""The verdict on a draft: proves it, takes the census of its fields, and says why it is partial.

The census says for each config field whether it is described by sizes, without effect, or guarded at proven values. Fields
that were exact alone are also changed together, because their effects may interact.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from random import Random
from typing import Any

from symflops.draft.prove.class_forms import forms_of, forms_proofs, settle, settled_fields
from symflops.draft.prove.points import (
    batch_of,
    default_proof,
    default_subject,
    drawn_proofs,
    given_proof,
    published_proof,
    study_of,
    value_proofs,
)
from symflops.draft.prove.prove import TOGETHER, Proof, Prover, first_line, model_of
from symflops.draft.prove.vary_fields import FieldSurvey
from symflops.draft.study import Draft, Study
from symflops.draft.trace.steps import Subject, full_config
from symflops.draft.write.draft_document import Document
from symflops.evaluate.classes import admitted, kind_of, related, texts_in, values_at
from symflops.ir.spec import Spec
from symflops.library.records.census import SCHEMA, spec_digest
from symflops.support.findings import SymflopsError
from symflops.verify.census.fields import value_at
from symflops.verify.census.observation import with_values
from symflops.verify.census.summary import guard, made_from, open_to_words, relation_guard, values_of, values_of_absent_fields
from symflops.verify.census.survey import EXACT, NONE, REFUSED, WRONG, Row
from symflops.verify.census.take import text_of
from symflops.verify.census.variations import Changes
from symflops.verify.classes import plain_lists, referenced
from symflops.verify.limits import attempt

Entry = dict[str, Any]
SHOWN = 6
LARGER = {"larger multiple": "a larger multiple of", "larger": "larger than"}
WORDS = LARGER | {"multiple": "a multiple of", "part": "a part of", "equal": "equal to"}
WANTED, DRAWS = 12, 48
SWITCHES, NUMBERS = 0.5, 0.25  # shares of the fields that change
FIRST = 0.7


def entry_of(surveys: Sequence[FieldSurvey], spec: Spec) -> Entry:
    """Census of the fields of the class's config: which values of each field the draft is right for.

    Returns:
        ``described``: list of fields that the draft reads, or whose every value tried is right or refused. ``free``: list of
        fields that change nothing. ``guarded``: field -> for which values the draft holds: a list ``values``, and perhaps
        ``kinds``, ``lengths``, ``least`` or ``related``. ``words``: field -> list of strings for which it holds.
    """
    found: Entry = {"described": [], "free": [], "guarded": {}, "words": {}}
    read = {key for size in spec.sizes for key in size.keys}
    for path in dict.fromkeys(item.path for survey in surveys for item in survey.fields):
        values = [json.loads(json.dumps(value, default=str)) for survey in surveys for value in values_at(survey.config, path)]
        add_field(found, path, [row for survey in surveys for row in survey.rows], values, path in read, surveys[0].kind)
    return found


def add_field(found: Entry, path: str, every: Sequence[Row], values: Sequence[Any], read: bool, kind: Any) -> None:
    """Add one field to a census, in place.

    Args:
        found: The census.
        path: The field.
        every: The verdicts on other values of all fields.
        values: The values of the field in the configs as given.
        read: Whether a size of the draft is read from the field.
        kind: The class.
    """
    rows = [row for row in every if row.path == path]
    good, bad = values_of(rows, values)
    texts = sorted({word for value in good for word in texts_in(value)})
    strange = bool(set(texts_in(bad)) - set(texts))
    bad = [value for value in bad if not set(texts_in(value)) - set(texts)]  # unknown words are refused anyway
    verdicts = {row.verdict for row in rows}
    if bad or not (read or verdicts & {EXACT, NONE, REFUSED, WRONG}):
        known = relation(path, every, kind)
        if known:  # the relation replaces the list of numbers
            good = [value for value in good if kind_of(value) != "number"]
        own = {len(value) for value in values if isinstance(value, list)}
        items = any(isinstance(value, list) and len(value) in own for value in bad)  # then a length admits no list
        found["guarded"][path] = guard(good, bad, {"lengths": []} if items else None) | known
    else:
        found["described" if read or verdicts & {EXACT, REFUSED, WRONG} else "free"].append(path)
    if (texts or strange) and not open_to_words(rows):
        found["words"][path] = texts


def relation(path: str, every: Sequence[Row], kind: Any) -> Entry:
    """Relation to another field that all right values of a field have, and none of its wrong ones.

    It is ``{"related": [[word, other field]]}`` with a key of ``WORDS``, or empty if there is none: the value of the field is
    a multiple or a part of the other's, equal to it, or larger. Right values of the other field must satisfy the relation,
    too. "Larger" is tried only if the field is wrong at the other's own value: a head of size 1 has no halves to rotate.

    Args:
        path: The field.
        every: The verdicts on other values of all fields.
        kind: The class.
    """
    numbers = [row for row in every if kind_of(row.changes[row.path]) == "number"]
    exact = [row for row in numbers if row.verdict in (EXACT, NONE)]
    right = [row for row in exact if row.path == path]
    wrong = [row for row in numbers if row.verdict == WRONG and row.path == path]
    if not right or not wrong:
        return {}
    part = path.rpartition(".")[0]
    inner = value_at(right[0].config, part) if part else right[0].config
    others = [f"{part}.{name}" if part else name for name in (inner if isinstance(inner, Mapping) else ())]
    for word, other in ((word, other) for word in WORDS for other in others if other != path):
        known = {"related": [[word, other]]}
        likewise = [*right, *(row for row in exact if row.path == other)]
        if word in LARGER and not any(value_at(row.config, path) == value_at(row.config, other) for row in wrong):
            continue
        tells = [related(value_at(row.config, path), known, row.config) for row in (*likewise, *wrong)]
        if tells == [True] * len(likewise) + [False] * len(wrong):
            return attempt(partial(relation_guard, kind, path, word, other)) or known
    return {}


def restrict(entry: Entry, path: str, values: Sequence[Any]) -> None:
    """Change a census in place so that the draft holds for these ``values`` of field ``path`` alone."""
    for name in ("described", "free"):
        entry[name] = [other for other in entry[name] if other != path]
    entry["words"].pop(path, None)
    entry["guarded"][path] = {"values": list(values)}


def holds(value: Any, known: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Whether a draft holds for ``value`` of a field in ``config``, by the field's census (``known``)."""
    return admitted(value, known) or related(value, known, config)


def admit(entry: Entry, config: Mapping[str, Any]) -> None:
    """Add the values of a config, on which the draft was proven, to a census, in place."""
    for path, known in entry["guarded"].items():
        known["values"] += [plain_lists(value) for value in values_at(config, path) if not holds(value, known, config)]
    for path, words in entry["words"].items():
        words += sorted({word for word in texts_in(values_at(config, path)) if word not in words})


def outside(entry: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
    """Yield ``path = value`` for each field of a config whose value the draft was not proven for.

    ``entry`` is the class's entry in the draft's census; its key ``guarded`` maps fields to the values that were proven.
    """
    for path, known in entry["guarded"].items():
        wrong = [value for value in values_at(config, path) if not holds(value, known, config)]
        yield from (f"{path} = {json.dumps(value, default=str)}" for value in wrong)
    for path, words in entry["words"].items():
        yield from (f"{path} = '{word}'" for word in texts_in(values_at(config, path)) if word not in words)


def holds_for(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield ``path: values`` for each field that may have only the values that a draft was proven for.

    ``entry`` is the class's entry in the draft's census.
    """
    for path, known in entry.get("guarded", {}).items():
        values = [json.dumps(value, default=str) for value in known["values"]]
        values = [*values[:SHOWN], *([f"{len(values) - SHOWN} more"] if len(values) > SHOWN else [])]
        kinds = [f"any {kind}" for kind in known.get("kinds", ())]
        sizes = [f"{length} items" for length in known.get("lengths", ())]
        kinds += [f"{known['least']} and more"] if "least" in known else []
        kinds += [f"{WORDS[word]} {other}" for word, other, *_ in known.get("related", ())]
        yield f"{path}: {', '.join([*kinds, *sizes, *values]) or 'none'}"
    for path, words in entry.get("words", {}).items():
        if path not in entry["guarded"]:
            yield f"{path}: {', '.join(words[:SHOWN])}{f', {len(words) - SHOWN} more' if len(words) > SHOWN else ''}"


def document_of(entry: Mapping[str, Any], spec: Spec, reference: str, kind: Any) -> str:
    """Text of the census file of a draft: JSON with the census ``entry`` of the class ``kind``."""
    absent = attempt(lambda: values_of_absent_fields(kind, entry["guarded"], entry["words"])) or {}
    fields = {**entry, **({"left_out": absent} if absent else {}), "made_from": made_from(kind, reference)}
    return text_of({"schema": SCHEMA, "spec": spec_digest(spec), "classes": {reference: fields}})


def described_numbers(rows: Sequence[Row]) -> dict[str, tuple[list[Row], list[Row]]]:
    """Numeric field -> (verdicts on other values that found the draft exact, those that found it wrong)."""
    found: dict[str, tuple[list[Row], list[Row]]] = {}
    for row in rows:
        if row.verdict in (EXACT, WRONG) and kind_of(row.changes[row.path]) == "number":
            found.setdefault(row.path, ([], []))[row.verdict == WRONG].append(row)
    return found


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
                restrict(entry, path, [plain_lists(value_at(survey.config, path))])
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


DRAWING, VARYING, TRACING = 0.2, 0.6, 0.4  # minimum shares of a config's time limit; the last one is a maximum
LEAST_SECONDS = 30.0  # for a trace


def prove(
    found: Draft, document: Document, studies: Sequence[Study], published: Sequence[Subject], until: float, timeout: float
) -> None:
    """Prove a draft, and find for which values of config fields it holds; adds the results to ``found``.

    A draft that does not parse gets one failed proof.

    Args:
        found: The draft, with its text.
        document: The same spec as data.
        studies: The configs that it was drafted from.
        published: Further configs to prove it at.
        until: When time is up, as processor time of the process; each study has at least a share of ``timeout``.
        timeout: Seconds per config.
    """
    try:
        model = model_of(found.text)
        for study in studies:
            model.graph(study.family.samples[0].config)
    except SymflopsError as error:
        found.proofs.append(Proof("reading it back", 1, [first_line(error, 400)]))
        return
    prover = Prover(model, found.text, 1)
    for study in studies:
        found.proofs.append(given_proof(prover, document, study))
        study.runner.deadline = max(until, time.process_time() + DRAWING * timeout)
        found.proofs += drawn_proofs(prover, document, study)
        found.proofs += value_proofs(prover, document, study)
    exact = all(proof.exact for proof in found.proofs) and not found.unsolved
    limit = max(LEAST_SECONDS, TRACING * timeout)
    found.forms = [forms_of(prover, one, batch_of(document, one, {}), limit) for one in studies if exact]
    try:
        judge(found, prover, document, studies, published, max(until, time.process_time() + VARYING * timeout))
    except Exception as error:  # must not lose the draft
        found.reasons.append(f"its fields could not be judged: {type(error).__name__}: {error}"[:300])


def judge(
    found: Draft, prover: Prover, document: Document, studies: Sequence[Study], published: Sequence[Subject], until: float
) -> None:
    """Change fields one by one, then prove the draft at published configs and at the class's defaults.

    Adds the results to ``found``; ``until`` is when time is up, as processor time of the process.
    """
    surveys = surveyed(found, prover, document, studies, until)
    for survey, forms in zip(surveys, found.forms, strict=False):
        settle(forms, survey, found.fields)
        found.proofs += forms_proofs(forms, survey, lambda config: any(outside(found.fields, config)))
    for number, one in enumerate(published, 1):
        label = f"published config {number}"
        study_or_reason = study_of(one, studies)
        if isinstance(study_or_reason, str):
            found.reasons.append(f"{label} has {study_or_reason}")
        else:
            proof = published_proof(prover, document, study_or_reason, label, one)
            found.proofs.append(proof)
            if proof.exact:
                admit(found.fields, full_config(one.build(), one.config))
    at_defaults(found, prover, document, studies[0])
    found.holds_for = list(holds_for(found.fields))
    kind = referenced(found.subject.reference)
    found.census = document_of(found.fields, prover.model.spec, reference_of(found.subject), kind)
    found.reasons += dict.fromkeys(reason for survey in surveys for reason in reasons(found, survey))


def surveyed(found: Draft, prover: Prover, document: Document, studies: Sequence[Study], until: float) -> list[FieldSurvey]:
    """Change every field of each study, alone and together; returns one survey per study.

    Adds the census and failed proofs to ``found``.

    ``until`` is when time is up, as processor time of the process.
    """
    surveys = [FieldSurvey(prover, document, study, lambda: time.process_time() > until) for study in studies]
    for survey, forms in zip_longest(surveys, found.forms):
        survey.settled = settled_fields(forms, survey) if forms else set()
        survey.run()
    found.fields = entry_of(surveys, prover.model.spec)
    for survey in surveys:
        found.proofs += joint_proofs(survey, found.fields, Random(18))
    return surveys


def at_defaults(found: Draft, prover: Prover, document: Document, study: Study) -> None:
    """Prove the draft at the class's own defaults; adds the proof, or why there is none, to ``found``."""
    known = default_subject(study)
    if known is None:
        return
    subject, state, config = known
    other = list(outside(found.fields, config))
    if other:
        found.reasons.append(f"the class's own defaults are not described: {', '.join(other)}")
        return
    proof, runs = default_proof(prover, document, study, subject, state, config)
    if runs or proof.checks:
        found.proofs.append(proof)
    if not runs:
        refused = f", and the draft refuses it: {proof.differences[0]}" if not proof.checks else ""
        found.decide.append(f"the class's own defaults: it does not run there on such inputs, or not in time{refused}")


def reasons(found: Draft, survey: FieldSurvey) -> Iterator[str]:
    """Reasons why a draft is partial that other values of the fields have shown, one line each."""
    if survey.real is None or survey.real.passes is None:
        yield "its fields cannot be varied: the base does not run"
        return
    if survey.waiting:
        yield f"time was up before {len(survey.waiting)} fields were varied: {', '.join(survey.waiting[:5])}"
    for path, (right, wrong) in described_numbers(survey.rows).items():
        if found.fields["guarded"].get(path, {}).keys() & {"least", "related"}:
            continue  # wrong values are refused: no layers, or a width that the heads do not divide
        if right and wrong:
            yield f"{path} = {wrong[0].changes[path]}: {wrong[0].why}"
        elif wrong and path in survey.counts:
            yield f"{path} decides how many layers there are, but no size of the draft is read from it: {wrong[0].why}"
    for path in survey.counts.keys() - described_numbers(survey.rows).keys():
        yield f"{path} decides how many layers there are, and other values of it are not described: {survey.counts[path]}"


def reference_of(subject: Subject) -> str:
    """Class of a subject as a census writes it, such as ``transformers.LlamaModel``."""
    return f"{subject.package}.{subject.name}" if subject.package in ("transformers", "diffusers") else subject.reference
