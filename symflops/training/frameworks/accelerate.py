"""Accelerate: a meter whose counts are saved and loaded with ``save_state`` and ``load_state``.

meter = MFUMeter.of_model(model, devices=accelerator.num_processes)
attach(accelerator, meter)
"""

from __future__ import annotations

from typing import Any

from symflops.training.meter.mfu import MFUMeter


def attach(accelerator: Any, meter: MFUMeter) -> MFUMeter:
    """Make ``accelerator`` save and load the meter's FLOPs and steps in checkpoints; return ``meter``."""
    accelerator.register_save_state_pre_hook(lambda models, weights, folder: meter.settle())
    accelerator.register_for_checkpointing(meter)
    return meter
