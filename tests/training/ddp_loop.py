"""A plain training loop with DistributedDataParallel on the CPU: ``python ddp_loop.py RANK WORLD FILE``."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from transformers import LlamaConfig, LlamaForCausalLM

from symflops.evaluate.lengths import of_mask
from symflops.training.meter.mfu import MFUMeter

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 64}


def train(rank: int, world: int) -> int:
    """Three steps of two micro-batches each; the FLOPs of all of them on all ranks."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = LlamaConfig(architectures=["LlamaForCausalLM"], **SIZES)
    model = DistributedDataParallel(LlamaForCausalLM(config))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    meter = MFUMeter.of_config(config, devices=world, peak_tflops=0.5, log_every=1)
    if rank == 0:
        print(meter.describe())
    meter.start()
    for step in range(3):
        lengths = torch.tensor([8 + 4 * rank, 16, 5 + step])
        mask = (torch.arange(16)[None] < lengths[:, None]).long()
        ids = torch.randint(0, 64, (3, 16))
        for rows in (slice(0, 2), slice(2, 3)):  # two micro-batches
            meter.add(text=of_mask(mask[rows]))
            model(input_ids=ids[rows], attention_mask=mask[rows], labels=ids[rows]).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        meter.step()
    return meter.flops


def main(rank: int, world: int, file: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    # the model is gone before its process group is: PyTorch can hang when DDP's reducer is what frees a gloo group
    print(f"total {train(rank, world)}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
