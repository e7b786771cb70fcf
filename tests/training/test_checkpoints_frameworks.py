"""Checkpoints of Accelerate and of Lightning's Fabric hold the counts of a meter."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from lightning_fabric import Fabric
from transformers import LlamaConfig, LlamaForCausalLM

import symflops
from symflops.training.frameworks.accelerate import attach

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 64}


def made():
    AcceleratorState._reset_state(reset_partial_state=True)  # which other tests of this process may have made
    accelerator = Accelerator(cpu=True)
    model = accelerator.prepare(LlamaForCausalLM(LlamaConfig(**SIZES)))
    return accelerator, model, attach(accelerator, symflops.MFUMeter.of_model(model, devices=1, peak_tflops=1.0, log=lambda line: None))


def test_a_state_that_is_saved_within_a_step(tmp_path):
    accelerator, model, meter = made()
    for length in (8, 12):
        ids = torch.full((2, length), 5)
        accelerator.backward(model(input_ids=ids, labels=ids).loss)
        meter.add_batch({"input_ids": ids})
        if length == 8:
            meter.step(seconds=1.0)
    accelerator.save_state(str(tmp_path))
    rate = meter.step(seconds=1.0)
    one = symflops.of_model(model)
    assert meter.flops == one.total(one.moments(text=[8, 8, 12, 12])) and rate["tokens_per_second"] == 24
    accelerator, _, resumed = made()
    accelerator.load_state(str(tmp_path))
    assert (resumed.flops, resumed.executed, resumed.steps) == (meter.flops, meter.executed, 1)


def test_fabric_saves_a_meter_as_it_is(tmp_path):
    fabric = Fabric(accelerator="cpu", devices=1)
    config = LlamaConfig(architectures=["LlamaForCausalLM"], **SIZES)
    meter, resumed = (symflops.MFUMeter.of_config(config, devices=1, peak_tflops=1.0) for _ in range(2))
    meter.add(text=[10])
    meter.step(seconds=1.0)
    fabric.save(tmp_path / "state", {"meter": meter})
    fabric.load(tmp_path / "state", {"meter": resumed})
    assert resumed.state_dict() == meter.state_dict() and resumed.flops > 0
