"""torchtitan: ``get_nparams_and_flops``, a constant per token for one sequence length.

torchtitan multiplies the constant by its own count of tokens, so varying lengths cannot be expressed. For those use a meter
with torchtitan's keys.
"""

from __future__ import annotations

from typing import Any

from symflops.meter.mfu import MFUMeter
from symflops.runtime.units import in_flops


def nparams_and_flops(estimator: Any, seq_len: int) -> tuple[int, int]:
    """Parameters, and FLOPs per token of a sequence of ``seq_len``, forward and backward, rounded down.

    Raises:
        ValueError: ``seq_len`` is no positive number.
    """
    if seq_len < 1:
        raise ValueError(f"a sequence of {seq_len} tokens")
    name = next(iter(estimator.streams))
    return estimator.parameters, in_flops(estimator, estimator.total(estimator.moments(**{name: [seq_len]}))) // seq_len


class FlopsMixin:
    """For a ``Model.Config`` of torchtitan: set ``symflops_estimator``."""

    symflops_estimator: Any = None

    def get_nparams_and_flops(self, model: Any, seq_len: int) -> tuple[int, int]:
        """Parameters and FLOPs per token, as torchtitan asks for them when it starts."""
        return nparams_and_flops(self.symflops_estimator, seq_len)


def meter(config: Any, *, devices: int, **options: Any) -> MFUMeter:
    """A meter under torchtitan's keys; ``mfu(%)`` in percent."""
    return MFUMeter.of_config(config, devices=devices, **{"keys": "torchtitan", **options})
