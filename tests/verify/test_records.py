"""Every stored record of measured truth comes out exact: parameters by name, both passes, every module."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from symflops.library.catalog import by_name
from symflops.library.records.verified import known_inexact
from symflops.read.spec_files import shipped, specs_in
from symflops.verify.records import (
    arguments_of,
    batch_of,
    config_of_record,
    expected_of,
    loss_of,
    read_records,
    regime_of_record,
    verify_record,
)
from symflops.verify.verdicts import judged
from tests.sampling import sampled
from tests.shipped import load

DATA = Path(__file__).resolve().parents[1] / "data"
SPECS = {file: by_name(file.name).specs[file.name]["references"] for file in specs_in(shipped("specs"))}
FILES = {reference.rpartition(".")[2]: file for file, references in SPECS.items() for reference in references}
RECORDS = {record["id"]: record for record in read_records(DATA / "truth")}
INEXACT = known_inexact(shipped("specs"))


def test_every_shipped_class_has_a_record_or_live_cases():
    recorded = {record["class"] for record in RECORDS.values()}
    for file, references in SPECS.items():
        classes = {reference.rpartition(".")[2] for reference in references if ":" not in reference}
        assert classes <= recorded or file.path.with_suffix(".cases.yaml").exists(), file.path
    assert len(RECORDS) >= 37


@pytest.mark.parametrize("name", sampled(list(RECORDS), 16, 8))  # the task check verifies all
def test_a_record_is_exact_or_differs_as_is_known(name):
    verdict = judged(verify_record(load(FILES[RECORDS[name]["class"]]), RECORDS[name]), RECORDS[name], INEXACT)
    assert verdict.status == ("inexact" if name in INEXACT else "exact"), verdict.why


REPEATED = [name for name, record in RECORDS.items() if record.get("bwd_flops_grouped_conv_fixed") not in (None, record["bwd_flops"])]


def test_records_tell_the_counters_error_on_grouped_convolutions():
    assert len(REPEATED) >= 52


@pytest.mark.parametrize("name", sampled(REPEATED, 8))
def test_the_counter_as_it_is_counts_a_grouped_weight_gradient_once_for_each_group(name):
    record = RECORDS[name]
    model, missed = load(FILES[record["class"]]), (record.get("uncounted_ops") or {}).get("bwd", {})
    printed = record["bwd_flops"] + sum(op["flops"] or 0 for op in missed.values())
    estimator = model.estimator(config_of_record(model, record), regime_of_record(model, record), "torch-raw")
    moments = estimator.moments(**batch_of(estimator.stored, arguments_of(model, record)))
    assert estimator.backward(moments) + estimator.recomputed(moments) == printed
    assert estimator.forward(moments) == expected_of(record)["forward"]


def test_every_known_inexact_record_is_stored_and_there_are_few():
    assert INEXACT.keys() <= RECORDS.keys()
    assert len(INEXACT) <= 10


@pytest.mark.parametrize(
    ("change", "flag"),
    [
        (lambda r: r.update(fwd_flops=r["fwd_flops"] + 2), "forward_ok"),
        (lambda r: r.update(bwd_flops=r["bwd_flops"] - 2), "backward_ok"),
        (lambda r: r.update(params_total=r["params_total"] + 1), "parameters_ok"),
        (lambda r: r["params_by_tensor"].update({"model.norm.weight": 1}), "parameters_ok"),
        (lambda r: r["params_by_tensor"].update({"model.extra.weight": 1}), "parameters_ok"),
        (lambda r: r.update(params_trainable=7), "parameters_ok"),
        (lambda r: r["by_module_fwd"].update({"lm_head": 1}), "modules_ok"),
        (lambda r: r["by_module_fwd"].update({"model.nobody": 1}), "modules_ok"),
    ],
)
def test_a_changed_record_is_not_exact(change, flag):
    record = copy.deepcopy(RECORDS["transformers/LlamaForCausalLM/tiny-c"])
    change(record)
    verdict = verify_record(load(FILES[record["class"]]), record)
    assert verdict.status == "mismatch" and not getattr(verdict, flag)
    flags = {"parameters_ok", "forward_ok", "backward_ok", "modules_ok"} - {flag}
    assert all(getattr(verdict, other) for other in flags)


@pytest.mark.parametrize(
    ("told", "loss"),
    [
        (["last_hidden_state"], ("last_hidden_state",)),
        (["pooler_output", "hidden_states"], ("pooler_output",)),
        (["last_hidden_state", "pooler_output"], ()),
        (["sample"], ()),
        ([0], ()),
        ("first of logits/sample/last_hidden_state/out[0]", ()),
        (None, ()),
    ],
)
def test_the_loss_is_over_the_outputs_that_a_record_names(told, loss):
    assert loss_of(load("siglip_vision"), {"loss_over": told}) == loss


def test_what_the_counter_missed_may_be_of_unknown_amount():
    """Operations that were seen but not counted, without a figure: the record is judged by what was counted."""
    record = copy.deepcopy(RECORDS["transformers/LlamaForCausalLM/tiny-c"])
    record["uncounted_ops"] = {"fwd": {"aten.solve": {"calls": 3, "flops": None}}, "bwd": {"aten.solve": {"calls": 3, "flops": None}}}
    assert verify_record(load(FILES[record["class"]]), record).status == "exact"


def test_a_single_tensor_of_another_name_is_every_input():
    """Attention of a sequence to itself is measured on one tensor."""
    shape = {"shape": [2, 8, 16]}
    record = {"inputs": {"x": shape}}
    assert arguments_of(load("flux"), record) == dict.fromkeys([item.name.text for item in load("flux").spec.inputs], shape)
    assert arguments_of(load("llama"), {"inputs": {"input_ids": shape}}) == {"input_ids": shape}


def test_a_record_without_some_gradients_is_of_evaluation_mode():
    """A flag that evaluation mode sets is as that mode sets it; in a class that has none nothing changes."""
    model = load("hidream")
    config = {"force_inference_output": False, "text": {"a": 1}}
    assert config_of_record(model, {"config_json": config}) == config
    evaluated = config_of_record(model, {"config_json": config, "params_without_grad": {"w": ["w"]}})
    assert evaluated == {**config, "force_inference_output": True} and config["force_inference_output"] is False
    assert config_of_record(load("llama"), {"config_json": config, "params_without_grad": {"w": ["w"]}}) == config
