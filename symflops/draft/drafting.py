"""Drafts a spec: tape and gate, what moves, samples, formulas, the text, and its proof against the real module."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Any

from symflops.draft import gate
from symflops.draft.blocks import patterns_in
from symflops.draft.document import Document, document
from symflops.draft.family import INDEX, Family
from symflops.draft.graph import Grapher
from symflops.draft.guards import guards_between
from symflops.draft.levels import levelled
from symflops.draft.merging import Branch, leaves, merged
from symflops.draft.patience import TooLongError, within
from symflops.draft.prove import PATIENCE, Proof, Prover, held, model_of
from symflops.draft.sampling import Laboratory
from symflops.draft.study import HOLD_OUTS, Draft, Study
from symflops.draft.subject import Subject, class_of, full_config, summed
from symflops.draft.symbols import Names, fitter_of, names_of
from symflops.draft.tape import record
from symflops.draft.vary import Moves, Variable, well_formed
from symflops.ground.diagnostics import SymflopsError
from symflops.library import roots, specs_in
from symflops.witness.defaults import signature_of
from symflops.witness.tensors import needed

ATTEMPTS = 120
SHARES = (0.8, 0.5, 0.3)


class GateError(SymflopsError):
    """The tape of a module does not say what PyTorch's counter says: it cannot be drafted."""

    exit_code = 1


def draft(
    subject: Subject,
    timeout: float = 120.0,
    tell: Callable[[str], None] = lambda _: None,
    published: Sequence[Subject] = (),
    variants: Mapping[str, Subject] = MappingProxyType({}),
    keep: Callable[[Draft], None] = lambda _: None,
) -> Draft:
    """Draft a subject, and ``variants`` of it in the same spec; ``published`` are further ones that it must be exact for.

    ``timeout`` is in seconds, for each of the configs.

    ``keep`` is called with what is known whenever there is more of it.

    Raises:
        SymflopsError: the module does not run, or no field of the configs tells the variants apart.
        GateError: its tape and PyTorch's counter differ.
    """
    started, processor = time.monotonic(), time.process_time()
    subject = subject if variants else levelled(subject, published)
    apart({"": subject, **variants})
    studies = [studied(name, one, timeout, tell) for name, one in {"": subject, **variants}.items()]
    found = Draft(studies, together(studies))
    keep(found)
    prover = read_back(found)
    if prover:
        for study in studies:
            study.laboratory.deadline = max(started + timeout * len(studies), time.monotonic() + 0.2 * timeout)
            proven(found, prover, study)
        known(found, prover, published)
    found.decide += dict.fromkeys(one for study in studies for one in decisions(study))
    found.seconds = time.monotonic() - started
    found.processor = time.process_time() - processor
    return found


def studied(name: str, subject: Subject, timeout: float, tell: Callable[[str], None]) -> Study:
    """One config: gate, moves, samples, and what they say."""
    started = time.monotonic()
    said = partial(reported, tell, name)
    said("taping")
    findings = passed(subject)
    laboratory = Laboratory(subject, started + 0.6 * timeout, said, patience=timeout / 20)
    moves = laboratory.moves()
    given_up = "time was up while numbers were moved" if laboratory.late() else ""
    laboratory.deadline = max(laboratory.deadline, time.monotonic() + 0.2 * timeout)
    family, structural = laboratory.family(moves, Random(0))
    if laboratory.unfinished:
        given_up = "time was up while samples were drawn"
    batch = batch_variable(moves)
    names = names_of(family, moves.variables, batch)
    said("fitting")
    made = document_of(subject, family, names)
    return Study(name, subject, findings, laboratory, moves, structural, family, names, batch, made, given_up)


def apart(subjects: Mapping[str, Subject]) -> None:
    """Ask, before the work begins, whether the configs can be told apart.

    Raises:
        SymflopsError: they cannot.
    """
    if len(subjects) > 1:
        configs = []
        for one in subjects.values():
            try:
                configs.append(full_config(one.build(), one.config))
            except Exception as error:
                raise SymflopsError(f"{one.reference} does not build: {type(error).__name__}: {error}") from error
        guards_between(configs, [key for one in subjects.values() for key in leaves(one.config)], set(), list(subjects))


def reported(tell: Callable[[str], None], name: str, text: str) -> None:
    """Progress, with the name of the variant that it is of."""
    tell(f"{name}: {text}" if name else text)


def together(studies: Sequence[Study]) -> Document:
    """The documents of all configs as one."""
    return merged([Branch(one.name, one.document, one.family.samples[0].config, one.subject.config) for one in studies])


def passed(subject: Subject) -> list[gate.Finding]:
    """The gate."""
    try:
        with within(PATIENCE):
            model = subject.build()
            arguments = subject.arguments()
            needed("torch").manual_seed(0)
            tape = record(model, arguments, summed)
            needed("torch").manual_seed(0)
            findings = gate.check(model, arguments, summed, tape)
    except SymflopsError:
        raise
    except TooLongError as error:
        raise SymflopsError(f"{subject.reference} does not run: no answer within {PATIENCE:.0f} s") from error
    except Exception as error:
        raise SymflopsError(f"{subject.reference} does not run: {type(error).__name__}: {error}") from error
    for one in findings:
        if not one.equal:
            node = gate.culprit(tape, one)
            where = f"; look at '{node.word}' in '{node.path}'" if node else ""
            told = f"{one.measured:,} FLOPs counted, {one.taped:,} by the tape"
            raise GateError(f"{subject.reference} cannot be drafted: {one.name}: {told}{where}")
    return findings


