"""DeepSpeed's engine on a CPU: the model is read off the engine, and each step is beside PyTorch's counter."""

from __future__ import annotations

import os
import socket

import deepspeed
import pytest
import torch

import symflops
from symflops.training.meter.batches import streams_of
from tests.clients.loops import Seen, collated, derived, model_of, rows


@pytest.fixture(scope="module", autouse=True)
def one_process():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    os.environ.update({"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
    deepspeed.init_distributed(dist_backend="gloo")
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("stage", [0, 1, 2])
@pytest.mark.parametrize("kind", ["full", "lora"])
def test_an_engine(kind, stage):
    one, seen, model = derived(kind), Seen(), model_of(kind)
    optimizer = torch.optim.AdamW([tensor for tensor in model.parameters() if tensor.requires_grad])
    fields = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": stage}, "zero_allow_untested_optimizer": True}
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=fields)
    meter = symflops.MFUMeter.of_model(engine, devices=1, convention="torch", peak_tflops=0.5, log=lambda line: None)
    found = rows(kind, 8)
    for start in range(0, 8, 2):
        batch = collated(found[start : start + 2])
        with seen.step():
            meter.add(**streams_of(one, batch))
            engine.backward(engine(**batch).loss)
            engine.step()
        if engine.is_gradient_accumulation_boundary():
            assert "mfu" in meter.step()
    meter.step()
    assert meter.executed == seen.flops > 0
