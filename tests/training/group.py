"""One process of two on gloo: wraps a tiny model, reads it, runs a step, and prints what symflops and PyTorch's counter say."""

from __future__ import annotations

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from peft import LoraConfig, get_peft_model
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from transformers import LlamaConfig, LlamaForCausalLM

import symflops
from tests.training.step import counted
from tests.training.test_regimes import IDS, INPUTS, SIZES


def made(kind):
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SIZES))
    if "checkpointed" in kind:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if "lora" in kind:
        model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    return model


def wrapped(kind, model):
    if "ddp" in kind:
        return DistributedDataParallel(model)
    for layer in (model.base_model.model if "lora" in kind else model).model.layers:
        fully_shard(layer)
    fully_shard(model)
    return model


def main(rank, store, kind):
    os.environ["LOCAL_RANK"] = rank
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
    module = wrapped(kind, made(kind))
    lines = []
    meter = symflops.MFUMeter.of_model(module, devices=2, convention="torch", peak_tflops=1.0, log=lines.append).watch()
    logged, windows, begun = {}, 0, time.monotonic()
    while "mfu" not in logged and time.monotonic() - begun < 120:
        module(input_ids=IDS, labels=IDS).loss.backward()
        windows += 1
        logged = meter.step(1.0)
        time.sleep(0.2)
    forward, backward = counted(made(kind), INPUTS)  # the counter does not see through sharding: the bare module is the witness
    print(json.dumps({"flops": meter.flops, "executed": meter.executed, "windows": windows, "step": forward + backward, "lines": lines, "mfu": logged.get("mfu")}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
