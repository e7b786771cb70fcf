"""Proves a draft at hold-outs: random configurations that were not used in the fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from symflops.draft.prove.points import batch_of, within_time
from symflops.draft.prove.prove import Proof, Prover
from symflops.draft.study import HOLD_OUTS, Study
from symflops.draft.vary.variables import State, well_formed
from symflops.draft.write.draft_document import Document

ATTEMPTS = 480
SHARES = (0.8, 0.5, 0.3)  # shares of the variables that change, in turn; later FEW, if the module refuses most states
FEW = 0.15


def drawn_proofs(prover: Prover, document: Document, study: Study) -> list[Proof]:
    """Proofs of a draft at up to ``HOLD_OUTS`` configurations that the fit never saw.

    If none of the first three is exact, there are no more.
    """
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
    """Random states (slot -> value) that the module accepts and that no sample of the fit has.

    They end when time is up or after many attempts.
    """
    base, *_ = seen = [sample.state for sample in study.family.samples]
    for attempted in range(ATTEMPTS if study.free else 0):
        if study.runner.late():
            return
        share = SHARES[attempted % 3] if attempted < ATTEMPTS // 4 else FEW
        state = well_formed(study.free, random, share, base, study.runner.most)
        if state is not None and state not in seen and study.runner.taped(state) is not None:
            seen.append(state)
            yield state
