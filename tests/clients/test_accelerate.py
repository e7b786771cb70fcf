"""Loops of one's own with Accelerate: ``meter = symflops.MFUMeter.of_model(model)`` after ``prepare``, on one process and on two."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator

import symflops
from symflops.training.meter.batches import streams_of
from tests.clients.loops import Seen, collated, derived, model_of, rows

ROOT = Path(__file__).resolve().parents[2]


def train(kind: str, count: int = 7) -> tuple[int, int]:
    """One pass over the data, accumulated, sharded over the processes by Accelerate; the meter's FLOPs, and those that were seen."""
    one, seen = derived(kind), Seen()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = model_of(kind)
    optimizer = torch.optim.AdamW([tensor for tensor in model.parameters() if tensor.requires_grad])
    loader = torch.utils.data.DataLoader(rows(kind, count), batch_size=2, collate_fn=collated)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    if "checkpointed" in kind:
        accelerator.unwrap_model(model).gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    meter = symflops.MFUMeter.of_model(model, devices=accelerator.num_processes, convention="torch", peak_tflops=0.5, log=lambda line: None)
    for batch in loader:
        with accelerator.accumulate(model), seen.step():
            meter.add(**streams_of(one, batch))
            accelerator.backward(model(**batch).loss)
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.sync_gradients:
            assert "mfu" in meter.step()
    total = accelerator.reduce(torch.tensor(seen.flops), "sum")
    return meter.executed, int(total)


@pytest.mark.parametrize("kind", ["full", "lora", "checkpointed", "images"])
def test_one_process(kind):
    executed, seen = train(kind)
    assert executed == seen > 0


@pytest.mark.parametrize("kind", ["full", "lora"])
def test_two_processes_with_ddp(kind, tmp_path):
    """Accelerate wraps the model by DDP on gloo; the counter sees each process's share."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    same = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "XDG_CACHE_HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", f"import json; from tests.clients.test_accelerate import train; print(json.dumps(train({kind!r}, 8)))"]
    started = [
        subprocess.Popen(words, cwd=ROOT, env={**same, "RANK": rank, "LOCAL_RANK": rank}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in "01"
    ]
    found = []
    try:
        for process in started:
            out, error = process.communicate(timeout=240)
            assert process.returncode == 0, error[-2000:]
            found.append(json.loads(out.splitlines()[-1]))
    finally:
        for process in started:
            process.kill()
    assert found[0] == found[1] and found[0][0] == found[0][1] > 0
