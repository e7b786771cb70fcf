"""Accelerate's own checkpoints hold the counts of a meter, up to the last micro-batch."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from transformers import LlamaConfig, LlamaForCausalLM

import symflops
from symflops.adapters.accelerate import attach

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
