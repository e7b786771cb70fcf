"""The phases of a meter: each with its estimator and its sums, or with the batches that wait for an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from symflops.meter.accumulate import Accumulator
from symflops.meter.keys import PRESETS
from symflops.meter.processes import lowest_of_group
from symflops.meter.types import Sums
from symflops.runtime.protocol import Estimator
from symflops.runtime.units import in_flops


class Waiting:
    """Batches that are priced when their estimator arrives; those of closed windows enter the cumulative counts alone."""

    implied: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.earlier: list[tuple[int, dict[str, Any]]] = []
        self.window: list[tuple[int, dict[str, Any]]] = []
        self.faults = 0

    def add(self, times: int = 1, **streams: Any) -> None:
        """Keep one micro-batch: a copy, because a loop may write the next lengths into the same buffers."""
        self.window.append((times, deepcopy(streams)))

    def spoil(self) -> None:
        """Count a batch that could not be read."""
        self.faults += 1

    def close(self) -> None:
        """End a window without a price."""
        self.earlier += self.window
        self.window, self.faults = [], 0


@dataclass(slots=True)
class Phase:
    """One kind of run within a step: its estimator, whether it is logged, its sums and its time.

    While the estimator is ``awaited``, ``estimator`` reads batches in its place, and the sums are ``Waiting``.
    """

    name: str
    estimator: Estimator
    surfaced: bool
    sums: Any
    seconds: float = 0.0
    timed: bool = False
    broken: str = ""
    awaited: Any = None
    device: Any = None

    @classmethod
    def of(cls, name: str, estimator: Any, surfaced: bool, device: Any) -> Phase:
        """A phase with an estimator, or with one that is awaited (an object with ``poll`` and ``estimator``)."""
        if hasattr(estimator, "poll"):
            return cls(name, estimator.estimator, surfaced, Waiting(), awaited=estimator, device=device)
        return cls(name, estimator, surfaced, Accumulator(estimator, device), device=device)

    def flops(self, sums: Sums) -> tuple[int, int]:
        """The FLOPs of the model, and those that were executed: on padded lengths, with recomputation."""
        total, again = (self.estimator.coefficients[kind] for kind in ("total", "recomputed"))
        found = sums.flops(total, self.estimator.padded), sums.flops(total, True) + sums.flops(again, True)
        return in_flops(self.estimator, found[0]), in_flops(self.estimator, found[1])

    def receive(self, estimator: Estimator) -> Accumulator:
        """Take the estimator that was awaited; the sums of earlier windows."""
        waiting: Waiting = self.sums
        self.estimator, self.awaited = estimator, None
        earlier, self.sums = Accumulator(estimator, self.device), Accumulator(estimator, self.device)
        for sums, batches in ((earlier, waiting.earlier), (self.sums, waiting.window)):
            for times, streams in batches:
                try:
                    sums.add(times=times, **streams)
                except Exception:  # as a batch that cannot be read: this window has no MFU
                    sums.spoil()
        for _ in range(waiting.faults):
            self.sums.spoil()
        return earlier


class NoEstimatorError(Exception):
    """An awaited estimator does not come."""


def arrived(phases: Mapping[str, Phase], group: Any, together: bool) -> dict[str, Estimator]:
    """The estimators of all awaited phases once every process of the group has them, else nothing; never waits.

    Raises:
        NoEstimatorError: one of them does not come, on any process.
    """
    found: dict[str, Estimator] = {}
    state, reason = 2, "another process could not derive it"
    for name, phase in phases.items():
        try:
            estimator = phase.awaited.poll() if phase.awaited is not None else phase.estimator
        except Exception as error:
            state, reason = 0, f"{type(error).__name__}: {error}"
            break
        if estimator is None:
            state = min(state, 1)
        elif phase.awaited is not None:
            found[name] = estimator
    agreed = lowest_of_group(state, group) if together else state
    if agreed == 0:
        raise NoEstimatorError(reason)
    return found if agreed == 2 else {}


def line_of(phase: str, values: Mapping[str, float]) -> str:
    """The rates of a phase in words."""
    shown = [f"{values['tflops']:.4g} TFLOP/s a device"] if "tflops" in values else []
    shown += [f"MFU {values['mfu']:.4g}", f"HFU {values['hfu']:.4g}"] if "mfu" in values else ["MFU unknown"]
    return f"{phase + ': ' if phase else ''}{', '.join(shown)}"


def estimators_of_config(config: Any, regimes: Mapping[str, str], convention: str, spec: str | None) -> dict[str, Estimator]:
    """The estimator of a config per phase.

    Raises:
        SymflopsError: the model is unknown, or the config does not fit.
    """
    from symflops.catalog import lookup

    if config is None:
        raise ValueError("there is no config")
    config = lookup.config_of(config)
    catalog, name = (lookup.by_name(spec), spec) if spec else lookup.by_config(config)
    found = {regime: lookup.estimator(catalog, name, config, regime, convention)[1] for regime in set(regimes.values())}
    return {phase: found[regime] for phase, regime in regimes.items()}


def check_options(keys: str, scope: str, devices: int) -> None:
    """Refuse options of a meter that have no meaning.

    Raises:
        ValueError: an unknown preset or scope, or fewer than one device.
    """
    if keys not in PRESETS:
        raise ValueError(f"no preset of keys '{keys}'; there are {', '.join(PRESETS)}")
    if scope not in ("global", "rank"):
        raise ValueError(f"the scope is 'global' or 'rank', not {scope!r}")
    if devices < 1:
        raise ValueError(f"{devices} devices: FLOPs run on at least one")
