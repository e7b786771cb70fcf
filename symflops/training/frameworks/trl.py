"""TRL: ``attach`` for trainers that generate texts (GRPO, RLOO).

For SFT and DPO use :mod:`symflops.training.frameworks.huggingface`.
The Trainer asks for FLOPs before completions are generated, so batches are counted where the loss is computed. Generation is
not training work, and its time is excluded from the window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Unpack

from symflops.evaluate.lengths import Lengths
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
    trainer.compute_loss = counted(meter, trainer.compute_loss)
    setattr(trainer, GENERATION, without_time(meter, getattr(trainer, GENERATION)))
    return meter


def counted(meter: MFUMeter, compute_loss: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the trainer's ``compute_loss`` so that each training batch is added to the meter."""

    @wraps(compute_loss)
    def computed(model: Any, inputs: Mapping[str, Any], *arguments: Any, **named: Any) -> Any:
        if getattr(model, "training", True):
            try:
                phase = next(iter(meter.phases.values()), None)
                streams: dict[str, Any] = {} if phase is None else {next(iter(phase.estimator.streams)): lengths_of(inputs)}
                meter.add(**streams)
            except Exception as error:
                meter.unreadable(f"{type(error).__name__}: {error}")
        return compute_loss(model, inputs, *arguments, **named)

    return computed


def lengths_of(inputs: Mapping[str, Any]) -> Lengths:
    """Real and padded lengths of prompt plus completion, from their masks.

    Raises:
        KeyError: the batch lacks a mask.
    """
    prompts, completions = inputs["prompt_mask"], inputs["completion_mask"]
    real = (prompts != 0).sum(-1) + (completions != 0).sum(-1)
    return Lengths((real,), int(prompts.shape[0]), (int(prompts.shape[1] + completions.shape[1]),))
