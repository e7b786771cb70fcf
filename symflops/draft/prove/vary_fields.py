"""Varies every config field of the real class, and compares class and draft at each variation.

The variations come from the census of the library; the inputs are those of the draft, adapted if they depend on the field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from math import isqrt
from random import Random
from typing import Any

from symflops.draft.prove.points import batch_of
from symflops.draft.prove.prove import FULL, Parameters, Proof, Prover, first_line, measured
from symflops.draft.sample.samples import SLOWER
from symflops.draft.study import Study
from symflops.draft.trace.steps import Subject, completed, full_config
from symflops.draft.trace.tape import taped
from symflops.draft.vary.slots import Slot, is_whole
from symflops.draft.vary.variables import State, moved
from symflops.draft.write.draft_document import Document
from symflops.support.findings import SymflopsError
from symflops.training.introspect.tree import starred
from symflops.verify.census.fields import ConfigField, fields_of, settable, undeclared, value_at
from symflops.verify.census.observation import with_values
from symflops.verify.census.survey import EXACT, NONE, REFUSED, UNBUILT, UNRUN, WRONG, Row, widths
from symflops.verify.census.variations import Changes, Words, alike, partnered, unlisted, variations
from symflops.verify.classes import plain_lists, referenced
from symflops.verify.limits import attempt

MOST_SECONDS = 20.0  # for one variation
MOST_ON_CPU = 3_000_000  # parameters
ENOUGH = 3  # accepted numbers per field
FAR = 4  # the largest number tried, as a multiple of the given value


@dataclass(frozen=True, slots=True)
class Real:
    """A real module with one config.

    Attributes:
        config: The complete config.
        parameters: Its parameters.
        passes: Forward and backward FLOPs; None if it did not run.
    """

    config: Mapping[str, Any]
    parameters: Parameters
    passes: tuple[int, int] | None

    @property
    def names(self) -> set[str]:
        """Parameter names with indices replaced by stars."""
        return set(map(starred, self.parameters.shapes))


@dataclass(frozen=True, slots=True)
class Trial:
    """A config and inputs at which to compare the draft with the real module.

    Attributes:
        subject: The class, config and inputs.
        lengths: The values of the draft's lengths.
        items: The batch size.
        runs: Whether the module runs, not only its parameters are compared.
    """

    subject: Subject
    lengths: Mapping[str, int]
    items: int
    runs: bool = True


@dataclass
class FieldSurvey:
    """Changes each field of a study's config to other values, and compares draft and real module there.

    Attributes:
        prover: The prover of the draft.
        document: The draft's document.
        study: The study; fields are varied from its config as given.
        late: Whether time is up.
        rows: The verdicts so far; their ``base`` is 1 if inputs were changed, too.
        counts: Field that determines the number of layers, at which the draft is wrong -> the difference.
        waiting: Fields that were not varied for lack of time.
        settled: Fields that need no ordinary numbers, as the draft is known to be right for all of them.
    """

    prover: Prover
    document: Document
    study: Study
    late: Callable[[], bool]
    rows: list[Row] = field(default_factory=list)
    counts: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    settled: Collection[str] = ()

    def __post_init__(self) -> None:
        subject, runner = self.study.subject, self.study.runner
        self.seconds = min(MOST_SECONDS, max(runner.seconds, SLOWER * runner.longest))
        self.kind, self.device = referenced(subject.reference), subject.device
        self.base = self.trial({})
        self.real = self.real_of(subject)
        self.device = self.faster(self.real)
        self.config = completed(self.kind, subject.config if self.real is None else self.real.config)
        self.fields = every_field(self.kind, self.config)
        self.words, self.random = Words(self.kind), Random(18)

    def faster(self, real: Real | None) -> str:
        """Device on which to run other configs: the CPU, if the module is small and has the same FLOPs there.

        Else it is the device of the study. ``real`` is the module with the config as given.
        """
        subject = replace(self.study.subject, device="cpu")
        model = attempt(subject.build, self.seconds) if real is not None and real.parameters.total < MOST_ON_CPU else None
        found = attempt(lambda: measured(model, subject.arguments()), self.seconds) if model is not None else None
        return "cpu" if real is not None and found is not None and found == real.passes else self.study.subject.device

    def is_small(self, subject: Subject) -> bool:
        """Whether a module has few enough parameters to run on the CPU."""
        own = replace(subject, device=self.study.subject.device)
        total = None if self.device == own.device else attempt(lambda: Parameters.of(own.build()).total, self.seconds)
        return total is not None and total < MOST_ON_CPU

    def trial(self, state: State) -> Trial:
        """Trial of the study's subject in a state (slot -> value)."""
        return Trial(self.study.runner.at(state), *batch_of(self.document, self.study, state))

    def real_of(self, subject: Subject, runs: bool = True) -> Real | None:
        """Build a subject, and measure its passes if it ``runs``; None if it cannot be built."""
        subject = replace(subject, device=self.device if self.is_small(subject) else self.study.subject.device)

        def built() -> tuple[Any, Real]:
            model = subject.build()
            return model, Real(full_config(model, subject.config), Parameters.of(model), None)

        found = attempt(built, self.seconds)
        if found is None or not runs:
            return found and found[1]
        return replace(found[1], passes=attempt(lambda: measured(found[0], subject.arguments()), self.seconds))

    def run(self) -> None:
        """Change every field of the config to other values, one at a time; adds the verdicts to ``rows``."""
        for number, item in enumerate(self.fields):
            if self.late() or self.real is None:
                self.waiting.append(item.path)
                continue
            self.study.runner.tell(f"varying {item.path} ({number + 1}/{len(self.fields)})")
            self.rows += self.of_field(item)

    def of_field(self, item: ConfigField) -> Iterator[Row]:
        """Verdicts on other values of one field; after a few numbers that the class accepts, no more numbers."""
        part = item.path.rpartition(".")[0]
        if part and not isinstance(value_at(self.config, part), Mapping):
            return
        value = plain_lists(value_at(self.config, item.path))
        if attempt(lambda: json.dumps(value)) is None:
            return  # a config file cannot contain such a value
        built = ENOUGH if item.path in self.settled else 0
        for other in variations(item, value, self.words.of(item), widths(self.config, part), self.random):
            number = is_whole(other) or isinstance(other, float)
            if number and built >= ENOUGH:
                continue
            if self.late():
                self.waiting.append(item.path)
                return
            row = self.judged(item, value, other)
            built += number and row.verdict not in (UNBUILT, UNRUN)
            yield row
        if value is None and any(one.path.startswith(f"{item.path}.") for one in self.fields):
            yield self.judged(item, value, {})  # a config inside it, with its defaults
        if is_whole(value) and value > 0:  # a prime reveals divisibility constraints, a multiple upper bounds
            near = () if self.is_of_inputs(item.path) else alike(item.path, value, self.config)
            yield from (self.judged(item, value, other) for other in (prime_after(value), FAR * value, *near))

    def is_of_inputs(self, path: str) -> bool:
        """Whether input dimensions are tied to a field: its value 1 would broadcast along unchanged inputs."""
        tied = (variable.slots for variable in self.study.moves.variables if path in map(path_of, variable.named))
        return any(not slot.of_config for slots in tied for slot in slots)

    def judged(self, item: ConfigField, value: Any, other: Any) -> Row:
        """Verdict on the draft at value ``other`` of a field, which is changed alone if the class runs so.

        Else inputs are changed with it, else a related field. ``value`` is the value as given.
        """
        unknown = Row(0, item.path, {item.path: other}, UNBUILT)
        for changes, trial in self.trials(item, value, other):
            found = self.verdict(item.path, changes, trial)
            if found.verdict not in (UNBUILT, UNRUN):
                return replace(found, base=int(trial.subject.inputs != self.base.subject.inputs))
            unknown = found if unknown.verdict == UNBUILT else unknown
        return unknown

    def trials(self, item: ConfigField, value: Any, other: Any) -> Iterator[tuple[Changes, Trial]]:
        """Pairs (field -> new value, trial) with ``other`` instead of ``value`` of a field, fewest changes first."""
        yield {item.path: other}, self.changed({item.path: other})
        if is_whole(value) and is_whole(other):
            for state in self.states(item.path, value, other):
                yield {item.path: other}, self.trial(state)
        for changes in partnered(item.path, value, other, self.config, self.fields):
            yield changes, self.changed(changes)

    def states(self, path: str, value: int, other: int) -> Iterator[State]:
        """States (slot -> value) with value ``other`` of a field instead of ``value``; tied slots follow."""
        for variable in self.study.moves.variables:
            slot = next((one for one in variable.named if one.of_config and path_of(one) == path), None)
            if slot is None or len(variable.slots) < 2:
                continue
            lead = variable.lead.value
            wanted = other - value + lead if slot in variable.delta else lead * other // max(value, 1)
            state = moved({}, [(variable, wanted)])
            if state is not None and slot.within(state) == other:
                yield state

    def changed(self, changes: Changes) -> Trial:
        """Trial of the study's subject with ``changes`` (field -> value) of its config."""
        subject = self.base.subject
        config = with_values(subject.config, changes, self.config, renamed(self.kind))
        return replace(self.base, subject=replace(subject, config=config))

    def verdict(self, path: str, changes: Changes, trial: Trial) -> Row:
        """Compare the real class with the draft at one trial; returns the verdict.

        ``path`` is the field that is judged, empty for none; ``changes`` are all changed fields.
        """
        row = Row(0, path, changes, UNBUILT)
        real = self.real_of(trial.subject, trial.runs)
        if real is None or self.real is None:
            return row
        same = real.parameters.shapes == self.real.parameters.shapes and real.parameters.total == self.real.parameters.total
        if real.passes is None and same:
            return replace(row, verdict=UNRUN)
        row = replace(row, config=completed(self.kind, real.config))
        why, refused = self.compared(real, trial)
        inert = same and real.passes == self.real.passes
        if why:
            if path and real.names == self.real.names and self.longer(real, trial):
                self.counts.setdefault(path, why)
            return replace(row, verdict=WRONG, why=why)
        if real.passes is None and not refused:
            return replace(row, verdict=UNRUN)
        return replace(row, verdict=REFUSED if refused else NONE if inert else EXACT, why=refused)

    def longer(self, real: Real, trial: Trial) -> bool:
        """Whether the module of a trial has other parameters or another number of contractions than as given."""
        assert self.real is not None
        if real.parameters.shapes.keys() != self.real.parameters.shapes.keys():
            return True
        counts = [contractions(subject, self.seconds) for subject in (self.base.subject, trial.subject)]
        return None not in counts and counts[0] != counts[1]

    def compared(self, real: Real, trial: Trial) -> tuple[str, str]:
        """Compare draft and module at a trial, with the config complete and as given.

        Returns:
            The first difference, empty if there is none; the error if the draft refuses both configs, else empty.
        """
        refused: list[str] = []
        readings = [real.config, trial.subject.config]
        for config in readings:
            proof = Proof("")
            try:
                self.prover.parameters(real.parameters, config, proof)
                if real.passes is not None:
                    batch = self.prover.batch(config, trial.lengths, trial.items)
                    proof.compare("full", real.passes, self.prover.passes(FULL, config, batch))
            except (SymflopsError, ArithmeticError, LookupError, ValueError) as error:
                refused.append(first_line(error))
            if proof.differences:
                return proof.differences[0], ""
        return "", refused[0] if len(refused) == len(readings) else ""


