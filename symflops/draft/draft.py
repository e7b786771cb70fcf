"""Drafts a spec: tape and gate, what moves, samples, formulas, the text, and its proof against the real module."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Any

from symflops.diagnostics.findings import SymflopsError
from symflops.draft.chunks import lengthened
from symflops.draft.fit.class_defaults import absent
from symflops.draft.fit.config_conditions import guards_between
from symflops.draft.fit.symbols import Names, fitter_of, names_of
from symflops.draft.limits import PATIENCE, TooLongError, within
from symflops.draft.polish.block_patterns import patterns_in
from symflops.draft.polish.merge import Branch, leaves, merged
from symflops.draft.prove.holdouts import blocks, held_against, library
from symflops.draft.prove.prove import model_of
from symflops.draft.sample.family import Family
from symflops.draft.sample.sampling import Laboratory
from symflops.draft.study import WITH, Draft, Study
from symflops.draft.trace import gate
from symflops.draft.trace.subject import Subject, class_of, full_config, summed
from symflops.draft.trace.tape import record
from symflops.draft.vary.levels import levelled
from symflops.draft.vary.vary import Moves, Variable
from symflops.draft.write.document import Document, document
from symflops.draft.write.graph import Style
from symflops.witness.defaults import signature_of
from symflops.witness.tensors import needed


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

    ``timeout`` is in seconds, for each of the configs; ``keep`` is called with what is known whenever there is more of it.

    Raises:
        SymflopsError: the module does not run, or no field of the configs tells the variants apart.
        GateError: its tape and PyTorch's counter differ.
    """
    started, processor = time.monotonic(), time.process_time()
    subject = levelled(subject, published)
    subjects = {"": subject, **variants}
    apart(subjects)
    found = Draft(subject, tuple(subjects))
    studies: list[Study] = []
    try:
        for name, one in subjects.items():
            studies.append(studied(name, one, timeout, tell, found, keep))
        made = together(studies)
    except (SymflopsError, TooLongError):
        raise
    except Exception as error:  # a mistake of ours must not lose what is known
        found.given_up = f"the graph could not be written: {type(error).__name__}: {error}"
    else:
        found.text, found.unsolved = made.text, [(one.place, one.values) for one in made.unsolved]
        keep(found)
        held_against(found, made, studies, published, started + timeout * len(studies), 0.2 * timeout)
    found.decide += dict.fromkeys(one for study in studies for one in decisions(study, found))
    found.seconds = time.monotonic() - started
    found.processor = time.process_time() - processor
    return found


def studied(
    name: str, subject: Subject, timeout: float, tell: Callable[[str], None], found: Draft, keep: Callable[[Draft], None]
) -> Study:
    """One config: gate, moves, samples, and what they say."""
    started = time.monotonic()
    said = partial(reported, tell, name)
    said("taping")
    found.gate += passed(subject)
    keep(found)
    subject = lengthened(subject)
    laboratory = Laboratory(subject, started + 0.6 * timeout, said, patience=timeout / 20)
    moves = laboratory.moves()
    if laboratory.late():
        found.given_up = "time was up while numbers were moved"
    found.moved[name] = (
        [WITH.join(slot.label for slot in one.slots) for one in moves.variables],
        [slot.label for slot in moves.stuck],
    )
    keep(found)
    laboratory.deadline = max(laboratory.deadline, time.monotonic() + 0.2 * timeout)
    family, structural = laboratory.family(moves, Random(0))
    if laboratory.unfinished:
        found.given_up = "time was up while samples were drawn"
    found.samples += len(family.samples)
    found.runs += laboratory.runs
    batch = batch_variable(moves)
    names = names_of(family, moves.variables, batch)
    names.filled |= absent(laboratory, family.samples, names, class_defaults(subject))
    said("fitting")
    study = Study(name, subject, laboratory, moves, structural, family, names, batch, document_of(subject, family, names))
    found.moved[name] = study.varied, study.stuck
    return study


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
    shelf = library()
    for attention, grids in ((True, True), (True, False), (False, False)):
        patterns = patterns_in(shelf.root) if shelf and attention else []
        names_of_blocks = {path.stem for path in (shelf.root / "blocks").glob("*.yaml")} if shelf else set()
        style, fitter = Style(attention, grids, patterns, names_of_blocks), fitter_of(names, family)
        made = document(subject.name, reference_of(subject), family, names, fitter, style, class_defaults(subject))
        try:
            model_of(made.text, blocks()).graph(family.samples[0].config)
            break
        except SymflopsError:
            continue
    return made


def reference_of(subject: Subject) -> str:
    """The class as a spec names it; nothing for a class that live verification does not import."""
    return f"{subject.package}.{subject.name}" if subject.package in ("transformers", "diffusers") else ""


def class_defaults(subject: Subject) -> Mapping[str, Any]:
    """What the class, or its config class, has for every field that nobody gives."""
    kind = class_of(subject.reference)
    return signature_of(getattr(kind, "config_class", None) or kind)


def decisions(study: Study, found: Draft) -> list[str]:
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
    for variable in [] if found.given_up else study.structural:
        told.append(f"{variable.lead.label} changes the structure")
    return told
