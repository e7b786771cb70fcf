"""Model FLOPs utilisation (MFU) of a training loop: model FLOPs over peak FLOPs of the devices.

    meter = MFUMeter.of_model(model).watch()            # or, for a config: meter.add(text=of_mask(batch["attention_mask"]))
    for batch in loader:
        train(batch)
        log(meter.step())                               # {"mfu": 0.41, "tflops_per_device": 405.7, ...}

MFU counts the model's own work on real tokens, forward and backward. HFU counts all executed work, including recomputation and
padding. Numerator and denominator belong to the same window, from one ``step`` to the next. With ``scope="global"`` the
numerator covers the whole data-parallel group, and ``devices`` are all accelerators that share its work, including tensor,
pipeline and context ranks. With ``scope="rank"`` it covers the batches of this process, and ``devices`` are those that share
them.

A meter never stops a job. If it does not know the model, the batch or the device's peak, it warns once with the reason and
omits the keys. A process without an estimator still joins the one ``all_reduce`` per step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Unpack

from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.training.devices.peaks import Peak, peak, reported_name
from symflops.training.introspect.model import LIVE, Programs, estimators_of
from symflops.training.meter.accumulate import is_zero, world_size
from symflops.training.meter.counts import Counts
from symflops.training.meter.describe import description, line_of
from symflops.training.meter.keys import metrics
from symflops.training.meter.phases import Phase, check_options, devices_of, estimators_of_config, seconds_of, steps_of
from symflops.training.meter.types import MeterOptions, Window
from symflops.training.meter.watch import Watch

ABOVE_ONE = (
    "check the peak (dense, of the dtype that the matmuls run in), that `devices` counts every accelerator that shares the "
    "work of `scope`, that seconds and batches are of the same steps, and that context-parallel ranks are not summed up"
)
TIME: Callable[[], float] = time.perf_counter
FAULTY = "negative, too short for the model, padded to less, too large or do not divide"


class MFUMeter(Counts):
    """Measures MFU, HFU, achieved TFLOP/s per device, cumulative FLOPs and tokens per second.

    Args:
        estimators: One estimator, or one per phase of a step; an object whose ``poll`` returns it later is accepted.
        devices: The accelerators that share the work of ``scope``; by default one per process.
        scope: ``global`` for the whole data-parallel group, ``rank`` for this process.
        group: The data-parallel process group; None for all processes.
        dtype, peak_tflops, variables, fallback, properties: The peak, as for :func:`symflops.training.devices.peaks.peak`.
        device_name: The name of the device; by default as the first accelerator reports it.
        keys: The preset of logged keys (``symflops.training.meter.keys.PRESETS``).
        hidden: Phases that are timed and counted but not logged.
        log_every: Number of steps between two lines of rates, which the first process prints through ``log``. 0 for no lines.
        log: Prints one line.
        warmup: Number of first steps that are in no printed rate and in no :meth:`summary`.
        clock: Returns seconds.
        device: Where tensors of lengths are summed; by default on their own device.
        reason: The reason for a missing estimator, for the warning.

    Raises:
        ValueError: an unknown preset or scope, fewer than one device, or a ``log_every`` that is not a number.
    """

    def __init__(
        self, estimators: InterpretedEstimator | Mapping[str, Any] | None, *, devices: int | None = None, scope: str = "global",
        group: Any = None, dtype: Any = "bf16", peak_tflops: float | str | None = None, variables: tuple[str, ...] = (),
        fallback: str | None = None, device_name: str | None = None, properties: Any = None, keys: str = "plain",
        hidden: tuple[str, ...] = ("ref",), log_every: int = 0, log: Callable[[str], object] | None = print,
        clock: Callable[[], float] | None = time.perf_counter, device: Any = None, reason: str = "",
        warmup: int = 0,
    ) -> None:  # fmt: skip
        count, wrong = devices_of((world_size() if scope == "global" else 1) if devices is None else devices)
        check_options(keys, scope, count, log_every, {"log": log, "clock": clock})
        estimators, reason = (None, wrong) if wrong else (estimators, reason)
        hidden = tuple(hidden) if isinstance(hidden, (tuple, list, set)) else (hidden,)
        named = estimators if isinstance(estimators, Mapping) else {} if estimators is None else {"": estimators}
        phases = {name: Phase.of(name, one, name not in hidden, device) for name, one in named.items()}
        super().__init__(phases, scope, group, log if log is not None else lambda line: None)
        self.devices, self.keys, self.log_every, self.clock = (
            count,
            keys,
            log_every or 0,
            clock or TIME,
        )
        name = reported_name() if device_name is None else str(device_name)
        try:
            self.peak = peak(
                name, dtype, peak_tflops=peak_tflops, variables=variables or (), fallback=fallback, properties=properties
            )
        except Exception as error:
            self.peak = Peak(None, name, str(dtype), why=str(error))
        self._start = self._stopped = self.clock()
        self._pauses, self._idle = 0, 0.0
        self.warmup, self._taken = steps_of(warmup), 0
        self.made: Any = None
        if not self.phases:
            self.warn(f"no MFU: {reason or 'no estimator was given'}")
        elif self.peak.tflops is None:
            self.warn(f"no MFU: the peak is {self.peak}")

    @classmethod
    def of_config(
        cls,
        config: Any,
        *,
        regimes: str | Mapping[str, str] = "full",
        convention: str = "symflops",
        spec: str | None = None,
        **options: Unpack[MeterOptions],
    ) -> MFUMeter:
        """A meter for a config; if the model is unknown or the config invalid, it warns and logs no MFU.

        Args:
            config: A mapping, a path to a config.json, or a config object.
            regimes: The training regime, or one per phase.
            convention: Which work counts.
            spec: The name of the spec; by default found by the config.
            options: As for the constructor.
        """
        named = {"": regimes} if isinstance(regimes, str) else regimes
        try:
            estimators = estimators_of_config(config, named, convention, spec)
        except Exception as error:
            return cls(None, reason=f"{type(error).__name__}: {error}", **options)
        return cls(estimators, **options)

    @classmethod
    def of_model(
        cls,
        module: Any,
        *,
        regimes: str | Mapping[str, str] = LIVE,
        convention: str = "symflops",
        spec: str | None = None,
        check: str = "raise",
        **options: Unpack[MeterOptions],
    ) -> MFUMeter:
        """A meter for a live model, bare or wrapped; if the model is unknown, it warns and logs no MFU.

        Every parameter is checked against the spec. If no stored program fits, another process derives one; until it is ready,
        batches are counted and no MFU is logged.

        ``module``, ``convention``, ``spec`` and ``check`` are those of :func:`symflops.of_model`, ``options`` those of the
        constructor. ``regimes`` is a training regime, or one per phase; ``live`` detects it from the module.
        """
        named, programs = {"": regimes} if isinstance(regimes, str) else regimes, Programs(check)
        try:
            estimators = estimators_of(module, named, convention, spec, programs)
        except Exception as error:
            return cls(None, reason=f"{type(error).__name__}: {error}", **options)
        meter = cls(estimators, **options)
        meter.made = module, spec, regimes if isinstance(regimes, str) else LIVE, convention, programs
        lines = {getattr(one, "account", "") or "deriving the program in the background" for one in estimators.values()}
        meter.tell("\nsymflops: ".join(sorted(lines)))
        return meter

    def watch(self, *modules: Any, prove: bool = True) -> MFUMeter:
        """Count the model's own calls from now on, without :meth:`add`; return the meter.

        A call counts with the lengths in its arguments, and with the backward passes that autograd runs through it. Calls for
        evaluation, in a pause or over a cache count in ``executed`` only. If the model changes, it is read anew.

        The first step runs under PyTorch's formulas of FLOPs, and executed work is compared with the estimator's, module by
        module. If they differ, no MFU is logged.

        Args:
            modules: Further models whose calls belong to the same step, such as a teacher or a reference; for a meter of a
                config, first the model itself.
            prove: Whether to compare the first step.
        """
        module, spec, regime, convention, programs = self.made or (None, None, LIVE, "symflops", Programs())
        watching = self.watching = self.watching or Watch(self)
        if not watching.models:
            watching.begin(programs, convention, prove)
        for one in (module, *modules) if module is not None and self.phases else modules if self.phases else ():
            main = not watching.models
            mine = (spec, regime) if one is module else (None, LIVE)
            self._guarded(watching.add, one, *mine, main)
        return self

    def unwatch(self) -> None:
        """Remove the hooks of :meth:`watch`; the calls until now count."""
        if self.watching is not None:
            self.watching.remove()

    @property
    def is_paused(self) -> bool:
        """Whether time is not counted."""
        return self._pauses > 0

    def describe(self, **streams: Any) -> str:
        """Describe the model, the formula and the source of the peak in text; with a batch also its FLOPs."""
        try:
            return description(self, streams)
        except Exception as error:
            return f"symflops: {type(error).__name__}: {error}"

    def start(self) -> None:
        """Start the clock of the first window; call it after set-up and compilation."""
        self._start = self._now()

    def _now(self) -> float:
        """The time on the clock in seconds, without the time spent paused."""
        return (self._stopped if self._pauses else self.clock()) - self._idle

    @contextmanager
    def paused(self) -> Iterator[MFUMeter]:
        """Context manager whose time is excluded, for example evaluation between two steps."""
        self.pause()
        try:
            yield self
        finally:
            self.resume()

    def pause(self) -> None:
        """Stop the clock until ``resume`` is called as often as ``pause``."""
        if not self._pauses:
            self._stopped = self.clock()
        self._pauses += 1

    def resume(self) -> None:
        """Undo one ``pause``; the last one restarts the clock."""
        if self._pauses == 1:
            self._idle += self.clock() - self._stopped
        self._pauses = max(self._pauses - 1, 0)

    @contextmanager
    def phase(self, name: str) -> Iterator[MFUMeter]:
        """Context manager that times a phase and assigns batches to it; synchronise the device at its end."""
        before, begun = self._current, self._now()
        self._current = name
        try:
            yield self
        finally:
            self.spent(name, self._now() - begun)
            self._current = before

    def spent(self, name: str, seconds: float) -> None:
        """Add seconds measured elsewhere to a phase."""
        if name in self.phases:
            self.phases[name].seconds += seconds_of(seconds)
            self.phases[name].timed = True

    def step(self, seconds: float | None = None, steps: int = 1) -> dict[str, float]:
        """End the window of steps since the last call, and return the values to log by key.

        Every process of the group must call this. Every ``log_every`` steps it prints the rates of all windows since the last
        line. A window without a positive, finite number of seconds has no rates.

        Args:
            seconds: The window's wall time, by default that since the last step.
            steps: The number of training steps in the window.
        """
        now, steps = self._now(), steps_of(steps)
        window, self._start = seconds_of(now - self._start if seconds is None else seconds), now
        due = self.log_every and (self.steps + steps) // self.log_every > self.steps // self.log_every
        self.steps += steps
        warm, self._taken = self._taken >= self.warmup, self._taken + steps
        found: dict[str, float] = {}
        self.settle()
        ran = []
        for phase in self.phases.values():
            ran.append((phase, self._guarded(self._window, phase, phase.seconds if phase.timed else window, steps)))
            phase.seconds, phase.held, phase.partial = 0.0, None, False
        self._spoilt = False
        known = [(phase, mine) for phase, mine in ran if phase.surfaced and mine is not None]
        idle = not any(mine.model for _, mine in known)  # if another phase ran, this window's time belongs to it
        for phase, mine in known:
            if warm and (mine.model or idle):
                phase.interval += mine
                phase.steady.add(mine)
            found.update(metrics(self.keys, phase.name, self._guarded(self._values, mine) or {}))
        if due and known:
            self._print()
        return found

    def summary(self) -> dict[str, float]:
        """The rates over all steps after the warm-up, as mean (sums over sums) and median of the windows.

        ``useful`` figures and ``mfu`` are of the model's work, ``executed`` figures and ``hfu`` of all work that ran. FLOPs are
        per second and device. With several phases, the name of each comes first: ``actor/mfu_mean``. Phases that did not run
        have no keys.
        """
        found: dict[str, float] = {}
        for phase in self.phases.values():
            rates = phase.steady.rates(self.devices, self.peak.flops_per_second)
            found.update({f"{phase.name}/{key}" if phase.name else key: value for key, value in rates.items()})
        return found

    def _window(self, phase: Phase, seconds: float, steps: int) -> Window | None:
        """The FLOPs, tokens and seconds of a phase since the last step; None if its sums or time are unknown."""
        sums = phase.held
        if sums is None or phase.partial:
            return None
        if sums.faults:
            if not self._spoilt:
                self.warn(f"no MFU for steps with lengths that are {FAULTY} ({sums.faults} seen)")
            return None
        ran = any(sums.real) or any(sums.known)
        if ran and not seconds > 0:
            self.warn("no MFU for a window whose seconds are not a positive, finite number", key="seconds")
        model, executed = phase.flops(sums) if ran else (0, 0)
        tokens = sums.known[2] + (sums.tokens[0] if sums.tokens else 0)
        return Window(model, executed, tokens, seconds, steps) if seconds > 0 else None

    def _print(self) -> None:
        """Print the rates of each phase since the last line, on the first process of the job."""
        lines = []
        for phase in self.phases.values():
            ran = phase.interval
            if ran.model:
                values = self._guarded(self._values, ran) or {}
                unit = getattr(phase.estimator, "unit", "flops")
                lines.append(line_of(phase.name, values, ran.seconds / max(ran.steps, 1), unit))
                phase.interval = Window()
        if lines and is_zero():
            self.log(f"step {self.steps}: {'; '.join(lines)}")

    def _values(self, ran: Window) -> dict[str, float]:
        """Map the quantities to log (``mfu``, ``tflops``, ``flops``, ...) to values; empty if nothing ran."""
        if not ran.model:
            return {}
        model, executed = (flops / ran.seconds / self.devices for flops in (ran.model, ran.executed))
        tokens, peak = ran.tokens / ran.seconds, self.peak.flops_per_second
        found = {"flops": self.flops, "flops_per_second": model, "tflops": model / 1e12, "tokens_per_second": tokens}
        if peak and model > peak:
            self.warn(f"MFU is {model / peak:.3f}, above 1: {ABOVE_ONE}; peak: {self.peak}", key="above one")
        shares = {"peak": self.peak.tflops or 0.0, "mfu": model / peak, "hfu": executed / peak} if peak else {}
        return {**found, "tokens_per_device": tokens / self.devices, **shares}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Restore cumulative FLOPs and steps from a checkpoint, and start the first window."""
        super().load_state_dict(state)
        self.start()

    def __repr__(self) -> str:
        return f"<MFUMeter: {len(self.phases)} phases, {self.devices} devices, {self.steps} steps, peak {self.peak.tflops}>"
