"""The verdict on a draft: proves it, takes the census of its fields, and says why it is partial."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from random import Random

from symflops.draft.prove.census import admit, described_numbers, document_of, entry_of, holds_for, joint_proofs, outside
from symflops.draft.prove.points import (
    default_proof,
    default_subject,
    drawn_proofs,
    given_proof,
    published_proof,
    study_of,
    value_proofs,
)
from symflops.draft.prove.prove import Proof, Prover, first_line, model_of
from symflops.draft.prove.vary_fields import FieldSurvey
from symflops.draft.study import Draft, Study
from symflops.draft.trace.subject import Subject, full_config
from symflops.draft.write.draft_document import Document
from symflops.support.findings import SymflopsError
from symflops.verify.classes import referenced

DRAWING, VARYING = 0.2, 0.6  # minimum shares of a config's time limit


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
        until: When time is up, on the monotonic clock; each study has at least a share of ``timeout``.
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
        study.runner.deadline = max(until, time.monotonic() + DRAWING * timeout)
        found.proofs += drawn_proofs(prover, document, study)
        found.proofs += value_proofs(prover, document, study)
    try:
        judge(found, prover, document, studies, published, max(until, time.monotonic() + VARYING * timeout))
    except Exception as error:  # must not lose the draft
        found.reasons.append(f"its fields could not be judged: {type(error).__name__}: {error}"[:300])


def judge(
    found: Draft, prover: Prover, document: Document, studies: Sequence[Study], published: Sequence[Subject], until: float
) -> None:
    """Change fields one by one, then prove the draft at published configs and at the class's defaults.

    Adds the results to ``found``; ``until`` is when time is up, on the monotonic clock.
    """
    surveys = surveyed(found, prover, document, studies, until)
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

    ``until`` is when time is up, on the monotonic clock.
    """
    surveys = [FieldSurvey(prover, document, study, lambda: time.monotonic() > until) for study in studies]
    for survey in surveys:
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
