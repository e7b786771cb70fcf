"""Lightning: ``flops_per_batch`` for ``ThroughputMonitor``, and FLOPs for Fabric's ``Throughput.update``.

Both expect the FLOPs of one device since the last update, and multiply by the world size themselves. ``ThroughputMonitor``
reads the attribute after every batch on rank 0, without passing the batch, so ``training_step`` must set it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symflops.meter.batches import streams_of
from symflops.runtime.lengths import plain
from symflops.runtime.units import in_flops


class FlopsMixin:
    """For a LightningModule: set ``symflops_estimator``, and call ``count_batch(batch)`` first in ``training_step``."""

    symflops_estimator: Any = None
    flops_per_batch: int = 0

    def count_batch(self, batch: Mapping[str, Any], devices_per_batch: int = 1) -> int:
        """Set ``flops_per_batch`` to the FLOPs of this batch per device; ``devices_per_batch`` devices share its work.

        Raises:
            LengthError: the batch does not tell the lengths.
        """
        self.flops_per_batch = flops_of_batch(self.symflops_estimator, batch) // devices_per_batch
        return self.flops_per_batch


def flops_of_batch(estimator: Any, batch: Mapping[str, Any]) -> int:
    """FLOPs of one batch, forward and backward; it waits for lengths on a device, as the monitor itself does.

    Raises:
        LengthError: the batch does not tell the lengths.
    """
    streams = {name: plain(entry) for name, entry in streams_of(estimator, batch).items()}
    return in_flops(estimator, int(estimator.total(estimator.moments(**streams))))
