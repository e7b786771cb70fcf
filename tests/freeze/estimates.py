"""The figures of one spec: parameters, FLOPs of every pass, modules, tensors and closed forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symflops.runtime.interpreted import InterpretedEstimator

import symflops
from tests.freeze.calling import digest, first_line
from tests.freeze.cases import CACHED, CONVENTIONS, REGIMES, Case, batch_for, cases_of

Figures = Iterator[tuple[str, Any]]
Programs = Mapping[tuple[str, str], Any]  # by regime and convention; where there is none, the text of the error
FEW_CONVENTIONS = ("megatron", "palm", "symflops", "torch", "verl")
FEW_REGIMES = ("checkpointed", "forward", "full", "lora")


def figures_of(spec: str, quick: bool = False) -> Figures:
    """Every figure of a spec: closed forms, then a list of numbers per case, regime and convention."""
    model = symflops.load(spec)
    yield from closed_forms(spec, model)
    cases = cases_of(spec)[: 1 if quick else None]
    shared = programs_of(model, None, REGIMES, CONVENTIONS) if cases else {}
    whole = not any(isinstance(found, str) and found.startswith("structural") for found in shared.values())
    for case in cases:
        if whole:
            programs = shared
        elif case.main:
            programs = programs_of(model, case.config, REGIMES, CONVENTIONS)
        else:
            programs = programs_of(model, case.config, FEW_REGIMES, FEW_CONVENTIONS)
        yield from figures_of_case(spec, case, programs)


def closed_forms(spec: str, model: Any) -> Figures:
    """A digest of the closed forms of all configs, under each regime and the two conventions that every module knows."""
    for regime in REGIMES:
        for convention in ("symflops", "torch"):
            try:
                found = model.derive(regime=regime, convention=convention)
                told = digest([found.forward, found.backward])
            except Exception as error:
                told = text_of(error)
            yield f"{spec}|forms|{regime}|{convention}", told


def programs_of(model: Any, config: Mapping[str, Any] | None, regimes: Sequence[str], conventions: Sequence[str]) -> Programs:
    """A program for each regime and convention; one for all where it can be, since a derivation takes its time."""
    found: dict[tuple[str, str], Any] = {}
    fine = []
    for regime in regimes:
        try:
            model.check_regime(regime, config)
            fine.append(regime)
        except Exception as error:
            found[regime, ""] = text_of(error)
    for together in ([name for name in fine if name not in CACHED], *([name] for name in fine if name in CACHED)):
        try:
            found |= dict.fromkeys(pairs(together, conventions), model.program(together, conventions, config))
        except Exception:
            for one in conventions:
                found |= dict.fromkeys(pairs(together, [one]), program_or_error(model, together, one, config))
    return found


def pairs(regimes: Sequence[str], conventions: Sequence[str]) -> list[tuple[str, str]]:
    """Each of some regimes with each of some conventions."""
    return [(regime, convention) for regime in regimes for convention in conventions]


def program_or_error(model: Any, regimes: Sequence[str], convention: str, config: Mapping[str, Any] | None) -> Any:
    """The program under one convention, or the text of the error."""
    try:
        return model.program(regimes, [convention], config)
    except Exception as error:
        return text_of(error)


def text_of(error: Exception) -> str:
    """An error as a figure: what a user is told, or the type of what should not have been raised."""
    return first_line(error) if isinstance(error, symflops.SymflopsError) else f"crash: {type(error).__name__}"


def figures_of_case(spec: str, case: Case, programs: Programs) -> Figures:
    """The figures of one case: numbers per regime and convention, and per regime a digest of what they are sums of."""
    parts: dict[str, list[Any]] = {}
    for (regime, convention), program in programs.items():
        key = f"{spec}|{case.label}|{regime}|{convention}".rstrip("|")
        if isinstance(program, str):
            yield key, program
        elif case.main or (regime in FEW_REGIMES and convention in FEW_CONVENTIONS) or convention in ("symflops", "torch"):
            try:
                estimator = InterpretedEstimator(program, case.config, regime=regime, convention=convention)
                numbers, part = figures_of_estimator(estimator, batch_for(regime, case.batch))
            except Exception as error:
                numbers, part = text_of(error), []
            yield key, numbers
            parts.setdefault(regime, []).append(part)
    for regime, found in parts.items():
        yield f"{spec}|{case.label}|{regime}|modules", digest(found)


def figures_of_estimator(estimator: Any, batch: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The five numbers of an estimator, and its moments, modules and tensors."""
    moments = estimator.moments(**batch)
    modules = {name: [one.forward, one.backward, one.recomputed] for name, one in estimator.by_module(moments).items()}
    numbers = [estimator.parameters, estimator.trainable_parameters]
    numbers += [estimator.forward(moments), estimator.backward(moments), estimator.recomputed(moments)]
    return numbers, [moments.as_dict(), modules, estimator.tensors()]
