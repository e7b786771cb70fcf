"""Rates after the warm-up: those of the steps that count, as mean and median, for useful and executed work."""

from __future__ import annotations

import pytest

from symflops.training.meter.mfu import MFUMeter

LLAMA = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 50, "model_type": "llama"}


def test_a_summary_is_of_the_steps_after_the_warm_up():
    lines = []
    meter = MFUMeter.of_config(LLAMA, regimes="checkpointed", devices=2, peak_tflops=1.0, warmup=2, log_every=1, log=lines.append)
    logged = []
    for seconds in (100.0, 50.0, 1.0, 2.0, 6.0):
        meter.add(text=[8, 8])
        logged.append(meter.step(seconds))
    found = meter.summary()
    assert found["steps"] == 3 and found["seconds"] == 9 and len(lines) == 3
    assert found["mfu_median"] == logged[3]["mfu"] and found["hfu_median"] == logged[3]["hfu"]
    assert found["mfu_mean"] == pytest.approx(logged[2]["mfu"] * 3 / 9)
    assert found["tokens_per_second_mean"] == pytest.approx(48 / 9) and found["tokens_per_second_median"] == 8
    assert found["executed_tflops_per_device_mean"] > found["useful_tflops_per_device_mean"] == pytest.approx(found["mfu_mean"])


def test_a_summary_of_nothing_is_empty_and_that_of_phases_names_them():
    assert MFUMeter.of_config(LLAMA, peak_tflops=1.0).summary() == {}
    meter = MFUMeter.of_config(LLAMA, regimes={"actor": "full", "ref": "forward"}, peak_tflops=1.0, warmup="many")
    meter.add(text=[8], phase="actor")
    meter.step(1.0)
    assert meter.summary()["actor/mfu_mean"] > 0 and not any(key.startswith("ref/") for key in meter.summary())
