"""Lightning: ``flops_per_batch`` for ``ThroughputMonitor``, and FLOPs for Fabric's ``Throughput.update``.

Both expect the FLOPs of one device since the last update, and multiply by the world size themselves. ``ThroughputMonitor``
reads the attribute after every batch on rank 0, without passing the batch, so ``training_step`` must set it.

    Trainer(callbacks=[callback(lambda module: MFUMeter.of_model(module.model, devices=world_size, keys="lightning"))])

The callback needs nothing of the module: it counts the batches, logs the rates, and keeps the counts in checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from symflops.evaluate.lengths import entry_of
from symflops.evaluate.units import in_flops
from symflops.training.meter.batches import streams_of
from symflops.training.meter.mfu import MFUMeter


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
    streams = {name: entry_of(entry) for name, entry in streams_of(estimator, batch).items()}
    return in_flops(estimator, int(estimator.total(estimator.moments(**streams))))


class MeterHooks:
    """The hooks of a Lightning ``Callback`` that has a meter, which ``make`` makes of the LightningModule."""

    state_key = "symflops"

    def __init__(self, make: Callable[[Any], MFUMeter]) -> None:
        self.make = make
        self.meter: Any = None
        self.restored: Mapping[str, int] | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.meter = self.meter or self.make(pl_module)
        if self.restored is not None:
            self.meter.load_state_dict(self.restored)
        self.meter.steps, self.restored = trainer.global_step, None
        self.meter.start()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        self.meter.add_batch(batch)

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        steps = trainer.global_step - self.meter.steps
        if steps >= max(trainer.log_every_n_steps, 1):
            found = {f"train/{name}": value for name, value in self.meter.step(steps=steps).items()}
            for logger in trainer.loggers if found else ():
                logger.log_metrics(found, step=trainer.global_step)

    def on_validation_start(self, *_: Any) -> None:
        if self.meter is not None:
            self.meter.pause()

    def on_validation_end(self, *_: Any) -> None:
        if self.meter is not None:
            self.meter.resume()

    def on_train_end(self, *_: Any) -> None:
        self.meter.settle()

    def state_dict(self) -> dict[str, int]:
        """The counts up to now; Lightning asks every process for them."""
        if self.meter is None:
            return dict(self.restored or {})
        self.meter.settle()
        return dict(self.meter.state_dict())

    def load_state_dict(self, state_dict: Mapping[str, int]) -> None:
        """Keep the counts of a checkpoint until the meter is there."""
        self.restored = dict(state_dict)


def callback(make: Callable[[Any], MFUMeter]) -> Any:
    """A Lightning ``Callback`` with a meter, which ``make`` makes of the LightningModule when training begins.

    It counts each batch, a mapping of tensors by the names that the model gives them. Every ``log_every_n_steps`` steps the
    Trainer's loggers get the rates, prefixed as ``ThroughputMonitor`` prefixes them. Validation takes no training time, and
    checkpoints hold the meter's counts.

    Raises:
        ImportError: Lightning is not installed.
    """
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback
    return type("MFUCallback", (MeterHooks, Callback), {})(make)
