"""Where a draft is held: against configurations that its fit never saw, and against published ones."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from symflops.catalog.library import SpecFile, roots, specs_in
from symflops.diagnostics.findings import SymflopsError
from symflops.draft.limits import PATIENCE, TooLongError, within
from symflops.draft.prove.prove import Proof, Prover, model_of
from symflops.draft.sample.family import INDEX
from symflops.draft.study import HOLD_OUTS, Draft, Study
from symflops.draft.trace.subject import Subject, full_config
from symflops.draft.vary.sequences import number_at
from symflops.draft.vary.vary import well_formed
from symflops.draft.write.document import Document

ATTEMPTS = 480
SHARES = (0.8, 0.5, 0.3)  # of the variables, in turn; then few, where the module refuses most of what moves together
FEW = 0.15


def library() -> SpecFile | None:
    """A spec of the library, which knows its blocks; None where there is no library."""
    return next(iter(specs_in(roots()[0])), None)


def blocks() -> Any:
    """What finds a block of the library by its name."""
    found = library()
    return found.blocks() if found else lambda _: None


def held_against(
    found: Draft, made: Document, studies: Sequence[Study], published: Sequence[Subject], until: float, least: float
) -> None:
    """Add the proofs of a draft; each study has time up to ``until``, and ``least`` seconds in any case.

    That symflops does not read the draft back is the first thing that is known of it.
    """
    try:
        model = model_of(found.text, blocks())
        for study in studies:
            model.graph(study.family.samples[0].config)
    except SymflopsError as error:
        found.proofs.append(Proof("reading it back", 1, [" ".join(str(error).split())[:400]]))
        return
    prover = Prover(model, found.text, 1)
    for study in studies:
        study.laboratory.deadline = max(until, time.monotonic() + least)
        found.proofs += drawn(prover, made, study)
    for number, one in enumerate(published, 1):
        at(found, prover, made, studies, f"published config {number}", one)


def drawn(prover: Prover, made: Document, study: Study) -> list[Proof]:
    """Proofs at configurations of a study that its fit never saw."""
    laboratory, batch = study.laboratory, study.batch
    random = Random(12345)
    seen = [sample.state for sample in study.family.samples]
    proofs: list[Proof] = []
    for attempt in range(ATTEMPTS if study.free else 0):
        if len(proofs) >= HOLD_OUTS or laboratory.late():
            break
        laboratory.tell(f"proving {len(proofs)}/{HOLD_OUTS}")
        share = SHARES[attempt % 3] if attempt < ATTEMPTS // 4 else FEW
        state = well_formed(study.free, random, share, study.family.samples[0].state, laboratory.most)
        if state is None or state in seen or laboratory.taped(state) is None:
            continue
        seen.append(state)
        own = {slot.label: state.get(slot, slot.value) for slot in study.names.lengths.values()}
        lengths = {name: own[label] for name, label in made.lengths.items() if label in own}
        items = state.get(batch.lead, batch.lead.value) if batch else 1
        told = ", ".join(f"{slot.label}={value}" for slot, value in state.items() if value != slot.value)
        told = f"{study.name}: {told}" if study.name else told
        proof = held(prover, told, laboratory.at(state), lengths, items)
        if proof.refused:
            continue
        proofs.append(replace(proof, of=study.name))
        if len(proofs) > 2 and not any(proof.exact for proof in proofs):
            break
    return proofs


def at(found: Draft, prover: Prover, made: Document, studies: Sequence[Study], told: str, one: Subject) -> None:
    """The proof at a published config, which is of the study that has its parameters, if one has."""
    groups = parameter_groups(one)
    like = [study for study in studies if groups in (None, groups_of(study.family.samples[0].plan.parameters))]
    if not like:
        found.decide.append(f"{told} has other parameters: it is another variant, see --variant")
        return
    like = [study for study in like if ranks(one.inputs) == ranks(study.subject.inputs)]
    if not like:
        found.decide.append(f"{told} has inputs of other ranks: it is another variant")
        return
    other = otherwise(like[0], one)
    if other:
        found.decide.append(f"{told} has another {', another '.join(other)}: it is another variant")
        return
    names, batch = like[0].names, like[0].batch
    own = {slot.label: dimension(one.inputs, slot.key, slot.value) for slot in names.lengths.values()}
    lengths = {name: own[label] for name, label in made.lengths.items() if label in own}
    items = dimension(one.inputs, batch.lead.key, batch.lead.value) if batch else 1
    found.proofs.append(replace(held(prover, told, one, lengths, items), published=True))


def held(prover: Prover, told: str, subject: Subject, lengths: Mapping[str, int], items: int) -> Proof:
    """The proof at one configuration, which does not hold where it does not come to an end."""
    try:
        with within(PATIENCE):
            return prover.prove(told, subject, lengths, items)
    except TooLongError:
        return Proof(told, 1, [f"no answer within {PATIENCE:.0f} s"])


def otherwise(study: Study, other: Subject) -> list[str]:
    """The fractions, switches and words in which a config differs from that of a study, of those that matter in the study."""
    drafted = study.family.samples[0].config
    try:
        wanted = full_config(other.build(), other.config)
    except Exception:  # what it raises is told by its proof
        return []
    found = []
    for name, value in wanted.items():
        now = drafted.get(name)
        if type(now) is not type(value) or not isinstance(value, (float, bool, str)) or now == value or name.startswith("_"):
            continue
        subject = replace(study.subject, config={**study.subject.config, name: value})
        changed = replace(study.laboratory, subject=subject, plans={}).signature({})
        if changed is not None and changed != study.laboratory.signature({}):
            found.append(name)
    return found


def parameter_groups(subject: Subject) -> set[str] | None:
    """The names of the parameters of a subject, without indices; None where it cannot be built."""
    try:
        return groups_of(name for name, _ in subject.build().named_parameters())
    except Exception:  # what it raises is told by its proof
        return None


def groups_of(names: Iterable[str]) -> set[str]:
    """Names without indices."""
    return {INDEX.sub("*", name) for name in names}


def ranks(inputs: Any) -> Any:
    """Described inputs with the rank of every tensor in its place; lists of tensors may be of any length."""
    if isinstance(inputs, Mapping) and "shape" in inputs:
        return len(inputs["shape"])
    if isinstance(inputs, Mapping):
        return {name: ranks(item) for name, item in inputs.items()}
    return [ranks(inputs[0])] if isinstance(inputs, (list, tuple)) and inputs else None


def dimension(inputs: Any, key: Sequence[Any], default: int) -> int:
    """A dimension of described inputs, or a number of an argument with values."""
    known = number_at(inputs, tuple(key)) if isinstance(inputs, Mapping) else None
    if known is not None:
        return known
    value: Any = inputs
    for part in key:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return default
    return int(value)
