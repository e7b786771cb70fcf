"""Drafts one config of a class up to its document: gate, moves, samples, names, formulas."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from symflops.diagnostics.findings import SymflopsError
from symflops.draft.fit.class_defaults import class_defaults
from symflops.draft.fit.naming import fitter_of, names_of
from symflops.draft.fit.symbols import Names
from symflops.draft.polish.block_patterns import patterns_in
from symflops.draft.prove.read_back import library, model_of
from symflops.draft.sample.chunks import lengthened
from symflops.draft.sample.family import Family
from symflops.draft.sample.numbers import explored
from symflops.draft.sample.runner import Runner
from symflops.draft.sample.sampling import family_of
from symflops.draft.study import Draft, Study, labels_of
from symflops.draft.trace import gate
from symflops.draft.trace.subject import Subject, class_of
from symflops.draft.vary.variables import Moves, Variable
from symflops.draft.write.document import Document, document
from symflops.draft.write.graph import Grapher
from symflops.witness.defaults import signature_of

EXPLORING, SAMPLING = 0.6, 0.2  # shares of the time limit
RUNS = 20  # that fit into the time limit at least


def studied(
    name: str, subject: Subject, timeout: float, tell: Callable[[str], None], found: Draft, keep: Callable[[Draft], None]
) -> Study:
    """Study one config.

    Args:
        name: The variant, empty for the first config.
        subject: The class with this config.
        timeout: In seconds.
        tell: Shows progress.
        found: The draft, to which the findings are added.
        keep: Called with the draft whenever there is more of it.
    """
    started = time.monotonic()

    def show(text: str) -> None:
        tell(f"{name}: {text}" if name else text)

    show("taping")
    found.gate += gate.passed(subject)
    keep(found)
    subject = lengthened(subject)
    runner = Runner(subject, started + EXPLORING * timeout, show, timeout / RUNS)
    moves = explored(runner)
    if runner.late():
        found.given_up = "time was up while numbers were moved"
    found.moved[name] = labels_of(moves.variables), [slot.label for slot in moves.stuck]
    keep(found)
    runner.deadline = max(runner.deadline, time.monotonic() + SAMPLING * timeout)
    family = family_of(runner, moves, Random(0))
    if family.unfinished:
        found.given_up = "time was up while samples were drawn"
    found.samples += len(family.samples)
    found.runs += runner.runs
    batch = batch_variable(moves)
    names = names_of(family, moves.variables, batch)
    names.filled |= class_defaults(runner, family.samples, names, signature(subject))
    show("fitting")
    study = Study(name, subject, runner, moves, family, names, batch, document_of(subject, family, names))
    found.moved[name] = study.varied, study.stuck
    return study


def batch_variable(moves: Moves) -> Variable | None:
    """The variable of the number of items."""
    return next((one for one in moves.variables if one.lead.first and len(one.lead.key) < 5), None)


def document_of(subject: Subject, family: Family, names: Names) -> Document:
    """The document of a draft, with attention as an operator, and on grids, if symflops accepts that."""
    shelf = library()
    for attention, grids in ((True, True), (True, False), (False, False)):
        writer = Grapher(family, names, fitter_of(names, family), attention, grids)
        writer.patterns = patterns_in(shelf.root) if shelf and attention else []
        writer.blocks = {path.stem for path in (shelf.root / "blocks").glob("*.yaml")} if shelf else set()
        made = document(subject.name, reference_of(subject), family, names, writer, signature(subject))
        try:
            model_of(made.text).graph(family.samples[0].config)
            break
        except SymflopsError:
            continue
    return made


def reference_of(subject: Subject) -> str:
    """The class as a spec names it; empty for a class that live verification does not import."""
    return f"{subject.package}.{subject.name}" if subject.package in ("transformers", "diffusers") else ""


def signature(subject: Subject) -> Mapping[str, Any]:
    """The defaults in the signature of the class, or of its config class."""
    kind = class_of(subject.reference)
    return signature_of(getattr(kind, "config_class", None) or kind)
