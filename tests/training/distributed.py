"""What one process of a group does in the distributed tests: run as ``python distributed.py CASE,CASE RANK WORLD FILE``."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist

from symflops.evaluate.lengths import of_cu_seqlens, of_rows
from symflops.library import lookup
from symflops.training.meter.accumulate import Accumulator
from symflops.training.meter.mfu import MFUMeter


def estimator(name, regime="full"):
    return lookup.estimator(lookup.by_name(name), name, {}, regime)[1]


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


def counted(function):
    """The result of a function, with the shapes that it reduced over processes."""
    seen = []
    original = dist.all_reduce
    dist.all_reduce = lambda tensor, **options: (seen.append(tuple(tensor.shape)), original(tensor, **options))[1]
    try:
        return function(), seen
    finally:
        dist.all_reduce = original


def reductions(rank, world):
    """How often a step with several micro-batches talks to the others, and what the meter says."""
    meter = MFUMeter(estimator("llama"), devices=world, peak_tflops=1e-3, clock=lambda: 0.0)
    for _ in range(3):
        meter.add(text=torch.tensor([16, 32]))
    found, seen = counted(lambda: meter.step(seconds=2.0))
    return [len(seen), found["mfu"]]


def phases(rank, world):
    """A step of several phases talks to the others once."""
    meter = MFUMeter({"actor": estimator("llama"), "ref": estimator("llama", "forward")}, devices=world, peak_tflops=1.0)
    for phase in meter.phases:
        meter.add(text=[16 + rank], phase=phase)
    found, seen = counted(lambda: meter.step(seconds=1.0))
    return [len(seen), found["flops_total"]]


def together(meter, batches):
    """What a meter says in a window per batch, its warnings, and whether another collective of the job is what it should be."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        logged = []
        for batch in batches:
            if batch is not None:
                meter.add(**batch)
            logged.append("mfu" in meter.step(seconds=1.0))
    other = torch.ones(3)
    dist.all_reduce(other)
    return {"logged": logged, "flops": meter.flops, "warnings": [str(warning.message) for warning in seen], "other": other.tolist()}


def different(rank, world):
    """Each rank reads another model, whose vector would have another size; then one of the same sizes and another regime."""
    options = {"devices": world, "peak_tflops": 1.0}
    names = MFUMeter(estimator(("llama", "mistral")[rank]), **options), MFUMeter(estimator("llama", ("full", "forward")[rank]), **options)
    return [together(meter, [{"text": [16]}] * 2) for meter in names]


def unknown(rank, world):
    """Rank 1 has no estimator: a window counts if rank 1 has no batch in it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        meter = MFUMeter(None if rank else estimator("llama"), devices=world, peak_tflops=1.0)
    return together(meter, [{"text": [16]}, {"text": [16]} if rank == 0 else None])


class Later:
    """An estimator that arrives at a certain look, or fails then."""

    def __init__(self, looks, error=None):
        self.looks, self.error, self.estimator = looks, error, estimator("llama")

    def poll(self):
        self.looks -= 1
        if self.looks <= 0 and self.error is not None:
            raise self.error
        return self.estimator if self.looks <= 0 else None


def arriving(rank, world):
    """Rank 0 has its estimator at once, rank 1 in the third window."""
    meter = MFUMeter(Later(3) if rank else estimator("llama"), devices=world, peak_tflops=1.0, log=lambda line: None)
    return together(meter, [{"text": torch.tensor([16])}] * 4)


def failing(rank, world):
    """Rank 1 finds out in the second window that there is no estimator."""
    meter = MFUMeter(Later(2, ValueError("out of luck")) if rank else estimator("llama"), devices=world, peak_tflops=1.0, log=lambda line: None)
    return together(meter, [{"text": [16]}, {"text": [16]}, {"text": [16]} if rank == 0 else None])


def broken(rank, world):
    """Rank 1 cannot make its vector in the first window."""
    meter = MFUMeter(estimator("llama"), devices=world, peak_tflops=1.0)
    if rank:
        original, meter.phases[""].sums.vector = meter.phases[""].sums.vector, None
    first = together(meter, [{"text": [16]}])
    if rank:
        meter.phases[""].sums.vector = original
    return [first, together(meter, [{"text": [16]}])]


def printed(rank, world):
    """Lines of ranks that are both the first of their node."""
    os.environ["LOCAL_RANK"] = "0"
    lines = []
    meter = MFUMeter(estimator("llama"), devices=world, peak_tflops=1.0, log_every=2, log=lines.append)
    for _ in range(4):
        meter.add(text=[16])
        meter.step(seconds=1.0)
    return lines


def settled(rank, world):
    """Counts before a checkpoint within a window, on every rank the same, and the window's rate, which is of all of it."""
    meter = MFUMeter(estimator("llama"), devices=world, peak_tflops=1.0)
    meter.add(text=[16 + rank])
    meter.settle()
    state = meter.state_dict()
    meter.add(text=[16 + rank])
    found = meter.step(seconds=1.0)
    return [state["flops"], found["flops_total"], found["tokens_per_second"]]


def late(rank, world):
    """Rank 1 comes when the others have given up; another group of the job still works."""
    group = dist.new_group(list(range(world)), timeout=timedelta(seconds=2))
    meter = MFUMeter(estimator("llama"), devices=world, peak_tflops=1.0, group=group)
    dist.barrier()
    time.sleep(4 * rank)
    return together(meter, [{"text": [16]}] * 3)


def dead(rank, world):
    """Rank 1 dies in the second window."""
    meter = MFUMeter(estimator("llama"), devices=world, peak_tflops=1.0)
    meter.add(text=[16])
    first = "mfu" in meter.step(seconds=1.0)
    if rank == 1:
        return [first]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            meter.add(text=[16])
            assert meter.step(seconds=1.0) == {}
    return [first, [str(warning.message) for warning in seen], meter.state_dict()]


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
    print("RESULT" + json.dumps({case: globals()[case](rank, world) for case in cases.split(",")}), flush=True)
    os._exit(0)  # a group whose ranks have died cannot be destroyed


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
