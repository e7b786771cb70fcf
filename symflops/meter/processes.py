"""The processes of a training job: torch.distributed, and sums over a group."""

from __future__ import annotations

from typing import Any


def distributed_of() -> Any:
    """torch.distributed if this process has initialised it, else None."""
    import sys

    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    return distributed if distributed is not None and distributed.is_available() and distributed.is_initialized() else None


def lowest_of_group(state: int, group: Any = None) -> int:
    """The smallest ``state`` of all processes of a group; its own without torch.distributed."""
    distributed = distributed_of()
    if distributed is None:
        return state
    import torch

    return int(reduced(distributed, torch.tensor([state]), group, "MIN").item())


def reduced(distributed: Any, vector: Any, group: Any, how: str = "SUM") -> Any:
    """The vector summed over a group, on a device that the group's backend supports."""
    if distributed.get_world_size(group) == 1:
        return vector
    if vector.device.type == "cpu" and "nccl" in str(distributed.get_backend(group)):
        import torch

        vector = vector.to(torch.device("cuda", torch.cuda.current_device()))
    distributed.all_reduce(vector, op=getattr(distributed.ReduceOp, how), group=group)
    return vector
