"""Two processes on gloo, DDP and FSDP2 (``fully_shard``), full, LoRA and checkpointed: each reads its wrapped model, watches it, and proves its first step."""

from __future__ import annotations

import pytest

from tests.training import test_wrappers

OTHERS = [f"{way} {model} checkpointed" for way in ("ddp", "fsdp") for model in ("experts", "speech lora", "translation lora")]


@pytest.mark.parametrize("kind", ["ddp", "ddp lora", "fsdp", "fsdp lora", "fsdp checkpointed", "fsdp lora checkpointed", *OTHERS])
def test_two_processes(kind, tmp_path):
    test_wrappers.test_two_processes(kind, tmp_path)
