"""Device-hours of a training: its FLOPs, over the peak rate of a device times the share of it that the training reaches."""

from __future__ import annotations

from dataclasses import dataclass

from symflops.diagnostics.errors import SymflopsError
from symflops.questions.subject import Batch, Subject

HOUR = 3600


@dataclass(frozen=True, slots=True)
class Budget:
    """What a training on some tokens takes: whole steps, exact FLOPs, and hours of one device."""

    tokens: int
    steps: int
    flops: int
    flops_per_step: int
    tokens_per_step: int
    device_hours: float


def budget(subject: Subject, tokens: int, batch: Batch, rate: float, mfu: float) -> Budget:
    """The cost of training on ``tokens`` in steps like ``batch``, on devices of ``rate`` FLOP/s at ``mfu``.

    Raises:
        SymflopsError: the batch has no tokens, or a figure is out of range.
    """
    if not 0 < mfu <= 1:
        raise SymflopsError(f"an MFU is a share of the peak, above 0 and at most 1, not {mfu:g}")
    if not tokens:
        raise SymflopsError("a training has at least one token")
    model = subject.estimator
    each, cost = subject.tokens(model, batch), model.total(model.moments(**batch))
    if model.unit == "macs":
        raise SymflopsError(f"convention '{subject.convention}' counts MACs, and peak rates are in FLOP/s: take another one")
    steps = -(-tokens // each)
    return Budget(tokens, steps, steps * cost, cost, each, steps * cost / (rate * mfu) / HOUR)
