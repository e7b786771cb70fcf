"""Varies every field of a real class's config, and compares the class with the spec's derivation at each variation."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from symflops.api import Model, program_in
from symflops.compiler import Goal
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.parameters import Shape
from symflops.evaluate.sizes import sizes_of
from symflops.evaluate.stored import config_value, stored_of
from symflops.ir.program import Program
from symflops.support.findings import SymflopsError
from symflops.verify.cases import LiveCase
from symflops.verify.census.fields import ConfigField, fields_of, further_fields, read_fields, value_at
from symflops.verify.census.observation import Derived, Observed, TooSlowError, fitting, flops, observed, with_values
from symflops.verify.census.variations import Changes, Words, alike, edges, partnered, unlisted, variations
from symflops.verify.classes import class_of, in_evaluation, plain_lists
from symflops.verify.live import Estimated, masks_of, outputs_of

UNBUILT, UNRUN, NONE, EXACT, REFUSED, WRONG = "unbuilt", "unrun", "none", "exact", "refused", "wrong"
SEED = 18
ENOUGH = 2
"""How many buildable numbers are compared per field at the first base; at other bases it is one."""
MANY_WORDS = 12
"""If a field has more words than this, the first base tries all, the others try two."""
LARGE = 100_000_000
"""Models with more elements stay on the meta device, where masks are not compared; smaller bases vary the same fields."""


@dataclass(frozen=True, slots=True)
class Row:
    """One variation: an exact case (the base) with a changed config, and the verdict on it.

    Attributes:
        base: The number of the base among the cases of the class.
        path: The dotted path of the field that is varied.
        changes: Path -> new value; more than one entry if the field cannot change alone.
        verdict: ``unbuilt`` (the class refuses it), ``unrun`` (equal parameters, but it did not run), ``none`` (without
            effect), ``exact``, ``refused`` (by the estimate) or ``wrong``.
        why: What differs between spec and class, or why the spec or the class refuses the config.
        edge: Whether it is a boundary value, tried at the first base in addition to ``ENOUGH`` numbers.
        config: The complete config after the change.
        batch: Stream -> lengths on which both passes ran.
        parameters: Shapes of the real class's parameters, by name.
        passes: FLOPs of both passes of the real class; None if it did not run.
    """

    base: int
    path: str
    changes: Changes
    verdict: str
    why: str = ""
    edge: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    batch: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Shape] = field(default_factory=dict)
    passes: tuple[int, int] | None = None

    def is_informative(self, parameters: Mapping[str, Shape]) -> bool:
        """Whether the variation is worth recording: the class runs, or its parameters differ from the base's.

        ``parameters`` are the shapes of the base's parameters, by name.
        """
        return self.passes is not None or self.parameters != parameters

    def as_json(self) -> dict[str, Any]:
        """Convert the variation and its verdict to JSON data, without config, batch, shapes and FLOPs."""
        shown = {"base": self.base, "path": self.path, "changes": dict(self.changes), "verdict": self.verdict}
        return {**shown, **({"why": self.why} if self.why else {})}


class Derivations:
    """Derives programs of one spec for configs; configs of the same structure share a program."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.programs: list[tuple[Program, Program]] = []  # with and without conditions on sizes

    def derived(self, config: Mapping[str, Any], unfit: bool = False) -> Derived:
        """Derive program and estimator for a config, without the checks by the census.

        With ``unfit``, conditions on sizes are not checked either.

        Raises:
            SymflopsError: the spec refuses the config.
        """
        config = in_evaluation(self.model.spec, config)
        pair = next((pair for pair in self.programs if fits(pair[1], config)), None)
        if pair is None:
            program = program_in(self.model.compiled(Goal.PROGRAM, ["full"], ["torch"], config, census=None))
            pair = program, replace(program, requirements=())
            self.programs.append(pair)
        found = pair[unfit]
        return Derived(found, InterpretedEstimator(found, config, regime="full", convention="torch"))


def fits(program: Program, config: Mapping[str, Any]) -> bool:
    """Whether a config has the values of the sizes that a program fixes."""
    stored = stored_of(program)
    sizes = sizes_of(stored, config)
    return all(config_value(sizes[letter]) == value for letter, value in stored.fixed)


@dataclass
class Base:
    """A case at which the spec is exact, built as a small real model; the fields of its config are varied.

    ``seen`` is the real model, ``derived`` what the spec derives for it, ``number`` the position among the cases of the class.
    """

    number: int
    case: LiveCase
    seen: Observed
    derived: Derived

    @property
    def json(self) -> Mapping[str, Any]:
        """The complete config of the real model."""
        return self.seen.config


