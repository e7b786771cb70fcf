"""Lightning: FLOPs for ``ThroughputMonitor`` and for Fabric's ``Throughput``, and an MFU callback.

Both expect the FLOPs of one device since the last update, and multiply by the world size themselves. ``ThroughputMonitor``
reads the attribute after every batch on rank 0, without passing the batch, so ``training_step`` must set it.

    Trainer(callbacks=[callback(lambda module: MFUMeter.of_model(module.model, devices=world_size, keys="lightning"))])

The callback needs no change to the module: it watches the meter's model, logs rates, and saves the counts in checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from symflops.evaluate.lengths import entry_of
from symflops.evaluate.units import in_flops
from symflops.training.meter.batches import streams_of
from symflops.training.meter.mfu import MFUMeter


class FlopsMixin:
    """Mixin for a LightningModule that sets ``flops_per_batch`` for ``ThroughputMonitor``.

    Set ``symflops_estimator``, and call ``count_batch(batch)`` first in ``training_step``.
    """

    symflops_estimator: Any = None
    flops_per_batch: int = 0

    def count_batch(self, batch: Mapping[str, Any], devices_per_batch: int = 1) -> int:
        """Set and return ``flops_per_batch``: the batch's FLOPs over the number of devices that share it.

        Raises:
            LengthError: the batch lacks the lengths.
        """
        self.flops_per_batch = flops_of_batch(self.symflops_estimator, batch) // devices_per_batch
        return self.flops_per_batch


def flops_of_batch(estimator: Any, batch: Mapping[str, Any]) -> int:
    """FLOPs of one batch, forward and backward; synchronises with the device if lengths are on it.

    Raises:
        LengthError: the batch lacks the lengths.
    """
    streams = {name: entry_of(entry) for name, entry in streams_of(estimator, batch).items()}
    return in_flops(estimator, int(estimator.total(estimator.moments(**streams))))


class MeterHooks:
    """Hooks of a Lightning ``Callback`` that drive a meter; ``make(module)`` builds the meter."""

    state_key = "symflops"

    def __init__(self, make: Callable[[Any], MFUMeter]) -> None:
        self.make = make
        self.meter: Any = None
        self.restored: Mapping[str, int] | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.meter = self.meter or self.make(pl_module)
        if self.restored is not None:
            self.meter.load_state_dict(self.restored)
        self.meter.watch()
        self.meter.steps, self.restored = trainer.global_step, None
        self.meter.start()

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self.meter.made is None:  # a meter of a config has no model to watch
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
        self.meter.unwatch()

    def state_dict(self) -> dict[str, int]:
        """The meter's cumulative FLOPs and steps, for a checkpoint; Lightning calls this on every process."""
        if self.meter is None:
            return dict(self.restored or {})
        self.meter.settle()
        return dict(self.meter.state_dict())

    def load_state_dict(self, state_dict: Mapping[str, int]) -> None:
        """Keep the FLOPs and steps of a checkpoint until the meter exists to continue them."""
        self.restored = dict(state_dict)


def callback(make: Callable[[Any], MFUMeter]) -> Any:
    """A Lightning ``Callback`` that logs MFU; ``make`` builds its meter when training begins.

    ``make`` gets the LightningModule. For a meter of a config, a batch maps the model's argument names to tensors. Every
    ``log_every_n_steps`` steps the Trainer's loggers get the rates, with the prefix of ``ThroughputMonitor``. Validation time
    is excluded, and checkpoints hold the meter's counts.

    Raises:
        ImportError: Lightning is not installed.
    """
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback
    return type("MFUCallback", (MeterHooks, Callback), {})(make)
