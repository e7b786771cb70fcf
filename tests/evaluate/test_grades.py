"""The grade of a regime: measured with a record of the class, and with each rule of the regime measured on each kind of operator."""

from __future__ import annotations

import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from symflops import api, estimate
from symflops.cli.main import main
from symflops.evaluate.evidence import AS_SPECIFIED, MEASURED, PROVEN, grade_of
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.regime import Regime
from symflops.library import lookup
from symflops.library.catalog import catalogs
from symflops.read.spec_files import pages
from symflops.support.errors import SymflopsError
from symflops.training.introspect import proof
from symflops.verify.records import read_records
from tests.sampling import sampled
from tests.shipped import load

DATA = Path(__file__).resolve().parents[1] / "data"
CATALOG = catalogs()[-1]
LLAMA = {"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
REGIMES = sorted(pages("regimes"))
STEPS = {"grpo": ("forward", "reference"), "dpo": ("reference",)}
"""What else runs in a step, as the pages say."""


def model_of(config: dict[str, Any], regime: Any = "full", convention: str = "symflops", spec: str = "llama") -> InterpretedEstimator:
    return lookup.interpreted(CATALOG, spec, config, regime, convention, tell=lambda text: None)


# an independent reading of the records: their regimes as they are written, and all operators of their models


def fields_of(regime: dict[str, Any]) -> set[str]:
    """The fields of a record's regime, or of a page, that make it another one than a whole step or a forward pass."""
    recompute, adapters = regime.get("recompute"), regime.get("adapters") or []
    found = {"freeze"} if regime.get("freeze") or adapters or regime.get("train") not in (None, [], ["*"]) else set()
    if recompute:
        found.add("recompute" + " attention" * bool(recompute.get("attention_only")) + " whole" * (recompute.get("early_stop") is False) + " reentrant" * bool(recompute.get("reentrant")))
    return found | {one["kind"] for one in adapters} | {name for name in ("decode", "parts") if regime.get(name)}


def kinds_in(spec: str) -> frozenset[str]:
    return frozenset(operator.kind for operator in load(spec).graph({}).operators())


@cache
def recorded() -> dict[str, set[str]]:
    """The kinds of operators in the models of records whose regime has a field."""
    owners = {reference.rpartition(".")[2]: name for name, entry in CATALOG.specs.items() for reference in entry["references"]}
    fields: dict[str, set[str]] = {}
    for record in read_records(DATA / "regimes"):
        for field in fields_of(record["regime"]):
            fields.setdefault(field, set()).update(kinds_in(owners[record["class"]]))
    return fields


def page_of(regime: str) -> dict[str, Any]:
    page: Regime = api.regime_of(regime)
    recompute = page.recompute and {"early_stop": page.recompute.early_stop}
    adapters = [{"kind": one.kind} for one in page.adapters]
    return {"train": list(page.train), "freeze": page.freeze, "adapters": adapters, "recompute": recompute, "decode": page.decode, "parts": page.parts}


def judged(spec: str, regime: str) -> None:
    """A spec is measured under a regime only if its class has a record, and each field of the regime a record with each of its kinds."""
    try:
        found = model_of({}, regime, "torch", spec).evidence
    except SymflopsError:  # the regime does not fit the model
        return
    assert found["grade"] in (MEASURED, AS_SPECIFIED) and (found["grade"] == MEASURED or found["why"])
    if found["grade"] == MEASURED:
        assert found["records"] > 0 and (DATA / "truth" / f"{found['class']}.json").is_file()
        if decode := page_of(regime)["decode"]:
            assert found["class"] in {record["class"] for record in read_records(DATA / "regimes") if record["regime"].get("decode") == decode}
        for field in set().union(*(fields_of(page_of(name)) for name in (regime, *STEPS.get(regime, ())))):
            assert field in recorded(), f"no record has {field}"
            assert kinds_in(spec) <= recorded()[field], field


def size_of(spec: str) -> int:
    """The size of its stored program: small ones are tested by default."""
    return (Path(CATALOG.folder) / "generated" / CATALOG.specs[spec]["group"] / f"{spec}.json").stat().st_size


SPECS = sorted(CATALOG.specs, key=size_of)


@pytest.mark.parametrize("spec", sampled(SPECS, 50, 3))
def test_no_stored_regime_is_measured_without_a_record(spec: str) -> None:
    for row in CATALOG.program(spec)["regimes"]:
        judged(spec, row["name"])


@pytest.mark.parametrize(("spec", "regime"), sampled([(spec, regime) for spec in SPECS for regime in REGIMES], 399, 30))
def test_no_regime_is_measured_without_a_record(spec: str, regime: str) -> None:
    judged(spec, regime)


SCORED = {**LLAMA, "architectures": ["LlamaForSequenceClassification"]}


@pytest.mark.parametrize("regime", ["decode", "generate"])
def test_decoding_is_measured_of_a_class(regime: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is kept between calls is each class's own: the head of another one was not measured."""
    for make in (api.load("llama").estimator, model_of):
        assert make(LLAMA, regime, "torch").evidence["grade"] == MEASURED
        assert grade_of(make(SCORED, regime).evidence) == f"as specified ({regime} was not measured on LlamaForSequenceClassification)"
    assert main(["estimate", "llama", "--regime", regime, "--batch", '{"text": [[3, 4]]}']) == 0
    assert "grade                  measured" in capsys.readouterr().out


def test_a_step_is_as_good_as_the_worst_of_its_runs() -> None:
    assert model_of(LLAMA, "dpo", "torch").evidence["grade"] == MEASURED
    told = api.load("llama").estimator(SCORED, api.inline_regime("", api.regime_of("decode")), "torch").evidence
    assert told["why"] == "decode was not measured on LlamaForSequenceClassification"


def test_a_rule_that_was_not_measured_on_an_operator_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table decides, and says which kinds lack: with none for a scan, what recomputes one is as specified."""
    rules = {name: [kind for kind in kinds if kind != "scan"] for name, kinds in api.measured_rules().items()}
    monkeypatch.setattr(api, "measured_rules", lambda: rules)
    for spec, layers, why in (("falcon_mamba", "backbone.layers.*", "recompute was not measured on scan"), ("llama", "model.layers.*", "")):
        program = api.load(spec).lines([f"full:groups={layers}"], ["torch"], {})
        assert program.regimes[0].unmeasured == why


@pytest.mark.parametrize(
    ("regime", "why"),
    [
        ("lora:kind=dora,targets=*.q_proj", "dora was not measured"),
        ("full:groups=model.layers.*,attention_only=true", "recompute of attention alone was not measured"),
        ("full:groups=model.layers.*,reentrant=true", ""),
        ("full:freeze=model.embed_tokens.*", ""),
        ("lora:r=4,targets=*.q_proj", ""),
        ("forward:groups=model.layers.*,attention_only=true", ""),
    ],
)
def test_fields_of_a_regime_are_rules(regime: str, why: str) -> None:
    """Where nothing trains, nothing is recomputed."""
    assert api.load("llama").lines([regime], ["torch"]).regimes[0].unmeasured == why


def test_a_reentrant_group_with_several_results_is_as_specified() -> None:
    """Those that a module returns in a tuple inside of its results get no gradient, and a spec does not say how it returns them."""
    found = api.load("sd3").lines(["full:groups=transformer_blocks.*,reentrant=true"], ["torch"])
    assert found.regimes[0].unmeasured == "reentrant recompute of several results was not measured"


def test_a_record_is_of_one_class() -> None:
    """Heads that nobody measured are as specified, as is a class of one's own."""
    found = model_of({**LLAMA, "architectures": ["LlamaForTokenClassification"]}).evidence
    assert (found["grade"], found["why"]) == (AS_SPECIFIED, "LlamaForTokenClassification has no record")
    assert model_of(LLAMA, convention="torch").evidence["why"] == ""


@pytest.mark.parametrize(
    ("config", "grade"),
    [
        ({"architectures": ["LlamaForCausalLM"], "flux_capacitors": 3}, MEASURED),  # the class ignores it
        ({"model_type": "llama", "flux_capacitors": 3}, AS_SPECIFIED),
        ({"flux_capacitors": 3}, AS_SPECIFIED),
        ({"model_type": "llama", "rope_theta": 5e5}, MEASURED),
    ],
)
def test_a_key_that_nothing_reads_may_have_been_meant(config: dict[str, Any], grade: str) -> None:
    found = model_of({"hidden_size": 64, "num_attention_heads": 4, **config}, convention="torch").evidence
    assert (found["grade"], found["why"]) == (grade, "nothing reads the config's flux_capacitors" if grade == AS_SPECIFIED else "")


def test_work_that_depends_on_values_is_an_expectation() -> None:
    config = {"architectures": ["LongcatFlashForCausalLM"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = estimate(config, {"text": [8]})
    assert found["evidence"]["grade"] == AS_SPECIFIED and "the work is an expectation" in found["evidence"]["why"]
    assert any("the work is an expectation" in str(one.message) for one in caught) and any("expectation" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("spec", "convention", "why"),
    [
        ("llama", "torch", ""),
        ("llama", "symflops", "which pairs a mask leaves is the spec's word"),
        ("llama", "megatron", "the rules of convention 'megatron' are its own"),
        ("falcon_mamba", "symflops", "PyTorch's counter does not see all of scan"),
        ("vit", "symflops", ""),
    ],
)
def test_what_the_counter_does_not_see_is_told(spec: str, convention: str, why: str) -> None:
    found = model_of({}, "full", convention, spec).evidence
    assert (found["grade"], found["why"]) == (MEASURED, why)


def test_a_proof_raises_no_regime_that_it_does_not_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It compares parameters: a class without records is proven, what decoding does to it is not."""
    monkeypatch.setattr(proof, "proof", lambda catalog, name, config: "proven here: the class")
    config = {**LLAMA, "architectures": ["LlamaForTokenClassification"]}
    assert estimate(config, {"text": [3]}, prove=True)["evidence"]["grade"] == PROVEN
    assert estimate(config, {"text": [[3, 2]]}, regime="decode", prove=True)["evidence"]["grade"] == AS_SPECIFIED
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    for regime, batch, grade in (("full", "[3]", PROVEN), ("decode", "[[3, 2]]", AS_SPECIFIED)):
        assert main(["estimate", "--config", str(path), "--regime", regime, "--batch", f'{{"text": {batch}}}', "--prove", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["evidence"]["grade"] == grade
