"""Model FLOPs utilisation of a training loop: what the model needed, over what the devices could have done in that time.

    meter = MFUMeter.of_config(model.config, devices=world_size, dtype="bf16", group=data_parallel_group)
    for batch in micro_batches:
        meter.add(text=of_mask(batch["attention_mask"]))
    log(meter.step())                                   # {"mfu": 0.41, "tflops_per_device": 405.7, ...}

MFU counts the model's own work on real tokens, forward and backward; HFU counts what was executed: recomputation and
padding as well. Numerator and denominator are of the same window, from one ``step`` to the next. The numerator is of the whole
data-parallel group (``scope="global"``) and ``devices`` are then all accelerators that share that work, tensor, pipeline
and context ranks among them; or of this process's batches (``scope="rank"``), and ``devices`` those that share them.

A meter never stops a job: what it cannot know (the model, the batch, the device's peak) it says once, as a warning with
the reason, and leaves the keys away.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from symflops.devices.peaks import Peak, peak, reported_name
from symflops.meter.accumulate import Accumulator
from symflops.meter.describe import description
from symflops.meter.keys import PRESETS, metrics
from symflops.meter.types import Estimates, Sums

ABOVE_ONE = (
    "check the peak (dense, of the dtype that the matmuls run in), that `devices` counts every accelerator that shares the "
    "work of `scope`, that seconds and batches are of the same steps, and that context-parallel ranks are not summed up"
)


@dataclass(slots=True)
class Phase:
    """One kind of run within a step: its estimator, whether it is logged, what it summed up and how long it took."""

    name: str
    estimator: Estimates
    surfaced: bool
    sums: Accumulator
    seconds: float = 0.0
    timed: bool = False
    broken: str = ""


class MFUMeter:
    """Measures MFU, HFU, achieved TFLOP/s per device, cumulative FLOPs and tokens per second.

    ``estimators`` is one estimator, or one per phase of a step; phases in ``hidden`` are timed and counted but not logged.
    ``peak_tflops`` and the other arguments of :func:`symflops.devices.peaks.peak` say the peak. ``log_every`` prints a line
    every so many steps through ``log``. ``clock`` returns seconds.

    Raises:
        ValueError: an unknown preset or scope, fewer than one device, or a peak that is no rate.
    """

    def __init__(
        self,
        estimators: Estimates | Mapping[str, Estimates] | None,
        *,
        devices: int,
        scope: str = "global",
        group: Any = None,
        dtype: str = "bf16",
        peak_tflops: float | None = None,
        variables: tuple[str, ...] = (),
        fallback: str | None = None,
        device_name: str | None = None,
        properties: Any = None,
        keys: str = "plain",
        hidden: tuple[str, ...] = ("ref",),
        log_every: int = 0,
        log: Callable[[str], object] = print,
        clock: Callable[[], float] = time.perf_counter,
        device: Any = None,
        reason: str = "",
    ) -> None:
        if keys not in PRESETS:
            raise ValueError(f"no preset of keys '{keys}'; there are {', '.join(PRESETS)}")
        if scope not in ("global", "rank"):
            raise ValueError(f"the scope is 'global' or 'rank', not {scope!r}")
        if devices < 1:
            raise ValueError(f"{devices} devices: FLOPs run on at least one")
        named = estimators if isinstance(estimators, Mapping) else {} if estimators is None else {"": estimators}
        self.phases = {name: Phase(name, one, name not in hidden, Accumulator(one, device)) for name, one in named.items()}
        self.devices, self.scope, self.group, self.keys = devices, scope, group, keys
        self.log_every, self.log, self.clock = log_every, log, clock
        name = reported_name() if device_name is None else device_name
        self.peak: Peak = peak(
            name, dtype, peak_tflops=peak_tflops, variables=variables, fallback=fallback, properties=properties
        )
        self.flops = self.executed = 0
        self.steps = 0
        self._said: set[str] = set()
        self._current = next(iter(self.phases), "")
        self._start = clock()
        if not self.phases:
            self._say(f"no MFU: {reason or 'no estimator was given'}")
        elif self.peak.tflops is None:
            self._say(f"no MFU: the peak is {self.peak}")

    @classmethod
    def of_config(
        cls,
        config: Any,
        *,
        regimes: str | Mapping[str, str] = "full",
        convention: str = "symflops",
        spec: str | None = None,
        **options: Any,
    ) -> MFUMeter:
        """A meter for the model of a config: a mapping, a path to a config.json, or an object with ``to_dict``.

        ``regimes`` is what trains, or that per phase. An unknown model or a config that does not fit makes a meter without
        MFU that says why; ``options`` are those of the constructor.
        """
        named = {"": regimes} if isinstance(regimes, str) else regimes
        try:
            estimators = _estimators(config, named, convention, spec)
        except Exception as error:
            return cls(None, reason=f"{type(error).__name__}: {error}", **options)
        return cls(estimators, **options)

    def describe(self, **streams: Any) -> str:
        """What is measured, by which formula, and where the peak comes from; with a batch its numbers, too."""
        try:
            return description(self, streams)
        except Exception as error:
            return f"symflops: {type(error).__name__}: {error}"

    def start(self) -> None:
        """Start the clock of the first window, after set-up and compilation."""
        self._start = self.clock()

    @contextmanager
    def phase(self, name: str) -> Iterator[MFUMeter]:
        """Time a phase, whose batches are added inside. On a device end it where its work has been waited for."""
        before, begun = self._current, self.clock()
        self._current = name
        try:
            yield self
        finally:
            self.spent(name, self.clock() - begun)
            self._current = before

    def spent(self, name: str, seconds: float) -> None:
        """Add seconds that were measured elsewhere to a phase."""
        if name in self.phases:
            self.phases[name].seconds += seconds
            self.phases[name].timed = True

    def add(self, *, passes: int = 1, timesteps: int = 1, phase: str | None = None, **streams: Any) -> None:
        """Add a micro-batch: per stream its lengths, in any form that an accumulator takes; nothing waits for a device.

        ``passes`` are forward passes per denoising step (classifier-free guidance runs two), ``timesteps`` denoising steps.
        """
        name = self._current if phase is None else phase
        found = self.phases.get(name)
        if found is None:
            if self.phases:
                self._say(f"no MFU of phase '{name}': the meter has {', '.join(map(repr, self.phases))}")
            return
        try:
            found.sums.add(times=passes * timesteps, **streams)
        except Exception as error:
            self.unreadable(f"{type(error).__name__}: {error}", name)

    def unreadable(self, reason: str, phase: str | None = None) -> None:
        """Say that a batch could not be read: this window has no MFU, on any process of the group."""
        found = self.phases.get(self._current if phase is None else phase)
        if found is not None:
            found.broken = reason
            found.sums.spoil()
        self._say(f"no MFU for steps with a batch that could not be read: {reason}")

    def step(self, seconds: float | None = None) -> dict[str, float]:
        """End the window: sum over the group, read once, and return what to log, by key.

        ``seconds`` is the window's wall time, by default since the last step. Every process of the group calls this.
        """
        now = self.clock()
        window, self._start = (now - self._start if seconds is None else seconds), now
        self.steps += 1
        found: dict[str, float] = {}
        line: list[str] = []
        for phase in self.phases.values():
            try:
                sums = phase.sums.read(self.group, reduce=self.scope == "global")
                values = self._values(phase, sums, phase.seconds if phase.timed else window)
            except Exception as error:
                self._say(f"no MFU: {type(error).__name__}: {error}")
                values = {}
            phase.seconds, phase.broken = 0.0, ""
            if phase.surfaced and values:
                found.update(metrics(self.keys, phase.name, values))
                line.append(_line(phase.name, values))
        if self.log_every and self.steps % self.log_every == 0 and line:
            self.log(f"step {self.steps}: {'; '.join(line)}")
        return found

    def _values(self, phase: Phase, sums: Sums, seconds: float) -> dict[str, float]:
        """What was measured of one phase, by quantity; empty where nothing ran or something could not be read."""
        if sums.faults:
            self._say(f"no MFU for steps with lengths that are negative, too large or do not divide ({sums.faults} seen)")
            return {}
        if not any(sums.real):
            return {}
        model = sums.flops(phase.estimator.coefficients["total"], phase.estimator.padded)
        hardware = sums.flops(phase.estimator.coefficients["total"], True) + sums.flops(
            phase.estimator.coefficients["recomputed"], True
        )
        self.flops += model
        self.executed += hardware
        values: dict[str, float] = {"flops": self.flops}
        if seconds <= 0:
            self._say(f"no MFU for a window of {seconds} seconds")
            return values
        values["flops_per_second"] = model / seconds / self.devices
        values["tflops"] = values["flops_per_second"] / 1e12
        values["tokens_per_second"] = sums.tokens[0] / seconds if sums.tokens else 0.0
        values["tokens_per_device"] = values["tokens_per_second"] / self.devices
        if self.peak.flops_per_second:
            values["peak"] = self.peak.tflops or 0.0
            values["mfu"] = values["flops_per_second"] / self.peak.flops_per_second
            values["hfu"] = hardware / seconds / self.devices / self.peak.flops_per_second
            if values["mfu"] > 1:
                self._say(f"MFU is {values['mfu']:.3f}, above 1: {ABOVE_ONE}; peak: {self.peak}", key="above one")
        return values

    def state_dict(self) -> dict[str, int]:
        """What survives a restart: cumulative FLOPs and steps. The clock of the rates does not."""
        return {"version": 1, "flops": self.flops, "executed": self.executed, "steps": self.steps}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Continue the counts of a checkpoint; the first window starts now."""
        self.flops, self.executed = int(state["flops"]), int(state["executed"])
        self.steps = int(state["steps"])
        self._start = self.clock()

    def _say(self, text: str, key: str = "") -> None:
        """Warn once."""
        if (key or text) not in self._said:
            self._said.add(key or text)
            warnings.warn(f"symflops: {text}", stacklevel=3)


def _line(phase: str, values: Mapping[str, float]) -> str:
    shown = [f"{values['tflops']:.4g} TFLOP/s a device"] if "tflops" in values else []
    shown += [f"MFU {values['mfu']:.4g}", f"HFU {values['hfu']:.4g}"] if "mfu" in values else ["MFU unknown"]
    return f"{phase + ': ' if phase else ''}{', '.join(shown)}"


def _estimators(config: Any, regimes: Mapping[str, str], convention: str, spec: str | None) -> dict[str, Estimates]:
    from symflops.catalog import lookup

    if config is None:
        raise ValueError("there is no config")
    if hasattr(config, "to_dict"):
        config = config.to_dict()
    elif isinstance(config, str) or hasattr(config, "__fspath__"):
        config = lookup.read_config(str(config))
    catalog, name = (lookup.by_name(spec), spec) if spec else lookup.by_config(config)
    made = {regime: lookup.estimator(catalog, name, config, regime, convention)[1] for regime in set(regimes.values())}
    return {phase: made[regime] for phase, regime in regimes.items()}
