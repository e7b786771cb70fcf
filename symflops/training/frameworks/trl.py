"""TRL: ``attach`` for trainers that generate texts (GRPO, RLOO).

For SFT and DPO use :mod:`symflops.training.frameworks.huggingface`.
Generation is not training work: its calls count as executed work only, and its time is excluded from the window.
"""

from __future__ import annotations

from typing import Any, Unpack

from symflops.training.frameworks import huggingface
from symflops.training.frameworks.huggingface import without_time
from symflops.training.meter.mfu import MFUMeter
from symflops.training.meter.types import ModelOptions

GENERATION = "_generate_and_score_completions"


def attach(trainer: Any, *, devices: int | None = None, **options: Unpack[ModelOptions]) -> MFUMeter:
    """Attach a meter of the policy to a generating trainer; ``options`` as :func:`huggingface.attach`.

    Raises:
        AttributeError: the trainer does not generate texts.
    """
    if not hasattr(trainer, GENERATION):
        raise AttributeError(f"{type(trainer).__name__} generates no texts: use attach of frameworks.huggingface")
    meter = huggingface.attach(trainer, devices=devices, **options)
    trainer.floating_point_ops = lambda inputs: 0
    setattr(trainer, GENERATION, without_time(meter, getattr(trainer, GENERATION)))
    return meter
