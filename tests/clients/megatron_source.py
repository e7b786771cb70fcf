"""Imports modules of Megatron-LM and Megatron-Bridge on a CPU and on Python 3.11.

Megatron-Bridge imports Transformer Engine, which needs CUDA: its layers are empty classes here. All else is the real thing.
"""

from __future__ import annotations

import importlib
import types

from tests.clients.hollow import hollowed


def bridge(name: str) -> types.ModuleType:
    """The module ``megatron.bridge.NAME``."""
    import megatron.core
    import megatron.training.training  # noqa: F401 (both look for Transformer Engine, and do without)

    hollowed("transformer_engine", "transformer_engine_torch")
    return importlib.import_module(f"megatron.bridge.{name}")
