"""Two processes on gloo, DDP and FSDP2 (``fully_shard``), full, LoRA and checkpointed: each reads its wrapped model and counts it."""

from __future__ import annotations

import pytest

from tests.training import test_wrappers


@pytest.mark.parametrize("kind", ["ddp", "ddp lora", "fsdp", "fsdp lora", "fsdp checkpointed", "fsdp lora checkpointed"])
def test_two_processes(kind, tmp_path):
    test_wrappers.test_two_processes(kind, tmp_path)
