"""Studies one config of a class up to a document: gate, slots, samples, names, formulas."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from symflops.draft.fit.symbols import Names, class_defaults, fitter_of, names_of
from symflops.draft.polish.block_patterns import patterns_in
from symflops.draft.prove.prove import DRAWN, Proof, library, model_of
from symflops.draft.sample.samples import Family, Runner, explored, with_longer_inputs
from symflops.draft.sample.sampling import family_of
from symflops.draft.trace import gate
from symflops.draft.trace.steps import Subject
from symflops.draft.vary.variables import Moves, Variable
from symflops.draft.write.draft_document import Document, document
from symflops.draft.write.graph import Style
from symflops.support.findings import SymflopsError
from symflops.verify.classes import config_class_of, referenced, signature_of
from symflops.verify.symbolic.comparison import Identity
from symflops.verify.symbolic.traced import text_of

HOLD_OUTS = 5
WITH = " with "
EXPLORING, SAMPLING = 0.6, 0.2  # shares of the time limit
RUNS = 20  # runs that must fit into the time limit


def labels_of(variables: list[Variable]) -> list[str]:
    """Text of each variable, in order: the paths of the slots that are varied together, joined by ``with``."""
    return [WITH.join(slot.label for slot in one.slots) for one in variables]


@dataclass(slots=True)
class Study:
    """Findings at one config, before any proof.

    Attributes:
        name: The name of the variant; empty for the first config.
        subject: The class, the config and its inputs.
        runner: Runs the module.
        moves: Which numbers of config and inputs (slots) can be varied.
        family: The samples: runs of the module with other numbers.
        names: The symbols of everything that varies between the samples.
        batch: The variable of the batch size, None if that cannot be varied.
        document: The spec of this config, as data.
    """

    name: str
    subject: Subject
    runner: Runner
    moves: Moves
    family: Family
    names: Names
    batch: Variable | None
    document: Document

    @property
    def free(self) -> list[Variable]:
        """Variables that change sizes without changing the graph's structure."""
        return [variable for variable in self.moves.variables if variable not in self.family.structural]

    @property
    def stuck(self) -> list[str]:
        """Paths of the numbers (slots) that cannot be varied, or whose change changes the graph's structure."""
        structural = [variable.lead for variable in self.family.structural if variable.lead not in self.moves.filled]
        return [slot.label for slot in (*self.moves.stuck, *structural)]


@dataclass(slots=True)
class Draft:
    """A drafted spec with its findings, as plain data; filled in while drafting proceeds.

    Attributes:
        subject: The class, the first config and its arguments.
        names: The drafted variants; the first config has an empty name.
        text: The spec as YAML.
        gate: FLOPs of each config by PyTorch's counter and by the tape.
        moved: Variant -> (texts of the variables that were varied, paths of the slots that could not be).
        unsolved: Dimensions without a formula: (place in the graph, value in each sample).
        proofs: The comparisons with the real module.
        decide: Questions that a person must decide.
        samples: The number of samples that formulas were fitted to.
        runs: The number of runs of the module.
        seconds: Wall-clock time in seconds.
        processor: Processor time in seconds.
        given_up: Why drafting ended early; empty if it did not.
        reasons: Further reasons why the draft is partial.
        fields: The census, as :func:`symflops.draft.prove.verdict.entry_of` returns it.
        holds_for: Lines ``field: values`` for the fields of which the draft holds at these values alone.
        census: The text of the census file.
        forms: For each variant, the difference from the closed forms of the class; empty if samples were wrong already.
    """

    subject: Subject
    names: tuple[str, ...] = ("",)
    text: str = ""
    gate: list[gate.Finding] = field(default_factory=list)
    moved: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    unsolved: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    proofs: list[Proof] = field(default_factory=list)
    decide: list[str] = field(default_factory=list)
    samples: int = 0
    runs: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    given_up: str = ""
    reasons: list[str] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=lambda: {"described": [], "free": [], "guarded": {}, "words": {}})
    holds_for: list[str] = field(default_factory=list)
    census: str = ""
    forms: list[Identity] = field(default_factory=list)

    @property
    def varied(self) -> list[str]:
        """Texts of the variables (slots, joined by ``with``) that were varied in at least one variant."""
        return list(dict.fromkeys(label for varied, _ in self.moved.values() for label in varied))

    @property
    def stuck(self) -> list[str]:
        """Paths of the slots that were varied in no variant: the class refuses, or the structure changes."""
        free = {label for one in self.varied for label in one.split(WITH)}
        return list(dict.fromkeys(label for _, stuck in self.moved.values() for label in stuck if label not in free))

    @property
    def exact(self) -> bool:
        """Whether the draft is fully proven, with no reason to call it partial."""
        return not any(self.partial)

    @property
    def proof(self) -> str:
        """Why an exact draft is exact: at which sizes its formulas are its class's own, or why that is not known."""
        for one in self.forms:
            if one.traced is None or one.grade != "identity":
                numbers = (f"{name} is a number: {why}" for name, why in one.numbers.items())
                return f"for these configurations: {one.failed or next(numbers, one.traced.unproven if one.traced else '')}"
        domains = [[*map(text_of, one.traced.domain), *one.assumed] for one in self.forms if one.traced]
        conditions = dict.fromkeys(condition for domain in domains for condition in domain)
        return "for all sizes" + (f" where {', '.join(conditions)}" if conditions else "")

    @property
    def partial(self) -> Iterator[str]:
        """Reasons why the draft is partial, one line each."""
        if self.given_up:
            yield f"given up: {self.given_up}"
        if not self.gate or not all(one.equal for one in self.gate):
            yield "its tape differs from PyTorch's counter"
        if self.unsolved:
            yield f"{len(self.unsolved)} dimensions have no formula"
        yield from (f"differs at {one.label}: {one.differences[0]}" for one in self.proofs if one.differences)
        for name in self.names:
            drawn = sum(one.of == name and one.kind == DRAWN for one in self.proofs)
            if drawn < HOLD_OUTS or not self.moved.get(name, ([], []))[0]:
                which = f"{name}: " if name else ""
                yield f"{which}{drawn} configurations could be drawn that the fit never saw, of {HOLD_OUTS}"
        yield from self.reasons


