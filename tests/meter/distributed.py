"""What one process of a group does in the distributed tests: run as ``python distributed.py CASE,CASE RANK WORLD FILE``."""

from __future__ import annotations

import json
import sys
import warnings

import torch
import torch.distributed as dist

from symflops.catalog import lookup
from symflops.meter.accumulate import Accumulator
from symflops.meter.mfu import MFUMeter
from symflops.runtime.lengths import of_cu_seqlens, of_rows


def estimator(name):
    return lookup.estimator(lookup.by_name(name), name, {})[1]


def uneven(rank, world):
    """Each rank has other lengths, rank 0 none at all."""
    accumulator = Accumulator(estimator("llama"))
    for lengths in [list(range(1, 5 * rank + 1))[micro::2] for micro in range(2)]:
        accumulator.add(text=torch.tensor(lengths, dtype=torch.int64))
    accumulator.add(text=[7] * rank)
    return list(accumulator.read().real)


def images(rank, world):
    """Only rank 1 has images; the others contribute nothing for them."""
    accumulator = Accumulator(estimator("qwen2_vl"))
    grids = torch.tensor([[1, 4, 8], [2, 8, 8]]) if rank == 1 else torch.zeros((0, 3), dtype=torch.int64)
    accumulator.add(text=torch.tensor([100 + rank]), **({"images": of_rows(grids, 3)} if rank != 2 else {}))
    return list(accumulator.read().real)


def context(rank, world):
    """Ranks 2k and 2k + 1 are context-parallel and hold the same boundaries: the sum is over one of each pair."""
    groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    accumulator = Accumulator(estimator("llama"))
    accumulator.add(text=of_cu_seqlens(torch.tensor([0, 10, 30 + rank // 2])))
    mine = list(accumulator.read(groups[rank % 2]).real)
    accumulator.add(text=of_cu_seqlens(torch.tensor([0, 10, 30 + rank // 2])))
    return [mine, list(accumulator.read().real)]


def empty(rank, world):
    accumulator = Accumulator(estimator("llama"))
    return list(accumulator.read().real)


def reductions(rank, world):
    """How often a step with several micro-batches talks to the others, and what the meter says."""
    seen = []
    original = dist.all_reduce
    dist.all_reduce = lambda tensor, **options: (seen.append(tuple(tensor.shape)), original(tensor, **options))[1]
    meter = MFUMeter(estimator("llama"), devices=world, peak_tflops=1e-3, clock=lambda: 0.0)
    for _ in range(3):
        meter.add(text=torch.tensor([16, 32]))
    found = meter.step(seconds=2.0)
    dist.all_reduce = original
    return [len(seen), found["mfu"]]


def unreadable(rank, world):
    """A batch that one rank cannot read takes the key away on all, and stops none."""
    meter = MFUMeter(estimator("llama"), devices=world, peak_tflops=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        meter.add(text="nonsense" if rank == 1 else [16])
        first = meter.step(seconds=1.0)
    meter.add(text=[16])
    return [sorted(first), "mfu" in meter.step(seconds=1.0)]


def main(cases, rank, world, file):
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    print("RESULT" + json.dumps({case: globals()[case](rank, world) for case in cases.split(",")}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