def batch_variable(moves: Moves) -> Variable | None:
    """The variable that is the number of items."""
    firsts = (
        one for one in moves.variables if one.lead.kind == "dimension" and one.lead.key[-1] == 0 and len(one.lead.key) < 5
    )
    return next(firsts, None)


def document_of(subject: Subject, family: Family, names: Names) -> Document:
    """The document of a draft: with attention as an operator where symflops accepts that."""
    library = next(iter(specs_in(roots()[0])), None)
    made, failure = None, SymflopsError("nothing was written")
    for attention, grids in ((True, True), (True, False), (False, False)):
        writer = Grapher(family, names, fitter_of(names, family), attention, grids)
        writer.patterns = patterns_in(library.root) if library and attention else []
        try:
            made = document(subject.name, reference_of(subject), family, names, writer, class_defaults(subject))
            model_of(made.text, blocks()).graph(family.samples[0].config)
            break
        except SymflopsError:
            continue
        except Exception as error:  # a mistake of ours is told, and is no traceback
            failure = SymflopsError(f"{subject.reference} cannot be written as a spec: {type(error).__name__}: {error}")
    if made is None:
        raise failure
    return made


def blocks() -> Any:
    """What finds a block of the library by its name."""
    library = next(iter(specs_in(roots()[0])), None)
    return library.blocks() if library else lambda _: None


def reference_of(subject: Subject) -> str:
    """The class as a spec names it; nothing for a class that live verification does not import."""
    return f"{subject.package}.{subject.name}" if subject.package in ("transformers", "diffusers") else ""


def class_defaults(subject: Subject) -> Mapping[str, Any]:
    """What the class, or its config class, has for every field that nobody gives."""
    kind = class_of(subject.reference)
    return signature_of(getattr(kind, "config_class", None) or kind)


def read_back(found: Draft) -> Prover | None:
    """The draft as symflops reads it; where it does not, that is the first thing that is known of it."""
    try:
        model = model_of(found.text, blocks())
        for study in found.studies:
            model.graph(study.family.samples[0].config)
    except SymflopsError as error:
        found.proofs.append(Proof("reading it back", 1, [" ".join(str(error).split())[:400]]))
        return None
    return Prover(model, found.text, 1)


def proven(found: Draft, prover: Prover, study: Study) -> None:
    """Hold the draft against configurations of a study that its fit never saw."""
    laboratory, batch = study.laboratory, study.batch
    random = Random(12345)
    seen = [sample.state for sample in study.family.samples]
    proofs: list[Proof] = []
    for attempt in range(ATTEMPTS if study.free else 0):
        if len(proofs) >= HOLD_OUTS or laboratory.late():
            break
        laboratory.tell(f"proving {len(proofs)}/{HOLD_OUTS}")
        state = well_formed(study.free, random, SHARES[attempt % 3], study.family.samples[0].state, laboratory.most)
        if state is None or state in seen or laboratory.taped(state) is None:
            continue
        seen.append(state)
        own = {slot.label: state.get(slot, slot.value) for slot in study.names.lengths.values()}
        lengths = {name: own[label] for name, label in found.document.lengths.items() if label in own}
        items = state.get(batch.lead, batch.lead.value) if batch else 1
        told = ", ".join(f"{slot.label}={value}" for slot, value in state.items() if value != slot.value)
        told = f"{study.name}: {told}" if study.name else told
        proofs.append(replace(held(prover, told, laboratory.at(state), lengths, items), of=study.name))
        if len(proofs) > 2 and not any(proof.exact for proof in proofs):
            break
    found.proofs += proofs


def known(found: Draft, prover: Prover, published: Sequence[Subject]) -> None:
    """Hold the draft against published configs: each is of the study that has its parameters, if one has."""
    for number, one in enumerate(published, 1):
        groups = parameter_groups(one)
        like = [study for study in found.studies if groups in (None, groups_of(study.family.samples[0].plan.parameters))]
        if not like:
            found.decide.append(f"published config {number} has other parameters: it is another variant, see --variant")
            continue
        like = [study for study in like if ranks(one.inputs) == ranks(study.subject.inputs)]
        if not like:
            found.decide.append(f"published config {number} has inputs of other ranks: it is another variant")
            continue
        names, batch = like[0].names, like[0].batch
        own = {slot.label: dimension(one.inputs, slot.key, slot.value) for slot in names.lengths.values()}
        lengths = {name: own[label] for name, label in found.document.lengths.items() if label in own}
        items = dimension(one.inputs, batch.lead.key, batch.lead.value) if batch else 1
        found.proofs.append(replace(held(prover, f"published {number}", one, lengths, items), published=True))


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
    """A dimension of described inputs."""
    value: Any = inputs
    for part in key:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return default
    return int(value)


def decisions(study: Study) -> list[str]:
    """What a person still decides."""
    told = ["which pairs of attention are useful (masks and windows): the draft counts all that is executed"]
    config, family = study.subject.config, study.family
    fractions = [name for name, value in config.items() if isinstance(value, float)]
    switches = [name for name, value in family.samples[0].config.items() if isinstance(value, bool) and name in config]
    words = [name for name, value in config.items() if isinstance(value, str)]
    for what, names in (("fractions", fractions), ("switches", switches), ("words", words)):
        if names:
            told.append(f"{what} of the config, which are as given: {', '.join(sorted(names))}")
    if family.structural:
        told.append(f"{family.structural} samples had another structure: a variant, or a condition in the graph")
    for variable in [] if study.given_up else study.structural:
        told.append(f"{variable.lead.label} changes the structure")
    return told
