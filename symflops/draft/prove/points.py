"""Proves a draft at chosen configs, at hold-outs, and on random tensor values.

Chosen are the given config, published ones, and the class's own defaults. Hold-outs are random configurations that were not
used in the fit. Tensor values matter if shapes in the module depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from symflops.draft.prove.prove import (
    DEFAULTS,
    FULL,
    GIVEN,
    PUBLISHED,
    VALUES,
    Parameters,
    Proof,
    Prover,
    first_line,
    measured,
    runs,
)
from symflops.draft.study import HOLD_OUTS, Study
from symflops.draft.trace.steps import Subject, completed, full_config
from symflops.draft.trace.tape import taped
from symflops.draft.vary.slots import Slot, applied, is_whole, number_at, tokens_in
from symflops.draft.vary.variables import State, Variable, random_state
from symflops.draft.write.draft_document import Document
from symflops.support.findings import SymflopsError
from symflops.training.introspect.tree import starred
from symflops.verify.census.fields import value_at
from symflops.verify.classes import referenced
from symflops.verify.limits import MOST_SECONDS, TooLongError, attempt, within
from symflops.verify.running import needed

AFFORDABLE = 60.0  # seconds for a run at the class's own defaults
ATTEMPTS = 480
SHARES = (0.8, 0.5, 0.3)  # shares of the variables that change, in turn; later FEW, if the module refuses most states
FEW = 0.15
DRAWS = 3
FEWEST_WORDS = 2
BUILDING, RUNNING = 20.0, 40.0  # seconds


def batch_of(
    document: Document, study: Study, state: Mapping[Slot, int], inputs: Mapping[str, Any] | None = None
) -> tuple[dict[str, int], int]:
    """(Letter of a length of the document -> value, batch size) in a state (slot -> value).

    A length that is a run of equal tokens counts as the whole row of tokens. ``inputs`` replace the arguments of the study.
    """
    given = study.runner.at(state).inputs if inputs is None else inputs
    tokens = {slot: tokens_in(given, str(slot.key[0])) for slot in study.names.lengths.values() if slot.of_run}
    own = {slot.label: tokens.get(slot) or slot.within(state) for slot in study.names.lengths.values()}
    lengths = {name: own[label] for name, label in document.lengths.items() if label in own}
    return lengths, study.batch.lead.within(state) if study.batch else 1


def within_time(
    prover: Prover,
    label: str,
    subject: Subject,
    lengths: Mapping[str, int],
    items: int,
    arguments: Mapping[str, Any] | None = None,
) -> Proof:
    """Proof at one configuration, with the arguments of :meth:`Prover.prove`; a timeout is a difference."""
    try:
        with within(MOST_SECONDS):
            return prover.prove(label, subject, lengths, items, arguments)
    except TooLongError:
        return Proof(label, 1, [f"no answer within {MOST_SECONDS:.0f} s of processor time"])


def published_proof(prover: Prover, document: Document, study: Study, label: str, one: Subject) -> Proof:
    """Proof at a published config that belongs to ``study``."""
    return replace(within_time(prover, label, one, *batch_at(document, study, one.inputs)), kind=PUBLISHED)


def batch_at(document: Document, study: Study, inputs: Mapping[str, Any]) -> tuple[dict[str, int], int]:
    """(Letter of a length of the document -> value, batch size) of other arguments, given as descriptions."""
    slots = [*study.names.lengths.values(), *([study.batch.lead] if study.batch else [])]
    state = {slot: dimension(inputs, slot.key, slot.value) for slot in slots}
    return batch_of(document, study, state, inputs)


def study_of(one: Subject, studies: Sequence[Study]) -> Study | str:
    """Study whose structure a published config has, else a text that says what differs from all of them."""
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
    """Names of the config fields whose values in ``other`` would change the module of a study.

    That is, its parameters or contractions. Only floats, switches and words are tried.
    """
    wanted = attempt(lambda: full_config(other.build(), other.config)) or {}  # the proof reports a failed build
    for name, value in wanted.items():
        now = study.family.samples[0].config.get(name)
        if type(now) is not type(value) or not isinstance(value, (float, bool, str)) or now == value or name.startswith("_"):
            continue
        subject = replace(study.subject, config={**study.subject.config, name: value})
        changed = replace(study.runner, subject=subject, samples={}, lists={}).signature({})
        if changed is not None and changed != study.runner.signature({}):
            yield name


def given_proof(prover: Prover, document: Document, study: Study) -> Proof:
    """Proof at the study's own config."""
    label = f"{study.name}: the config as given" if study.name else "the config as given"
    proof = within_time(prover, label, study.subject, *batch_of(document, study, {}))
    return replace(proof, kind=GIVEN, of=study.name)


def default_subject(study: Study) -> tuple[Subject, State, dict[str, Any]] | None:
    """(Class with its default config and inputs that fit, state of these inputs, complete config).

    None if the class does not build without a config.
    """
    bare = study.subject.having({}, study.subject.inputs)
    config = attempt(lambda: full_config(bare.build(), {}), AFFORDABLE)
    if config is None:
        return None
    state = state_of(study.moves.variables, config)
    inputs = applied(study.subject.config, study.subject.inputs, state)[1]
    return bare.having({}, inputs), state, completed(referenced(bare.reference), config)


