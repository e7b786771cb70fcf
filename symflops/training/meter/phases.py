"""The phases of a meter: each with its estimator and its sums, or with the batches that wait for an estimator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.units import in_flops
from symflops.training.meter.accumulate import Accumulator
from symflops.training.meter.keys import PRESETS
from symflops.training.meter.types import Sums, Window


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

    While the estimator is ``awaited``, ``estimator`` reads batches in its place, and the sums are ``Waiting``. ``before`` has
    the sums of windows in which not every process had it. ``held`` are the sums of this window that the group has added up;
    if some are lost, the window is ``partial`` and has no rate. ``interval`` is what ran since the last printed line.
    """

    name: str
    estimator: InterpretedEstimator
    surfaced: bool
    sums: Any
    seconds: float = 0.0
    timed: bool = False
    awaited: Any = None
    device: Any = None
    before: Any = None
    held: Sums | None = None
    partial: bool = False
    given: set[str] = field(default_factory=set)
    interval: Window = field(default_factory=Window)

    @classmethod
    def of(cls, name: str, estimator: Any, surfaced: bool, device: Any) -> Phase:
        """A phase with an estimator, or with one that is awaited (an object with ``poll`` and ``estimator``)."""
        if hasattr(estimator, "poll"):
            return cls(name, estimator.estimator, surfaced, Waiting(), awaited=estimator, device=device)
        sums = Accumulator(estimator, device)
        return cls(name, estimator, surfaced, sums, device=device, before=like(sums))

    def flops(self, sums: Sums) -> tuple[int, int]:
        """The FLOPs of the model, and those that were executed: on padded lengths, with recomputation."""
        total, again = (self.estimator.coefficients[kind] for kind in ("total", "recomputed"))
        found = sums.flops(total, self.estimator.padded), sums.flops(total, True) + sums.flops(again, True)
        return in_flops(self.estimator, found[0]), in_flops(self.estimator, found[1])

    def receive(self, estimator: InterpretedEstimator) -> None:
        """Take the estimator that was awaited, and sum up what ran before."""
        waiting: Waiting = self.sums
        self.estimator, self.awaited = estimator, None
        self.sums = Accumulator(estimator, self.device)
        self.before = like(self.sums)
        for sums, batches in ((self.before, waiting.earlier), (self.sums, waiting.window)):
            for times, streams in batches:
                try:
                    sums.add(times=times, **streams)
                except Exception:  # as a batch that cannot be read: this window has no MFU
                    sums.spoil()
        for _ in range(waiting.faults):
            self.sums.spoil()

    def wait(self) -> None:
        """End a window in which not every process has its estimator: its FLOPs count later, and it has no rate."""
        self.partial = True
        if self.awaited is None:
            self.before.absorb(self.sums)
        else:
            self.sums.close()

    def drop(self) -> None:
        """Start anew, on the device and on the host."""
        self.sums.reset()
        self.before.reset()

    def lacking(self) -> list[str]:
        """The streams that the config implies, of items of their own, and that no batch had so far."""
        found = [] if self.awaited else [name for name in self.sums.implied if name not in self.given and self.sums.alone(name)]
        self.given.update(found)  # said once
        return found


def like(sums: Accumulator) -> Accumulator:
    """An empty accumulator of the same estimator."""
    found = copy(sums)
    found.reset()
    return found


def estimators_of_config(
    config: Any, regimes: Mapping[str, str], convention: str, spec: str | None
) -> dict[str, InterpretedEstimator]:
    """The estimator of a config per phase.

    Raises:
        SymflopsError: the model is unknown, or the config does not fit.
    """
    from symflops.library import lookup

    if config is None:
        raise ValueError("there is no config")
    config = lookup.config_of(config)
    catalog, name = (lookup.by_name(spec), spec) if spec else lookup.by_config(config)
    found = {regime: lookup.estimator(catalog, name, config, regime, convention)[1] for regime in set(regimes.values())}
    return {phase: found[regime] for phase, regime in regimes.items()}


def seconds_of(given: Any) -> float:
    """A finite number of seconds, 0 or more; NaN for anything else."""
    try:
        found = math.nan if isinstance(given, (str, bytes, bool)) else float(given)
    except (TypeError, ValueError, ArithmeticError, RuntimeError):
        return math.nan
    return found if 0 <= found < math.inf else math.nan


def check_options(keys: str, scope: str, devices: int, log_every: Any) -> None:
    """Refuse options of a meter that have no meaning.

    Raises:
        ValueError: an unknown preset or scope, fewer than one device, or steps between lines that are no number.
    """
    if keys not in PRESETS:
        raise ValueError(f"no preset of keys '{keys}'; there are {', '.join(PRESETS)}")
    if scope not in ("global", "rank"):
        raise ValueError(f"the scope is 'global' or 'rank', not {scope!r}")
    if devices < 1:
        raise ValueError(f"{devices} devices: FLOPs run on at least one")
    if not isinstance(log_every or 0, Real):
        raise ValueError(f"log_every={log_every!r}: the steps between two lines are a whole number, or 0 for no lines")
