"""HF Trainer: watches the model while it trains, and logs the rates.

    meter = attach(trainer)          # before trainer.train()

The value for the Trainer's own ``total_flos`` is exact if the lengths are on the host; for lengths on a device it is that of
the padded batch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Unpack

from symflops.evaluate.lengths import entry_of
from symflops.evaluate.units import in_flops
from symflops.training.meter.batches import TOKENS, streams_of
from symflops.training.meter.mfu import MFUMeter
from symflops.training.meter.types import ModelOptions

STATE = "symflops"
"""The key of the meter's counts in the Trainer state that checkpoints contain."""


def attach(trainer: Any, *, devices: int | None = None, prove: bool = True, **options: Unpack[ModelOptions]) -> MFUMeter:
    """Attach a meter to ``trainer``; ``options`` are those of :meth:`MFUMeter.of_model`.

    The calls of the model and of the trainer's ``ref_model`` count; with ``prove`` the first step is proven, see
    :meth:`MFUMeter.watch`.

    The model is read again when training begins, because the Trainer enables checkpointing and wraps the model itself. Until
    then the meter describes the current model.
    Each log of a loss gets the rates since the last one, before any callback or tracker reads it. Rates are printed every
    ``log_every`` steps (by default with each log). Evaluation time is excluded. Checkpoints hold the meter's counts, and
    resumed training continues them.
    """
    count = devices if devices is not None else int(getattr(trainer.args, "world_size", 1) or 1)
    named: ModelOptions = {"keys": "hf", "log_every": 1, **options}
    quiet: ModelOptions = {**named, "log": lambda line: None}
    meter = MFUMeter.of_model(trainer.model, devices=count, **quiet)
    meter.log = options.get("log", print)
    log = trainer.log

    def logged(logs: dict[str, Any], *arguments: Any, **named: Any) -> Any:
        if "loss" in logs:  # a training log, not evaluation; runs on every process, as step() requires
            logs.update(meter.step(steps=max(trainer.state.global_step - meter.steps, 0)))
        return log(logs, *arguments, **named)

    trainer.floating_point_ops = lambda inputs: flops_of(meter, inputs)
    trainer.log = logged
    for name in ("evaluate", "predict"):
        setattr(trainer, name, without_time(meter, getattr(trainer, name)))
    trainer._save_checkpoint = with_counts(meter, trainer, trainer._save_checkpoint)

    def begun() -> None:
        if meter.phases:
            found = MFUMeter.of_model(getattr(trainer, "model_wrapped", trainer.model), devices=count, **named)
            meter.phases, meter.made = found.phases, found.made
        reference = getattr(trainer, "ref_model", None)
        meter.watch(*([] if reference is None else [reference]), prove=prove)

    trainer.add_callback(callback(meter, begun))
    return meter


def without_time(meter: MFUMeter, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``function`` so that its time is excluded from the meter's window."""

    @wraps(function)
    def paused(*arguments: Any, **named: Any) -> Any:
        with meter.paused():
            return function(*arguments, **named)

    return paused


def with_counts(meter: MFUMeter, trainer: Any, save: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the Trainer's method ``save`` so that checkpoints contain the meter's FLOPs and steps."""

    @wraps(save)
    def saved(*arguments: Any, **named: Any) -> Any:
        meter.settle()
        if isinstance(getattr(trainer.state, "stateful_callbacks", None), dict):
            trainer.state.stateful_callbacks[STATE] = meter.state_dict()
        return save(*arguments, **named)

    return saved


def flops_of(meter: MFUMeter, inputs: Mapping[str, Any]) -> int:
    """The FLOPs of a micro-batch, of padded lengths if the real ones are on a device; 0 if they are not known."""
    phase = next(iter(meter.phases.values()), None)
    if phase is None or phase.awaited is not None:
        return 0
    one: Any = phase.estimator
    try:
        streams = streams_of(one, inputs)
        if any(on_device(column) for entry in streams.values() for column in entry.axes):
            streams = streams_of(one, {name: value for name, value in inputs.items() if name in {*one.inputs(), *TOKENS}})
        return in_flops(one, int(one.total(one.moments(**{name: entry_of(entry) for name, entry in streams.items()}))))
    except Exception:  # the meter says what it cannot read
        return 0


def on_device(column: Any) -> bool:
    """Whether ``column`` is a tensor on a device, so that reading it would synchronise."""
    return getattr(getattr(column, "device", None), "type", "cpu") != "cpu"


def restore(meter: MFUMeter, state: Any) -> None:
    """Restore the meter's FLOPs and steps from a Trainer's state; without saved FLOPs it keeps its own."""
    kept = getattr(state, "stateful_callbacks", None) or {}
    try:
        if STATE in kept:
            meter.load_state_dict(kept[STATE])
    except (LookupError, TypeError, ValueError) as error:
        warnings.warn(f"symflops: the checkpoint's counts of FLOPs are damaged: {type(error).__name__}: {error}", stacklevel=2)
    meter.steps = state.global_step


def callback(meter: MFUMeter, begun: Callable[[], None] | None = None) -> Any:
    """A ``TrainerCallback`` that describes and starts the meter, and restores its counts, at the start.

    ``begun`` is called before, to read the model as it is then.

    Raises:
        ImportError: transformers is not installed.
    """
    from transformers import TrainerCallback

    class MFUCallback(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if begun is not None:
                begun()
            restore(meter, state)
            if getattr(state, "is_world_process_zero", True):
                meter.log(meter.describe())
            meter.start()

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            meter.settle()
            meter.unwatch()

    return MFUCallback()