def study_config(
    name: str, subject: Subject, timeout: float, tell: Callable[[str], None], found: Draft, keep: Callable[[Draft], None]
) -> Study:
    """Study the config of variant ``name`` within ``timeout`` seconds; progress messages go to ``tell``.

    Findings are added to ``found``, which is passed to ``keep`` after each stage.
    """
    started = time.process_time()

    def show(text: str) -> None:
        tell(f"{name}: {text}" if name else text)

    show("taping")
    found.gate += gate.findings_of(subject)
    keep(found)
    subject = with_longer_inputs(subject)
    runner = Runner(subject, started + EXPLORING * timeout, show, timeout / RUNS)
    moves = explored(runner)
    if runner.late():
        found.given_up = "time was up while numbers were moved"
    found.moved[name] = labels_of(moves.variables), [slot.label for slot in moves.stuck]
    keep(found)
    runner.deadline = max(runner.deadline, time.process_time() + SAMPLING * timeout)
    family = family_of(runner, moves, Random(0))
    if family.unfinished:
        found.given_up = "time was up while samples were drawn"
    found.samples += len(family.samples)
    found.runs += runner.runs
    batch = next((one for one in moves.variables if one.lead.first and len(one.lead.key) < 5), None)
    names = names_of(family, moves.variables, batch)
    names.filled |= class_defaults(runner, family.samples, names, signature(subject))
    show("fitting")
    study = Study(name, subject, runner, moves, family, names, batch, document_of(subject, family, names))
    found.moved[name] = labels_of(study.free), study.stuck
    return study


def document_of(subject: Subject, family: Family, names: Names) -> Document:
    """Document of a config in the first style that symflops reads back without an error.

    The styles are: attention operators and the axes of convolutions, attention operators alone, neither.
    """
    shelf = library()
    # live verification imports classes of these packages alone
    reference = f"{subject.package}.{subject.name}" if subject.package in ("transformers", "diffusers") else ""
    for attention, grids in ((True, True), (True, False), (False, False)):
        patterns = patterns_in(shelf.root) if shelf and attention else []
        names_of_blocks = {path.stem for path in (shelf.root / "blocks").glob("*.yaml")} if shelf else set()
        style, fitter = Style(attention, grids, patterns, names_of_blocks), fitter_of(names, family)
        made = document(subject.name, reference, family, names, fitter, style, signature(subject))
        with suppress(SymflopsError):
            model_of(made.text).graph(family.samples[0].config)
            break
    return made


def signature(subject: Subject) -> Mapping[str, Any]:
    """Parameter -> default value, from the signature of the config class, or of the class if it has none."""
    kind = referenced(subject.reference)
    return signature_of(config_class_of(kind) or kind)
