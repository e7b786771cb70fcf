"""Reduces the sums of all phases with one ``all_reduce`` per step, in a vector of fixed length.

Processes may differ: one has no estimator, one still waits for it, one has that of another model. Every process joins the
collective anyway, so ranks never get out of step. The head of the vector counts the processes of each kind. Sums are used if
all estimators count the same, which a digest of the layout verifies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from symflops.evaluate.units import unit_of
from symflops.training.meter.phases import Phase
from symflops.training.meter.processes import distributed_of, reduced
from symflops.training.meter.types import Sums

SLOTS = 4096
"""The length of the vector: 32 kB, as fast to reduce as one integer."""
BUCKETS, BITS = 64, 20
READY, WAITING, UNREAD, DIGESTS, FIRST = 0, 1, 2, 3, 7
HEAD = FIRST + BUCKETS

Found = dict[str, tuple[Sums, Sums]]


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
    """Add up the sums of a group of processes: (state, {phase: (sums of this window, of earlier ones)}).

    Every process of the group must call this. The dict is empty if the sums cannot be added. If ``together`` is false, or
    without torch.distributed, only this process counts. ``unread`` is its number of batches that could not be counted.

    Raises:
        RuntimeError: the collective fails, because a process has died or timed out.
    """
    distributed = distributed_of() if together else None
    if distributed is None or distributed.get_world_size(group) <= 1:
        return alone(phases, unread)
    vector, problem = packed(phases, unread)
    numbers = reduced(distributed, vector, group).tolist()
    if problem:
        return State(numbers[READY], numbers[WAITING], numbers[UNREAD], 0, problem), {}
    state = state_of(numbers, digests(phases) if phases and not numbers[WAITING] else (0, 0))
    return state, unpacked(phases, numbers) if state.agreed and phases else {}


def alone(phases: Mapping[str, Phase], unread: int) -> tuple[State, Found]:
    """Return state and sums as :func:`sums_of_all`, for this process alone."""
    if any(phase.awaited is not None for phase in phases.values()):
        return State(0, 1, unread), {}
    found = {name: (phase.sums.read(reduce=False), phase.before.read(reduce=False)) for name, phase in phases.items()}
    return State(1, 0, unread, 1), found


def packed(phases: Mapping[str, Phase], unread: int) -> tuple[Any, str]:
    """Return (vector to add over processes, error or empty text); after an error it has no sums."""
    import torch

    vector, problem = torch.zeros(SLOTS, dtype=torch.int64), ""
    try:
        if any(phase.awaited is not None for phase in phases.values()):
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
    """Decode the state from the vector added over processes; ``own`` are the :func:`digests` of this one."""
    ready, one, ones, two, twos = numbers[READY], *numbers[DIGESTS:FIRST]
    same = one * one == ready * ones and two * two == ready * twos  # zero variance: all digests are equal
    alike = ready if same else min(numbers[FIRST + own[0] % BUCKETS], ready - 1)
    return State(ready, numbers[WAITING], numbers[UNREAD], alike)


def unpacked(phases: Mapping[str, Phase], numbers: list[int]) -> dict[str, tuple[Sums, Sums]]:
    """Decode the sums from the vector added over processes: phase -> (this window, earlier windows)."""
    found, first = {}, HEAD
    for name, phase in phases.items():
        pair = []
        for one in (phase.sums, phase.before):
            pair.append(one.decoded(numbers[first : first + 4 * one.layout.width]))
            first += 4 * one.layout.width
        found[name] = (pair[0], pair[1])
    return found


def digests(phases: Mapping[str, Phase]) -> tuple[int, int]:
    """Two 20-bit hashes of moments, streams and FLOPs per moment, to compare estimators between processes."""
    rows = []
    for name, phase in phases.items():
        one = phase.estimator
        sums = tuple(one.moment_sets.items()), tuple(one.streams), phase.sums.layout.always, one.padded, unit_of(one)
        rows.append((name, *sums, *(tuple(one.coefficients[kind]) for kind in ("total", "recomputed"))))
    digest = int.from_bytes(blake2b(repr(rows).encode(), digest_size=8).digest())
    return digest % 2**BITS, (digest >> BITS) % 2**BITS