class Survey:
    """Takes the census of one class: varies its config and compares each variation with the spec."""

    def __init__(self, model: Model, reference: str, cases: list[LiveCase], seed: int = SEED) -> None:
        self.model, self.reference, self.random = model, reference, random.Random(seed)
        self.folder = model.file.path.parent
        self.kind = class_of(reference, self.folder)
        self.aliases: Mapping[str, str] = getattr(getattr(self.kind, "config_class", None), "attribute_map", {})
        self.fields = fields_of(self.kind)
        self.words = Words(self.kind)
        self.derivations = Derivations(model)
        self.outputs = outputs_of(model)
        self.bases = list(self._bases(cases))
        if not self.bases:
            raise SymflopsError(f"none of the {len(cases)} cases of {reference} is exact and runs: 'symflops verify' tells why")
        read = read_fields(model.spec.sizes, [*self.aliases, *(item.path for item in self.fields)])
        self.fields += further_fields(self.fields, [base.json for base in self.bases], read)
        known = {item.path for item in self.fields}
        self.unlisted = [item for item in unlisted(self.kind) if item.path not in known]
        self.fields += self.unlisted

    def _bases(self, cases: list[LiveCase]) -> Iterator[Base]:
        """Yield the cases at which the spec is exact, on the CPU if the model is small."""
        options = {name: value for case in cases for name, value in case.options.items()}
        for number, case in enumerate(replace(case, options=options | dict(case.options)) for case in cases):
            for one in self._placed(case):
                with suppress(SymflopsError):
                    seen = observed(self.reference, one, self.folder)
                    derived = self.derivations.derived(seen.config)
                    alike = not difference(seen, derived) and not self.other_masks(one)
                    if alike and flops(seen, one, derived, self.outputs) == derived.passes(case.batch):
                        yield Base(number, one, seen, derived)
                        break

    def _placed(self, case: LiveCase) -> Iterator[LiveCase]:
        """Yield a case on the CPU if its model is small, then the case unchanged."""
        with suppress(SymflopsError):
            if observed(self.reference, case, self.folder).elements <= LARGE:
                yield replace(case, device="cpu")
        yield case

    def rows(self) -> Iterator[Row]:
        """Yield the verdict on every variation of every field of the config, at every base."""
        for item in self.fields:
            for base in self.bases:
                yield from self.of_field(item, base)

    def of_field(self, item: ConfigField, base: Base) -> Iterator[Row]:
        """Yield the verdict on each variation of one field at one base; boundary numbers come last."""
        part = item.path.rpartition(".")[0]
        if part and not isinstance(value_at(base.json, part), Mapping):
            return
        value = plain_lists(value_at(base.json, item.path))
        built, tried = 0, []
        words = self.words.of(item)
        if base is not self.bases[0] and len(words) > MANY_WORDS:
            words = self.random.sample(words, 2)
        for other in variations(item, value, words, widths(base.json, part), self.random):
            number = isinstance(other, (int, float)) and not isinstance(other, bool)
            if number and built >= (ENOUGH if base is self.bases[0] else 1):
                continue
            found = self.judged(item.path, {item.path: other}, base)
            if found.verdict == UNBUILT:
                pairs = partnered(item.path, value, other, base.json, self.fields)
                more = (self.judged(item.path, changes, base) for changes in pairs)
                found = next((row for row in more if row.verdict not in (UNBUILT, UNRUN)), found)
            built += number and found.verdict not in (UNBUILT, UNRUN)
            tried.append(other)
            yield found
        near = [*edges(item, value), *alike(item.path, value, base.json, (1, 2))]
        for other in dict.fromkeys(near) if base is self.bases[0] else ():
            if not any(type(known) is int and known == other for known in tried):
                yield replace(self.judged(item.path, {item.path: other}, base), edge=True)

    def judged(self, path: str, changes: Changes, base: Base) -> Row:
        """Build and run the class with ``changes``, compare it with the spec, and return the verdict."""
        case = replace(base.case, config=with_values(base.case.config, changes, {}, self.aliases))
        try:
            seen = observed(self.reference, case, self.folder)
        except SymflopsError as error:
            slow = isinstance(error, TooSlowError)  # a model of another size says nothing about what the class accepts
            return Row(base.number, path, changes, UNRUN if slow else UNBUILT, str(error))
        row = Row(base.number, path, changes, EXACT, "", False, seen.config, case.batch, seen.parameters)
        try:
            derived = self.derivations.derived(row.config)
        except SymflopsError as error:
            return self.refused(row, base, changes, seen, case, str(error))
        run = self.run(base, changes, seen, case, derived)
        try:
            why = difference(seen, derived)
        except SymflopsError as error:  # a null that the layers of a path depend on
            return replace(row, verdict=REFUSED, why=str(error), batch=run.case.batch, passes=run.real)
        row = replace(row, batch=run.case.batch, passes=run.real)
        if run.real is None or why:
            return replace(row, verdict=WRONG if why else UNRUN, why=why)
        if run.real != run.derived:
            return replace(row, verdict=WRONG, why=f"forward, backward: {run.derived} for {run.real}")
        if why := self.other_masks(run.case):
            return replace(row, verdict=WRONG, why=why)
        same = seen.parameters == base.seen.parameters and run.real == run.before
        return replace(row, verdict=NONE if same else EXACT)

    def other_masks(self, case: LiveCase) -> str:
        """Describe how the class's masks differ from the spec's, or between its attention implementations.

        The text is empty if they do not differ, and for a case that does not run on the CPU.
        """
        masks = masks_of(self.model, case, self.estimated) if case.device == "cpu" else None
        return str(masks) if masks and (masks.modules or masks.unlike) else ""

    def estimated(self, config: Mapping[str, Any]) -> Estimated:
        """Derive (program, values of the sizes by letter) for a config."""
        found = self.derivations.derived(config)
        return found.program, found.estimator.sizes

    def refused(self, row: Row, base: Base, changes: Changes, seen: Observed, case: LiveCase, why: str) -> Row:
        """Return ``row`` with the verdict on a config that the spec refuses for the reason ``why``.

        The verdict is ``unrun`` if only a condition on sizes is violated and the class fails to run as well, else ``refused``.
        """
        derived, unfit = base.derived, False  # of the base, for the arguments alone
        with suppress(SymflopsError):
            derived, unfit = self.derivations.derived(row.config, unfit=True), True
        run = self.run(base, changes, seen, case, derived)
        verdict = UNRUN if unfit and run.real is None else REFUSED
        return replace(row, verdict=verdict, why=why, batch=run.case.batch, passes=run.real)

    def run(self, base: Base, changes: Changes, seen: Observed, case: LiveCase, derived: Derived) -> Run:
        """Run the real model ``seen`` on a fitting batch; if its FLOPs are not as derived, on a longer one.

        Texts shorter than a kernel, and images that are no multiple of a patch, say nothing about a field.
        """
        known = {name: value_at(base.json, name) for name in changes}
        found: list[Run] = []
        for fitted in fitting(case, known, changes):
            with suppress(SymflopsError):
                batch = fitted.batch
                real = flops(seen, fitted, derived, self.outputs)
                found.append(Run(fitted, real, derived.passes(batch), base.derived.passes(batch)))
            if found and (found[-1].real == found[-1].derived or len(found) > 1):
                break
        return next((one for one in found if one.real == one.derived), found[0] if found else Run(case))


