"""Compares a draft with the closed forms of its class, which a trace reads off the class with symbols as its sizes.

A draft whose difference from these forms is zero is right for all sizes of their domain. Outside of the domain, and where the
difference is not zero, the draft is compared with the real class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import sympy

from symflops.draft.prove.points import batch_at
from symflops.draft.prove.prove import FORMS, Proof, Prover, first_line
from symflops.draft.prove.vary_fields import FieldSurvey, Trial, renamed
from symflops.draft.study import Study
from symflops.draft.trace.steps import full_config
from symflops.draft.vary.slots import Slot, applied
from symflops.support.findings import SymflopsError
from symflops.verify.cases import LiveCase
from symflops.verify.census.fields import value_at
from symflops.verify.census.survey import EXACT, NONE, WRONG
from symflops.verify.classes import referenced
from symflops.verify.limits import attempt
from symflops.verify.running import EVERY, arguments_of
from symflops.verify.symbolic.comparison import Identity
from symflops.verify.symbolic.identity import comparison_of
from symflops.verify.symbolic.target import place_of
from symflops.verify.symbolic.traced import FIGURES, Traced, symbol, text_of

DEEP = 40  # layers at which parameters are compared
MOST_POINTS = 12
OPEN = ("kinds", "lengths", "shortest", "least", "related")  # words of a census under which a field may have other values


def forms_of(prover: Prover, study: Study, batch: tuple[Mapping[str, int], int], seconds: float) -> Identity:
    """Trace the class of a study, and subtract its closed forms from those of the draft.

    Args:
        prover: The prover of the draft.
        study: The study, whose config is the example of the trace.
        batch: Values of the draft's lengths, and the number of items, for the arguments of the study.
        seconds: Limit of the trace.
    """
    study.runner.tell("tracing its class")
    subject, found = study.subject, Identity("its class")
    try:
        config = full_config(subject.build(), subject.config)
        case = LiveCase({**subject.config, **subject.options}, prover.batch(config, *batch))
        kind = referenced(subject.reference)
        comparison_of(found, prover.model, kind, case, config, subject.arguments(), EVERY, seconds).run()
    except SymflopsError as error:
        found.failed = first_line(error)
    except Exception as error:  # a formula that cannot be translated, or a module that does not build again
        found.failed = f"{type(error).__name__}: {error}"[:300]
    return found


def same_work(traced: Traced, survey: FieldSurvey) -> bool:
    """Whether a trace, which runs a class in training mode, counts what the class costs in evaluation mode."""
    numbers = traced.numbers["forward"], traced.numbers["backward"]
    return traced.holds and survey.real is not None and survey.real.passes == numbers


def settled_fields(found: Identity, survey: FieldSurvey) -> set[str]:
    """Fields of which the draft is right for every number in the domain, as its formulas are those of the class there."""
    if found.traced is None or found.failed or found.gaps or not same_work(found.traced, survey):
        return set()
    return {name for name, one in found.traced.fields.items() if one.kind == "symbolic"}


def settle(found: Identity, survey: FieldSurvey, entry: Mapping[str, Any]) -> None:
    """Remove differences that vanish at the values for which the draft holds; adds why nothing is proven if that is so.

    Args:
        found: The difference of the draft and its class; changed in place.
        survey: The verdicts on the fields of the class.
        entry: The census of these fields.
    """
    if found.traced is None or found.failed or survey.real is None:
        return
    if not same_work(found.traced, survey):
        found.failed = "its trace is of another computation than that of the class in evaluation mode"
        return
    kept = [path for path, known in entry["guarded"].items() if not any(known.get(word) for word in OPEN)]
    names = [name for name in found.traced.fields if any(f"{name}.".startswith(f"{path}.") for path in kept)]
    held = {name: value_at(survey.config, place_of(name)) for name in names}
    at = {symbol(name): sympy.Integer(value) for name, value in held.items() if type(value) is int}
    gaps = {name: sympy.expand(gap.xreplace(at)) for name, gap in found.gaps.items()}
    gaps = {name: gap for name, gap in gaps.items() if gap != 0}
    found.gaps = gaps if gaps.keys() & set(FIGURES) else {}  # modules are where their parameters are, not where they run


def forms_proofs(found: Identity, survey: FieldSurvey, refused: Callable[[Mapping[str, Any]], bool]) -> Iterator[Proof]:
    """Proofs at which a draft is wrong: where it differs from its class's forms, just outside of their domain, and deeper.

    Args:
        found: The difference of the draft and its class.
        survey: The verdicts on the fields of the class.
        refused: Whether the census of the draft refuses a complete config.
    """
    traced = found.traced
    if traced is None or found.failed:
        return
    example = {name: one.value for name, one in traced.fields.items()}
    unseen, equal = traced.points() if found.gaps else [], 0
    near = [*unseen, *({**example, **point} for point in traced.beyond)][:MOST_POINTS]
    for point in (*near, *({**example, name: DEEP} for name in traced.depths)):
        trial, config = trial_at(traced, survey, point)
        if trial is None or refused(config) or attempt(partial(fits, survey, trial, config)) is False:
            continue
        row = survey.verdict("", {}, replace(trial, runs=point in near))
        if row.verdict == WRONG:
            own = (f"{one.origin or name}={point[name]}" for name, one in traced.fields.items() if point[name] != one.value)
            yield Proof(", ".join(own), 1, [row.why], FORMS, survey.study.name)
            return
        equal += point in unseen and row.verdict in (EXACT, NONE)
    if equal:
        found.numbers["a letter"] = "it could not be translated: at unseen configs the draft is exact"
        found.gaps = {}
    elif found.gaps:
        name, gap = next(iter(found.gaps.items()))
        yield Proof(f"its class's own formula of {name}", 1, [f"the draft has {text_of(gap)} more"], FORMS, survey.study.name)


def fits(survey: FieldSurvey, trial: Trial, config: Mapping[str, Any]) -> bool:
    """Whether the arguments of a trial have the shapes that the draft says, such as those of square pictures."""
    estimator, batch = survey.prover.estimator(config), survey.prover.batch(config, trial.lengths, trial.items)
    own = arguments_of(estimator.program, batch, estimator.sizes, {})
    return all(value_at(trial.subject.inputs, (name, "shape")) in (None, [*one.shape]) for name, one in own.items())


def trial_at(traced: Traced, survey: FieldSurvey, point: Mapping[str, int]) -> tuple[Trial | None, dict[str, Any]]:
    """(Trial with the fields and lengths of a point, complete config there); no trial if inputs given by value would change."""
    subject, state = survey.study.subject, dict[Slot, int]()
    for name, one in traced.fields.items():
        if point[name] == one.value or one.kind in ("dropped", "specialised"):
            continue
        if one.origin:
            argument, _, axis = one.origin.rpartition("[")
            slot = Slot("inputs", (*place_of(argument), "shape", int(axis[:-1])), one.value, "dimension")
            if not isinstance(value_at(subject.inputs, slot.key[:-1]), (list, tuple)):
                return None, {}
        else:
            slot = Slot("config", place_of(name), one.value)
        state[slot] = point[name]
    names = renamed(survey.kind)
    own = {names.get(name, name): value for name, value in subject.config.items()}
    whole = {str(slot.key[0]) for slot in state if slot.of_config and len(slot.key) > 1 and slot.key[0] not in own}
    config, inputs = applied({**{name: survey.config[name] for name in whole}, **own}, subject.inputs, state)
    fields = {slot: value for slot, value in state.items() if slot.of_config}
    trial = Trial(subject.having(config, inputs), *batch_at(survey.document, survey.study, inputs))
    return trial, applied(survey.config, {}, fields)[0]