def default_proof(
    prover: Prover, document: Document, study: Study, subject: Subject, state: State, config: Mapping[str, Any]
) -> tuple[Proof, bool]:
    """(Proof at the class's own defaults, whether the class ran there in time); see :func:`default_subject`."""
    proof = Proof("the class's own defaults", kind=DEFAULTS)
    real = attempt(subject.build, AFFORDABLE)
    passes = None if real is None else attempt(lambda: measured(real, subject.arguments()), AFFORDABLE)
    try:
        batch = prover.batch(config, *batch_of(document, study, state))
        prover.parameters(Parameters.of(real), config, proof)
        prover.incomplete({}, config, batch, proof)
        if passes is not None:
            proof.compare("full", passes, prover.passes(FULL, config, batch))
    except SymflopsError as error:
        proof.differences.append(first_line(error))
    return proof, passes is not None


def state_of(variables: Sequence[Variable], config: Mapping[str, Any]) -> State:
    """State (slot of the inputs -> value) for a config: dimensions tied to its fields are scaled with them."""
    state: State = {}
    for variable in variables:
        named = (variable.lead, *variable.ratio)
        known = ((slot, value_at(config, slot.key)) for slot in named if slot.of_config and slot.kind == "number")
        factor = next((Fraction(value, slot.value) for slot, value in known if is_whole(value) and slot.value), None)
        if factor is None:
            continue
        tied = [(slot, 1) for slot in named] + list(variable.along)
        sizes = {slot: slot.value * factor**power for slot, power in tied if not slot.of_config}
        state |= {slot: int(size) for slot, size in sizes.items() if size.denominator == 1 and size >= 1}
    return state


def ranks(inputs: Any) -> Any:
    """Nested inputs with each tensor replaced by its number of dimensions, each list by its first item."""
    if isinstance(inputs, Mapping) and "shape" in inputs:
        return len(inputs["shape"])
    if isinstance(inputs, Mapping):
        return {name: ranks(item) for name, item in inputs.items()}
    return [ranks(inputs[0])] if isinstance(inputs, (list, tuple)) and inputs else None


def dimension(inputs: Mapping[str, Any], key: Sequence[Any], default: int) -> int:
    """Dimension or number at ``key`` of the inputs; ``default`` if it does not exist."""
    known = number_at(inputs, tuple(key))
    found = value_at(inputs, key) if known is None else known
    return default if found is None else int(found)


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
        state = random_state(study.free, random, share, base, study.runner.most)
        if state is not None and state not in seen and study.runner.taped(state) is not None:
            seen.append(state)
            yield state


def operators_by_value(subject: Subject) -> list[str]:
    """Names of the operators of a module whose output shape or result depends on tensor values."""
    tape = attempt(lambda: taped(subject)[2])
    return sorted(name for name, device in (tape.by_value if tape else ()) if device == subject.device)


def value_proofs(prover: Prover, document: Document, study: Study) -> Iterator[Proof]:
    """Proofs of full training on random values on the CPU; none if no operator depends on values."""
    asked = operators_by_value(study.subject)
    if not asked:
        return
    subject = replace(study.subject, device="cpu")
    label = f"drawn values ({', '.join(asked)} depend on them)"
    lengths, items = batch_of(document, study, {})
    ran = False
    for seed in range(DRAWS):
        arguments = drawn(subject, seed)
        if arguments is None or not accepted(subject, arguments):
            continue
        ran = True
        proof = within_time(prover, label, subject, lengths, items, arguments)
        yield replace(proof, kind=VALUES, of=study.name)
        if not proof.exact:
            return
    if not ran:
        yield Proof(label, 1, ["the module does not run on them: what it does with values is guessed"], VALUES, study.name)


def drawn(subject: Subject, seed: int) -> dict[str, Any] | None:
    """Argument of the call -> random value; None if the module cannot be built.

    Token ids of seed 0 are below ``FEWEST_WORDS``, those of other seeds below the rows of the smallest embedding.
    """
    torch = needed("torch")
    real = attempt(subject.build, BUILDING)
    if real is None:
        return None
    tables = [module.num_embeddings for module in real.modules() if isinstance(module, torch.nn.Embedding)]
    words = max(FEWEST_WORDS, min(tables, default=FEWEST_WORDS)) if seed else FEWEST_WORDS
    generator = torch.Generator().manual_seed(seed)
    made = subject.arguments()
    return {name: filled(value, made[name], words, generator) for name, value in subject.inputs.items()}


def filled(description: Any, made: Any, words: int, generator: Any) -> Any:
    """Argument with random values where its description has only a shape; masks of ones are unchanged."""
    torch = needed("torch")
    if isinstance(description, Mapping) and "shape" in description:
        if "(" in str(description.get("dtype", "")):
            return made
        if made.is_floating_point() or made.is_complex():
            return torch.randn(made.shape, generator=generator, dtype=made.dtype)
        return torch.randint(0, 2 if made.dtype is torch.bool else words, made.shape, generator=generator).to(made.dtype)
    if isinstance(description, Mapping) and "value" not in description:
        return {name: filled(item, made[name], words, generator) for name, item in description.items()}
    if isinstance(description, (list, tuple)):
        return [filled(item, one, words, generator) for item, one in zip(description, made, strict=True)]
    return made


def accepted(subject: Subject, arguments: Mapping[str, Any]) -> bool:
    """Whether the module builds and runs on ``arguments`` (name -> value) within ``RUNNING`` seconds."""
    return attempt(lambda: runs(subject.build(), arguments), RUNNING) or False
