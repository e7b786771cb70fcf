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
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    WhisperConfig,
    WhisperForConditionalGeneration,
)  # fmt: skip

import symflops
from tests.training.step import counted
from tests.training.test_regimes import IDS, INPUTS, SIZES

SPEECH = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 16,
    "attn_implementation": "eager",
}  # fmt: skip
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2, "experts_implementation": "eager"}
MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES)),
    "experts": lambda: MixtralForCausalLM(MixtralConfig(**SIZES, **EXPERTS)),
    "speech": lambda: WhisperForConditionalGeneration(WhisperConfig(**SPEECH)),
    "translation": lambda: T5ForConditionalGeneration(T5Config(d_model=32, d_ff=64, d_kv=8, num_layers=2, num_heads=4, vocab_size=64, decoder_start_token_id=0)),
}
GIVEN = {"speech": {"input_features": torch.ones(2, 8, 32), "labels": IDS}}


def made(kind):
    torch.manual_seed(0)
    model = MODELS[model_of(kind)]()
    if "checkpointed" in kind:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if "lora" in kind:
        model = get_peft_model(model, LoraConfig(r=4, target_modules=["q", "v", "q_proj", "v_proj"]))
    return model


def model_of(kind):
    return next((name for name in MODELS if name in kind), "llama")


def wrapped(kind, model):
    if "ddp" in kind:
        return DistributedDataParallel(model)
    lists = [(path, module) for path, module in model.named_modules() if isinstance(module, torch.nn.ModuleList)]
    for path, layers in lists:
        for layer in layers if not any(path.startswith(f"{outer}.") for outer, _ in lists) else ():
            fully_shard(layer)
    fully_shard(model)
    return model


def main(rank, store, kind):
    os.environ["LOCAL_RANK"] = rank
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
    module, given = wrapped(kind, made(kind)), GIVEN.get(model_of(kind), INPUTS)
    lines = []
    meter = symflops.MFUMeter.of_model(module, devices=2, convention="torch", peak_tflops=1.0, log=lines.append).watch()
    logged, windows, begun = {}, 0, time.monotonic()
    while "mfu" not in logged and time.monotonic() - begun < 120:
        module(**given).loss.backward()
        windows += 1
        logged = meter.step(1.0)
        time.sleep(0.2)
    forward, backward = counted(made(kind), given)  # the counter does not see through sharding: the bare module is the witness
    print(json.dumps({"flops": meter.flops, "executed": meter.executed, "windows": windows, "step": forward + backward, "lines": lines, "mfu": logged.get("mfu")}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