def prime_after(number: int) -> int:
    """The first prime number after a number.

    >>> [prime_after(number) for number in (1, 2, 6, 96)]
    [2, 3, 7, 97]
    """
    return next(one for one in count(number + 1) if all(one % part for part in range(2, isqrt(one) + 1)))


def contractions(subject: Subject, seconds: float) -> int | None:
    """Number of contractions in a forward pass of a subject; None if it fails or takes too long."""
    return attempt(lambda: sum(1 for node in taped(subject)[2].nodes if node.sizes), seconds)


def path_of(slot: Slot) -> str:
    """Dotted path of a slot of the config, as in a census."""
    return ".".join(map(str, slot.key))


def renamed(kind: Any) -> Mapping[str, str]:
    """Alias of a field -> its name, from the ``attribute_map`` of the config class."""
    return getattr(getattr(kind, "config_class", None), "attribute_map", None) or {}


def every_field(kind: Any, config: Mapping[str, Any]) -> list[ConfigField]:
    """All public config fields of a class: declared, settable, undeclared, and those of sub-configs."""
    found = [item for item in [*fields_of(kind), *unlisted(kind), *settable(kind)] if not item.path.startswith("_")]
    known = {item.path for item in found}
    parts = [name for name in config if name in known and isinstance(config[name], Mapping)]
    inner = [ConfigField(f"{name}.{key}") for name in parts for key in config[name] if isinstance(key, str)]
    inner = [item for item in inner if item.path not in known and not any(path.startswith(f"{item.path}.") for path in known)]
    return [*(item for item in found if item.path not in parts), *inner, *undeclared(kind, config, known)]
