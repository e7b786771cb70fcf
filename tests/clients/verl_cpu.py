"""A platform of verl without an accelerator, by verl's own registry of platforms: its engines run on gloo."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import torch
from verl.plugin.platform import PlatformBase, set_platform

ENGINE = {"VERL_ENGINE_DEVICE": "cuda", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "29511"}
"""verl registers its engines for ``cuda`` and ``npu``; this variable of its own chooses one. The rest is what a launcher sets."""


def nothing(self: object, *arguments: object, **options: object) -> None:
    """What a CPU need not do."""


class Cpu(PlatformBase):
    """All that verl asks a platform for."""

    device_name = vendor_name = "cpu"
    device_module = torch.cpu
    is_ipc_supported = nothing
    set_device = synchronize = manual_seed = manual_seed_all = set_allocator_settings = empty_cache = profiler_start = profiler_stop = cudart = nothing

    def is_available(self) -> bool:
        return True

    def current_device(self) -> Any:
        return "cpu"

    def device_count(self) -> int:
        return 1

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    def nvtx_range(self, msg: str) -> Any:
        return contextlib.nullcontext()

    def ray_resource_name(self) -> str:
        return "CPU"

    def ray_noset_envvars(self) -> list[str]:
        return []


def start(folder: str) -> None:
    """Make this process the only one of a job; before anything of verl asks for its platform."""
    os.environ.update(ENGINE)
    set_platform(Cpu())
    torch.cpu.max_memory_allocated = torch.cpu.max_memory_reserved = lambda *_: 0
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
