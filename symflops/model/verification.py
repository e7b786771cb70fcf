"""What a spec was verified against: measured records that came out exact."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VerifiedCase:
    """One measured configuration and batch whose parameters, forward and backward FLOPs the derivation equals."""

    name: str
    parameters: int
    forward: int
    backward: int


@dataclass(frozen=True, slots=True)
class Verification:
    """The cases of one class, and the versions of the packages that they were measured with."""

    reference: str
    version: str
    torch: str
    cases: tuple[VerifiedCase, ...]
