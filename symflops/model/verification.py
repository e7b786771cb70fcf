"""What a spec was verified against: measured records that came out exact, and those that are known not to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VerifiedCase:
    """One measured configuration and batch, with the parameters and FLOPs that are derived for it."""

    name: str
    parameters: int
    forward: int
    backward: int


@dataclass(frozen=True, slots=True)
class KnownInexact:
    """A record that cannot be exact: why, and derived minus measured FLOPs of each pass and of the modules that differ.

    ``modules`` are the innermost ones; those around them differ by the sum of what they contain.
    """

    id: str
    reason: str
    forward: int
    backward: int
    modules: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """The records of one class, and the versions of the packages that they were measured with.

    The derivation equals all figures of ``cases``; ``inexact`` are cases that cannot be equal, each with what is known of it.
    """

    reference: str
    version: str
    torch: str
    cases: tuple[VerifiedCase, ...]
    inexact: tuple[tuple[VerifiedCase, KnownInexact], ...] = ()
