"""Calls that keep a state: prompts, steps and generations of the real classes with their caches, live and as recorded."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from symflops.api import Model, load
from symflops.read.spec_files import shipped, specs_in
from symflops.verify.cases import LiveCase, cases_of
from symflops.verify.classes import class_of
from symflops.verify.records import Record, read_records, verify_record
from tests.sampling import sampled
from tests.verify.decoding import measured

RECORDS = [record for record in read_records(Path(__file__).parents[1] / "data" / "regimes") if "-decoding/" in record["id"]]
CLASSES = list(dict.fromkeys(record["class"] for record in RECORDS))
LIVE = ["mistral", "mamba2", "deepseek_v2", "bart", "qwen2_vl"]
"""Specs with a window, with a recurrence, with latents, with an encoder, and with images."""


@cache
def owner(name: str) -> Model:
    """The model of a class."""
    own = (file for file in specs_in(shipped("specs")) if file.group not in ("papers", "assumed"))
    return next(model for model in map(load, own) if any(one.endswith(f".{name}") for one in model.spec.references))


def generating(model: Model) -> LiveCase:
    """The first case of the first class that generates."""
    reference = next(name for name in model.spec.references if getattr(class_of(name), "can_generate", bool)())
    return replace(next(case for case in cases_of(model.file) if case.reference in ("", reference)), reference=reference)


@pytest.mark.parametrize("name", sampled(LIVE, 2, 1))
def test_calls_of_the_real_class_with_its_cache(name: str) -> None:
    model = load(name)
    _, config, calls = measured(model, generating(model))
    estimators = {regime: model.estimator(config, regime, "torch") for regime in ("prefill", "decode", "generate")}
    assert len(calls) > 10
    for call, batch in calls:
        estimator = estimators[call.regime]
        moments = estimator.moments(**batch)
        assert (estimator.forward(moments), sum(estimator.cache(moments).values())) == (call.forward, call.cache), call


@pytest.mark.parametrize("name", sampled(CLASSES, 12, 3))
def test_recorded_calls_are_exact(name: str) -> None:
    found = [record for record in RECORDS if record["class"] == name]
    assert {record["regime"]["decode"] for record in found} == {"prefill", "step", "generate"}
    for record in found:
        verdict = verify_record(owner(name), record)
        assert verdict.status == "exact", (record["id"], verdict.why or (verdict.expected, verdict.derived))


def test_a_wrong_figure_of_a_call_is_seen() -> None:
    record: Record = next(record for record in RECORDS if record["class"] == "LlamaForCausalLM")
    for name in ("fwd_flops", "cache"):
        assert verify_record(owner("LlamaForCausalLM"), {**record, name: record[name] + 2}).status == "mismatch"
