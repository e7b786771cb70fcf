"""Phases of a meter: an estimator with its sums, or batches that wait for an estimator."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from numbers import Real
from operator import index
from typing import Any
from weakref import finalize

from symflops.evaluate.boundaries import told
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.units import in_flops
from symflops.training.meter.accumulate import Accumulator
from symflops.training.meter.keys import PRESETS
from symflops.training.meter.steady import Steady
from symflops.training.meter.types import Sums, Window


class Waiting:
    """Queue of batches whose estimator is still being derived; it takes the place of an accumulator."""

    implied: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.earlier: list[tuple[int, dict[str, Any]]] = []
        self.window: list[tuple[int, dict[str, Any]]] = []
        self.faults = 0
        self.owed = [0]
        finalize(self, ended, self.owed)

    def add(self, times: int = 1, **streams: Any) -> None:
        """Queue a copy of one micro-batch; a copy, because a loop may reuse its buffers for the next lengths."""
        self.window.append((times, deepcopy(streams)))
        self.owed[0] += 1

    def spoil(self) -> None:
        """Record that a batch could not be read, so that this window has no MFU."""
        self.faults += 1

    def close(self) -> None:
        """End a window that has no estimator yet: its batches count later."""
        self.earlier += self.window
        self.window, self.faults = [], 0


def ended(owed: Sequence[int]) -> None:
    """Say that a job ended before the program of its model was derived, if it owes the counts of batches."""
    if owed[0]:
        print(f"symflops: no MFU: the job ended before its program was derived ({owed[0]} batches)", file=sys.stderr)


@dataclass(slots=True)
class Phase:
    """One phase of a step, such as actor or reference.

    A window is the time between two calls of the meter's ``step``.

    Attributes:
        name: Its name; empty for the only phase of a step.
        estimator: Its estimator; while that is being derived, an object that only reads batches.
        surfaced: Whether it is logged.
        sums: The sums of this process, or a :class:`Waiting` queue.
        seconds: Its time in this window.
        timed: Whether ``seconds`` were measured; else the time of the whole window counts.
        awaited: The estimator that is being derived, else None.
        owed: Whether a watched call awaits its estimator.
        device: Where lengths are summed.
        before: Sums of earlier windows, in which some process had no estimator.
        held: Sums of this window over the group of processes.
        partial: Whether sums of this window are missing, so that it has no rates.
        given: Streams that a batch has had, or that were reported missing.
        interval: The windows since the last printed line, after the warm-up.
        steady: All windows after the warm-up.
    """

    name: str
    estimator: InterpretedEstimator
    surfaced: bool
    sums: Any
    seconds: float = 0.0
    timed: bool = False
    awaited: Any = None
    owed: bool = False
    device: Any = None
    before: Any = None
    held: Sums | None = None
    partial: bool = False
    given: set[str] = field(default_factory=set)
    interval: Window = field(default_factory=Window)
    steady: Steady = field(default_factory=Steady)

    @classmethod
    def of(cls, name: str, estimator: Any, surfaced: bool, device: Any) -> Phase:
        """Build a phase for an estimator, or one being derived (an object with ``poll`` and ``estimator``)."""
        if hasattr(estimator, "poll"):
            return cls(name, estimator.estimator, surfaced, Waiting(), awaited=estimator, device=device)
        sums = Accumulator(estimator, device)
        return cls(name, estimator, surfaced, sums, device=device, before=like(sums))

    @property
    def waits(self) -> bool:
        """Whether FLOPs of this window are counted later, because an estimator is being derived."""
        return self.awaited is not None or self.owed

    def flops(self, sums: Sums) -> tuple[int, int]:
        """Return (model FLOPs, executed FLOPs); the second include padding and recomputation."""
        total, again = (self.estimator.coefficients[kind] for kind in ("total", "recomputed"))
        found = sums.flops(total, self.estimator.padded), sums.flops(total, True) + sums.flops(again, True)
        model, executed = (in_flops(self.estimator, flops) for flops in found)
        return model + sums.known[0], executed + sums.known[1]

    def receive(self, estimator: InterpretedEstimator) -> None:
        """Install the awaited estimator and sum the queued batches."""
        waiting: Waiting = self.sums
        waiting.owed[0] = 0
        self.estimator, self.awaited = estimator, None
        self.sums = Accumulator(estimator, self.device)
        self.before = like(self.sums)
        for sums, batches in ((self.before, waiting.earlier), (self.sums, waiting.window)):
            for times, streams in batches:
                try:
                    sums.add(times=times, **streams)
                except Exception:  # an unreadable batch: this window has no MFU
                    sums.spoil()
        for _ in range(waiting.faults):
            self.sums.spoil()

    def wait(self) -> None:
        """End a window while some process lacks an estimator: its FLOPs count later, and it has no rate."""
        self.partial = True
        if self.awaited is None:
            self.before.absorb(self.sums)
        else:
            self.sums.close()

    def drop(self) -> None:
        """Clear the sums of this window, and those of earlier ones that were waiting for an estimator."""
        self.sums.reset()
        self.before.reset()

    def lacking(self) -> list[str]:
        """Streams that the config implies but no batch has had; each is returned only once."""
        found = (
            []
            if self.awaited
            else [name for name in self.sums.implied if name not in self.given and self.sums.layout.alone(name)]
        )
        self.given.update(found)  # report each once
        return found


def like(sums: Accumulator) -> Accumulator:
    """An empty accumulator of the same estimator."""
    found = copy(sums)
    found.reset()
    return found


def estimators_of_config(
    config: Any, regimes: Mapping[str, str], convention: str, spec: str | None
) -> dict[str, InterpretedEstimator]:
    """Map each phase to its estimator, for one model and the regime of each phase; the note of a name is a warning.

    Raises:
        SymflopsError: the model is unknown, or the config does not fit.
    """
    from symflops.library.lookup import warn
    from symflops.library.naming import estimator_for, selected

    if config is None:
        raise ValueError("there is no config")
    model = selected(config, spec=spec)
    if model.note:
        warn(model.note, 4)
    found = {regime: estimator_for(model, regime, convention) for regime in set(regimes.values())}
    return {phase: found[regime] for phase, regime in regimes.items()}


def seconds_of(given: Any) -> float:
    """Convert ``given`` to a float; NaN for anything but a finite, non-negative number."""
    try:
        found = math.nan if isinstance(given, (str, bytes, bool)) else float(given)
    except (TypeError, ValueError, ArithmeticError, RuntimeError):
        return math.nan
    return found if 0 <= found < math.inf else math.nan


def steps_of(given: Any) -> int:
    """Convert a number of steps to an int; 0 for anything but a positive whole number."""
    try:
        return max(index(given), 0)
    except TypeError:
        return 0


def devices_of(given: Any) -> tuple[int, str]:
    """The number of devices, and why ``given`` is none; then the number is 1."""
    try:
        found = math.nan if isinstance(given, bool) else float(given)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    whole = math.isfinite(found) and found == int(found)
    return (int(found), "") if whole else (1, f"{told(given)} devices: FLOPs run on a whole number of devices")


def check_options(keys: str, scope: str, devices: float, log_every: Any, functions: Mapping[str, Any]) -> None:
    """Refuse invalid options of a meter.

    Raises:
        ValueError: an unknown preset or scope, fewer than one device, a ``log_every`` that is not a number, or one of
            ``functions`` that is no function.
    """
    if not isinstance(keys, str) or keys not in PRESETS:
        raise ValueError(f"no preset of keys '{keys if isinstance(keys, str) else told(keys)}'; there are {', '.join(PRESETS)}")
    if scope not in ("global", "rank"):
        raise ValueError(f"the scope is 'global' or 'rank', not {scope if isinstance(scope, str) else told(scope)!r}")
    if devices < 1:
        raise ValueError(f"{devices} devices: FLOPs run on at least one")
    wrong = next((name for name, one in functions.items() if not (one is None or callable(one))), None)
    if wrong is not None:
        raise ValueError(f"{wrong}={told(functions[wrong])}: this is a function")
    if not isinstance(log_every, (Real, type(None))) or not math.isfinite(log_every or 0):
        given = log_every if isinstance(log_every, str) else told(log_every)
        raise ValueError(f"log_every={given!r}: the steps between two lines are a whole number, or 0 for no lines")
