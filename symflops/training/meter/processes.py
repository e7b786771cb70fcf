"""Access to torch.distributed: the current process's rank, and sums over a group."""

from __future__ import annotations

import os
from typing import Any


def distributed_of() -> Any:
    """torch.distributed if this process has initialised it, else None."""
    import sys

    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    return distributed if distributed is not None and distributed.is_available() and distributed.is_initialized() else None


def is_zero() -> bool:
    """Whether this process has rank 0, or runs alone."""
    distributed = distributed_of()
    return os.environ.get("RANK", "0") == "0" if distributed is None else int(distributed.get_rank()) == 0


def reduced(distributed: Any, vector: Any, group: Any) -> Any:
    """Sum ``vector`` over a group by ``all_reduce``, on a device that the group's backend supports."""
    if distributed.get_world_size(group) == 1:
        return vector
    supported = str(distributed.get_backend_config(group))  # "cuda:nccl", "cpu:gloo,cuda:nccl"
    if f"{vector.device.type}:" not in supported:
        import torch

        known = getattr(torch, "accelerator", None)  # since torch 2.6
        accelerator = known.current_accelerator() if known is not None else torch.device("cuda")
        vector = vector.to("cpu" if "cpu:" in supported or accelerator is None else accelerator)
    distributed.all_reduce(vector, group=group)
    return vector
