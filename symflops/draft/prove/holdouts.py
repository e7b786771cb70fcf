"""Chooses where a draft is proven: hold-outs, configurations that its fit never saw, and published ones."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from symflops.diagnostics.findings import SymflopsError
from symflops.draft.fit.symbols import value_at
from symflops.draft.limits import MOST_SECONDS, TooLongError, attempt, within
from symflops.draft.prove.prove import Proof, Prover, first_line, model_of
from symflops.draft.sample.family import starred
from symflops.draft.study import HOLD_OUTS, Draft, Study
from symflops.draft.trace.subject import Subject, full_config
from symflops.draft.vary.sequences import number_at
from symflops.draft.vary.slots import Slot
from symflops.draft.vary.variables import State, well_formed
from symflops.draft.write.document import Document

ATTEMPTS = 480
SHARES = (0.8, 0.5, 0.3)  # of the variables, in turn; then few, if the module refuses most of what moves together
FEW = 0.15


def prove(
    found: Draft, document: Document, studies: Sequence[Study], published: Sequence[Subject], until: float, least: float
) -> None:
    """Add the proofs of a draft, at hold-outs of its ``studies`` and at ``published`` configs, if it can be read back.

    Each study has time ``until`` a value of the monotonic clock, and ``least`` seconds in any case.
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
        study.runner.deadline = max(until, time.monotonic() + least)
        found.proofs += drawn_proofs(prover, document, study)
    for number, one in enumerate(published, 1):
        label = f"published config {number}"
        study_or_reason = study_of(one, studies)
        if isinstance(study_or_reason, str):
            found.decide.append(f"{label} has {study_or_reason}")
        else:
            found.proofs.append(published_proof(prover, document, study_or_reason, label, one))


def drawn_proofs(prover: Prover, document: Document, study: Study) -> list[Proof]:
    """Proofs at hold-outs of a study, until there are enough, or none of the first three is exact."""
    proofs: list[Proof] = []
    for state in hold_outs(study, Random(12345)):
        label = ", ".join(f"{slot.label}={value}" for slot, value in state.items() if value != slot.value)
        label = f"{study.name}: {label}" if study.name else label
        lengths, items = batch_of(document, study, state)
        proof = within_time(prover, label, study.runner.at(state), lengths, items)
        if not proof.refused:
            proofs.append(replace(proof, of=study.name))
            study.runner.tell(f"proving {len(proofs)}/{HOLD_OUTS}")
            if len(proofs) >= HOLD_OUTS or (len(proofs) > 2 and not any(proof.exact for proof in proofs)):
                break
    return proofs


def hold_outs(study: Study, random: Random) -> Iterator[State]:
    """States that the fit never saw and that the module accepts, as long as there is time."""
    base, *_ = seen = [sample.state for sample in study.family.samples]
    for attempted in range(ATTEMPTS if study.free else 0):
        if study.runner.late():
            return
        share = SHARES[attempted % 3] if attempted < ATTEMPTS // 4 else FEW
        state = well_formed(study.free, random, share, base, study.runner.most)
        if state is not None and state not in seen and study.runner.taped(state) is not None:
            seen.append(state)
            yield state


def batch_of(document: Document, study: Study, state: Mapping[Slot, int]) -> tuple[dict[str, int], int]:
    """The lengths of a document, and the number of items, in a state."""
    own = {slot.label: slot.within(state) for slot in study.names.lengths.values()}
    lengths = {name: own[label] for name, label in document.lengths.items() if label in own}
    return lengths, study.batch.lead.within(state) if study.batch else 1


def within_time(prover: Prover, label: str, subject: Subject, lengths: Mapping[str, int], items: int) -> Proof:
    """The proof at one configuration; one that takes too long is not exact."""
    try:
        with within(MOST_SECONDS):
            return prover.prove(label, subject, lengths, items)
    except TooLongError:
        return Proof(label, 1, [f"no answer within {MOST_SECONDS:.0f} s"])


def published_proof(prover: Prover, document: Document, study: Study, label: str, one: Subject) -> Proof:
    """The proof at a published config of a study."""
    slots = [*study.names.lengths.values(), *([study.batch.lead] if study.batch else [])]
    state = {slot: dimension(one.inputs, slot.key, slot.value) for slot in slots}
    return replace(within_time(prover, label, one, *batch_of(document, study, state)), published=True)


def study_of(one: Subject, studies: Sequence[Study]) -> Study | str:
    """The study that a published config belongs to, or what it has that none of them has."""
    names = attempt(lambda: {starred(name) for name, _ in one.build().named_parameters()})
    like = [study for study in studies if names in (None, set(map(starred, study.family.samples[0].plan.parameters)))]
    if not like:
        return "other parameters: it is another variant, see --variant"
    like = [study for study in like if ranks(one.inputs) == ranks(study.subject.inputs)]
    if not like:
        return "inputs of other ranks: it is another variant"
    other = list(differing_fields(like[0], one))
    return f"another {', another '.join(other)}: it is another variant" if other else like[0]


def differing_fields(study: Study, other: Subject) -> Iterator[str]:
    """The fractions, switches and words in which a config differs from that of a study, if they matter in the study."""
    wanted = attempt(lambda: full_config(other.build(), other.config)) or {}  # its proof says why it does not build
    for name, value in wanted.items():
        now = study.family.samples[0].config.get(name)
        if type(now) is not type(value) or not isinstance(value, (float, bool, str)) or now == value or name.startswith("_"):
            continue
        subject = replace(study.subject, config={**study.subject.config, name: value})
        changed = replace(study.runner, subject=subject, samples={}, lists={}).signature({})
        if changed is not None and changed != study.runner.signature({}):
            yield name


def ranks(inputs: Any) -> Any:
    """Described inputs with the rank of each tensor in its place; lists of tensors may have any length."""
    if isinstance(inputs, Mapping) and "shape" in inputs:
        return len(inputs["shape"])
    if isinstance(inputs, Mapping):
        return {name: ranks(item) for name, item in inputs.items()}
    return [ranks(inputs[0])] if isinstance(inputs, (list, tuple)) and inputs else None


def dimension(inputs: Mapping[str, Any], key: Sequence[Any], default: int) -> int:
    """A dimension of described inputs, or a number of an argument with values."""
    known = number_at(inputs, tuple(key))
    found = value_at(inputs, key) if known is None else known
    return default if found is None else int(found)