@dataclass(frozen=True, slots=True)
class Run:
    """Pairs (forward FLOPs, backward FLOPs) on the batch of ``case``; None if the model did not run.

    ``real`` is measured, ``derived`` is derived for the same config, ``before`` for the config of the base.
    """

    case: LiveCase
    real: tuple[int, int] | None = None
    derived: tuple[int, int] | None = None
    before: tuple[int, int] | None = None


def difference(seen: Observed, derived: Derived) -> str:
    """Name up to three parameters whose shapes differ between real model and spec, as text; empty if none."""
    claimed = derived.parameters(seen.aliases)
    if claimed is None:
        return "parameters: one is claimed twice"
    if claimed == dict(seen.parameters):
        return ""
    wrong = [name for name in {**seen.parameters, **claimed} if claimed.get(name) != seen.parameters.get(name)]
    return f"parameters: {', '.join(wrong[:3])}"


def widths(config: Mapping[str, Any], part: str) -> list[int]:
    """Up to three integers from 8 to 4095 in a config, commonest first, to try in fields that are null.

    ``part`` is the path of a nested config from which they are taken; empty for the config itself.
    """
    inner = value_at(config, part) if part else config
    numbers = [value for value in inner.values() if type(value) is int and 8 <= value < 4096]
    return sorted(dict.fromkeys(numbers), key=lambda value: (-numbers.count(value), value))[:3]
