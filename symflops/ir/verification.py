"""Verifications: the measured records that a spec reproduces exactly, and those known to be inexact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class VerifiedCase:
    """One measured configuration and batch, with the parameters and FLOPs derived for it.

    ``config`` is the part of the configuration that the spec reads, None if not recorded; likewise ``batch``.
    """

    name: str
    parameters: int
    forward: int
    backward: int
    config: Mapping[str, Any] | None = field(default=None, hash=False)
    batch: Mapping[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class KnownInexact:
    """A measured record that symflops cannot match: the reason, and derived minus measured FLOPs.

    ``forward`` and ``backward`` are the differences of each pass. ``modules`` are the innermost modules that differ; a
    container differs by the sum of its contents.
    """

    id: str
    reason: str
    forward: int
    backward: int
    modules: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """Measured records of one class, with the package versions of the measurement.

    The derivation equals all figures of ``cases``. ``inexact`` are cases that cannot be equal, each with its known difference.
    """

    reference: str
    version: str
    torch: str
    cases: tuple[VerifiedCase, ...]
    inexact: tuple[tuple[VerifiedCase, KnownInexact], ...] = ()
