"""Counts a training loop's FLOPs per phase over a process group; the counts survive a restart.

The sums of all phases are reduced with one ``all_reduce`` per step, in a vector of fixed length. Processes may differ: one has
no estimator, one still waits for it, one has that of another model. Every process joins the collective anyway, so ranks never
get out of step. The head of the vector counts the processes of each kind. Sums are used if all estimators count the same, which
a digest of the layout verifies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Unpack

from symflops.evaluate.units import unit_of
from symflops.training.meter.accumulate import distributed_of, is_zero, reduced
from symflops.training.meter.batches import streams_of
from symflops.training.meter.phases import Phase
from symflops.training.meter.types import BatchOptions, Sums

MOST = 3
"""Number of warnings about batches that could not be read, and as many about calls."""


class Counts:
    """The part of a meter that counts FLOPs by phase; a batch that it cannot count causes only a warning."""

    def __init__(self, phases: dict[str, Phase], scope: str, group: Any, log: Callable[[str], object]) -> None:
        self.phases, self.scope, self.group, self.log = phases, scope, group, log
        self.flops = self.executed = self.steps = 0
        self._warned: set[str] = set()
        self._current = next(iter(phases), "")
        self._unread, self._broken, self._spoilt = 0, False, False
        self.watching: Any = None

    def add(self, *, passes: int = 1, timesteps: int = 1, phase: str | None = None, **streams: Any) -> None:
        """Add a micro-batch without synchronising with a device.

        Args:
            passes: Forward passes per denoising step (two with classifier-free guidance).
            timesteps: Denoising steps.
            phase: The phase; by default the current one.
            streams: The lengths of each stream, in any form that an accumulator takes.
        """
        name = self._current if phase is None else phase
        found = self.phases.get(name)
        if found is None:
            self._unread += not self.phases
            if self.phases:
                self.warn(f"no MFU of phase '{name}': the meter has {', '.join(map(repr, self.phases))}")
            return
        found.given.update(stream for stream, lengths in streams.items() if lengths is not None)
        for missing in found.sums.implied:
            if streams.get(missing) is None and not found.sums.layout.alone(missing):
                self.warn(f"a batch has no '{missing}', which this config implies: its work is not counted")
        try:
            found.sums.add(times=passes * timesteps, **streams)
        except Exception as error:
            self.unreadable(f"{type(error).__name__}: {error}", name)

    def add_batch(self, batch: Mapping[str, Any], *, latents: str = "", **options: Unpack[BatchOptions]) -> None:
        """Add a trainer's micro-batch: tensors by the names of the model's arguments, read by their layouts.

        Args:
            batch: The tensors; see :func:`symflops.training.meter.batches.streams_of`.
            latents: The key of the latents, if it is not one of the usual keys.
            options: ``passes``, ``timesteps`` and ``phase``, as for ``add``.
        """
        phase = options.get("phase")
        found = self.phases.get(self._current if phase is None else phase)
        try:
            streams = {} if found is None else streams_of(found.estimator, batch, latents)
        except Exception as error:
            self.unreadable(f"{type(error).__name__}: {error}", phase)
        else:
            self.add(**options, **streams)

    def unreadable(self, reason: str, phase: str | None = None, what: str = "batch") -> None:
        """Record that a batch or call could not be read, so that no process of the group logs an MFU for this window."""
        found = self.phases.get(self._current if phase is None else phase)
        self._unread += not self.phases
        self._spoilt = self._spoilt or what == "call"
        if found is not None:
            found.sums.spoil()
        if sum(f" {what} that could" in key for key in self._warned) < MOST:
            self.warn(f"no MFU for steps with a {what} that could not be read: {reason}")

    @property
    def current(self) -> str:
        """The name of the current phase."""
        return self._current

    def tell(self, text: str) -> None:
        """Log a line on the first process of the job."""
        if is_zero():
            self.log(f"symflops: {text}")

    def settle(self) -> None:
        """Add FLOPs since the last step to the cumulative count, before a checkpoint; the window stays open.

        Every process of the group must call this.
        """
        self._arrive()
        if self.watching is not None:
            self._unread += not self.phases
            self.watching.close(self.phases)
        unread, self._unread = self._unread, 0
        if self._broken:
            return
        try:
            state, found = sums_of_all(self.phases, unread, self.group, self.scope == "global")
        except Exception as error:  # a process has died or timed out
            self._broken, self.phases = True, {}
            self.warn(f"no MFU from step {self.steps} on: the sums of all processes failed: {type(error).__name__}: {error}")
            return
        if self.phases:
            self._report(state)
        for name, phase in self.phases.items():
            if state.waiting:
                phase.wait()
                continue
            phase.drop()
            if name not in found:
                phase.partial = True
                continue
            sums, earlier = found[name]
            phase.held = sums if phase.held is None else phase.held + sums
            for part in (sums, earlier):
                if not part.faults:
                    self._guarded(self._count, phase, part)

    def _report(self, state: State) -> None:
        """Warn if the sums of all processes are unusable, or no batch has a stream that the config implies."""
        if state.problem:
            self.warn(f"no MFU: {state.problem}")
        elif state.unread:
            self.warn("no MFU for steps with batches of processes that have no estimator", key="unread")
        elif state.ready and not state.waiting and not state.agreed:
            one = next(iter(self.phases.values())).estimator
            what = f"'{getattr(one, 'name', '')}', regime {one.regime}, convention {one.convention}"
            others = f"{state.ready - state.alike} of {state.ready} processes"
            self.warn(f"no MFU: {others} have another estimator than this one, which has {what}", key="another")
        for phase in self.phases.values():
            for name in phase.lacking():
                self.warn(f"no batch so far has '{name}', which this config implies: its work is not counted")

    def _arrive(self) -> None:
        """Install the awaited estimators that are ready; if a derivation fails, warn and drop all phases."""
        try:
            for phase in self.phases.values():
                estimator = phase.awaited.poll() if phase.awaited is not None else None
                if estimator is not None:
                    phase.receive(estimator)
                    self.tell(getattr(estimator, "account", ""))
        except Exception as error:
            for phase in self.phases.values():
                getattr(phase.sums, "owed", [0])[0] = 0
            self._unread, self.phases = self._unread + 1, {}
            self.warn(f"no MFU: {type(error).__name__}: {error}")

    def _guarded(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``function`` and return its result; on an exception warn and return None."""
        try:
            return function(*arguments)
        except Exception as error:
            self.warn(f"no MFU: {type(error).__name__}: {error}")
            return None

    def _count(self, phase: Phase, sums: Sums) -> None:
        """Add the FLOPs of ``sums``, model and executed ones, to the cumulative FLOPs."""
        model, hardware = phase.flops(sums)
        self.flops += model
        self.executed += hardware

    def state_dict(self) -> dict[str, int]:
        """The cumulative FLOPs and the number of steps, for a checkpoint; times are not saved."""
        return {"version": 1, "flops": self.flops, "executed": self.executed, "steps": self.steps}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Restore the cumulative FLOPs and the number of steps from a checkpoint."""
        self.flops, self.executed = int(state["flops"]), int(state["executed"])
        self.steps = int(state["steps"])

    def warn(self, text: str, key: str = "") -> None:
        """Warn with ``text``, unless a warning with the same ``key`` (by default the text) was given before."""
        if (key or text) not in self._warned:
            self._warned.add(key or text)
            warnings.warn(f"symflops: {text}", stacklevel=3)


SLOTS = 4096
"""The length of the vector: 32 kB, as fast to reduce as one integer."""
BUCKETS, BITS = 64, 20
READY, WAITING, UNREAD, DIGESTS, FIRST = 0, 1, 2, 3, 7
"""Positions in the head: processes that are ready or waiting, unread batches, sums over digests, a histogram of digests."""
HEAD = FIRST + BUCKETS

Found = dict[str, tuple[Sums, Sums]]
"""Phase -> (sums of this window, sums of earlier windows)."""


@dataclass(frozen=True, slots=True)
class State:
    """What the processes of a group have, to decide whether their sums can be added.

    Attributes:
        ready: Number of processes with estimators.
        waiting: Number of processes that are still deriving one.
        unread: Number of batches that could not be counted.
        alike: Number of processes with the estimators of this process.
        problem: Why this process could not contribute its sums; else empty.
    """

    ready: int
    waiting: int = 0
    unread: int = 0
    alike: int = 0
    problem: str = ""

    @property
    def agreed(self) -> bool:
        """Whether all processes have the same estimators, and every batch could be counted."""
        return bool(self.ready) and not self.waiting and not self.unread and self.alike == self.ready


def sums_of_all(phases: Mapping[str, Phase], unread: int, group: Any, together: bool) -> tuple[State, Found]:
    """Add up the sums of a group of processes: (state, {phase: (sums of this window, sums of earlier ones)}).

    Every process of the group must call this. The dict is empty if the sums cannot be added. If ``together`` is false, or
    without torch.distributed, only this process counts. ``unread`` is its number of batches that could not be counted.

    Raises:
        RuntimeError: the collective fails, because a process has died or timed out.
    """
    distributed = distributed_of() if together else None
    if distributed is None or distributed.get_world_size(group) <= 1:
        if any(phase.waits for phase in phases.values()):
            return State(0, 1, unread), {}
        one = {name: (phase.sums.read(reduce=False), phase.before.read(reduce=False)) for name, phase in phases.items()}
        return State(1, 0, unread, 1), one
    vector, problem = packed(phases, unread)
    numbers: list[int] = reduced(distributed, vector, group).tolist()
    if problem:
        return State(numbers[READY], numbers[WAITING], numbers[UNREAD], 0, problem), {}
    state = state_of(numbers, digests(phases) if phases and not numbers[WAITING] else (0, 0))
    rest = iter(numbers[HEAD:])
    found = {name: (phase.sums.decoded(rest), phase.before.decoded(rest)) for name, phase in phases.items() if state.agreed}
    return state, found


def packed(phases: Mapping[str, Phase], unread: int) -> tuple[Any, str]:
    """Build the vector to add over processes: (vector, error or empty text).

    The vector has a head, then the sums of each phase; after an error, the head alone. ``unread`` is the number of batches that
    could not be counted.
    """
    import torch

    vector, problem = torch.zeros(SLOTS, dtype=torch.int64), ""
    try:
        if any(phase.waits for phase in phases.values()):
            vector[WAITING] = 1
        elif phases:
            parts = [one.vector().flatten() for phase in phases.values() for one in (phase.sums, phase.before)]
            if HEAD + sum(map(len, parts)) > SLOTS:
                raise ValueError("the model has too many moments for the sums of several processes")
            device = next((part.device for part in parts if part.device.type != "cpu"), vector.device)
            one, two = digests(phases)
            head = torch.zeros(HEAD, dtype=torch.int64)
            head[READY] = head[FIRST + one % BUCKETS] = 1
            head[DIGESTS:FIRST] = torch.tensor([one, one**2, two, two**2])
            whole = torch.cat([part.to(device) for part in (head, *parts)])
            vector = torch.cat((whole, whole.new_zeros(SLOTS - len(whole))))
    except Exception as error:
        vector, problem = torch.zeros(SLOTS, dtype=torch.int64), f"{type(error).__name__}: {error}"
        unread += 1
    vector[UNREAD] += unread
    return vector, problem


def state_of(numbers: list[int], own: tuple[int, int]) -> State:
    """Decode the state from the vector added over processes; ``own`` are the :func:`digests` of this process."""
    ready, one, ones, two, twos = numbers[READY], *numbers[DIGESTS:FIRST]
    same = one * one == ready * ones and two * two == ready * twos  # zero variance: all digests are equal
    alike = ready if same else min(numbers[FIRST + own[0] % BUCKETS], ready - 1)
    return State(ready, numbers[WAITING], numbers[UNREAD], alike)


def digests(phases: Mapping[str, Phase]) -> tuple[int, int]:
    """Two 20-bit hashes of all moments, streams and FLOPs per moment; equal estimators have equal ones."""
    rows = []
    for name, phase in phases.items():
        one = phase.estimator
        sums = tuple(one.moment_sets.items()), tuple(one.streams), phase.sums.layout.always, one.padded, unit_of(one)
        rows.append((name, *sums, *(tuple(one.coefficients[kind]) for kind in ("total", "recomputed"))))
    digest = int.from_bytes(blake2b(repr(rows).encode(), digest_size=8).digest())
    return digest % 2**BITS, (digest >> BITS) % 2**BITS
