"""Verifications: the measured records that a spec reproduces exactly, and those known to be inexact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class VerifiedCase:
    """One measured configuration and batch, with the parameters and FLOPs that symflops derives for it.

    Attributes:
        name: What was measured.
        parameters: Number of parameters.
        forward: FLOPs of the forward pass.
        backward: FLOPs of the backward pass.
        config: Those fields of the configuration that the spec reads; None if not recorded.
        batch: The lengths of the batch; None if not recorded.
    """

    name: str
    parameters: int
    forward: int
    backward: int
    config: Mapping[str, Any] | None = field(default=None, hash=False)
    batch: Mapping[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class KnownInexact:
    """Why and by how much the derivation differs from a measured record.

    Attributes:
        id: The record.
        reason: Why.
        forward: Derived minus measured FLOPs of the forward pass.
        backward: Derived minus measured FLOPs of the backward pass.
        modules: (module, difference) pairs for the innermost modules that differ.
    """

    id: str
    reason: str
    forward: int
    backward: int
    modules: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ProvenForms:
    """A spec minus the closed forms that its class tells when it runs with symbols: zero, in total and module by module.

    Attributes:
        symbols: Fields of the config and lengths of the inputs that were symbols.
        where: Conditions on them, in Python's syntax.
        points: Random sizes at which figures were compared; 0 if expressions were subtracted.
    """

    symbols: tuple[str, ...]
    where: tuple[str, ...]
    points: int = 0


@dataclass(frozen=True, slots=True)
class Verification:
    """The measured records of one class, and what was proven of it for all sizes.

    Attributes:
        reference: The class.
        version: The version of its package.
        torch: The version of PyTorch.
        cases: The records whose figures all equal the derived ones.
        inexact: The other records, each with its known difference.
        proven: What was proven for all sizes, by structure.
    """

    reference: str
    version: str
    torch: str
    cases: tuple[VerifiedCase, ...]
    inexact: tuple[tuple[VerifiedCase, KnownInexact], ...] = ()
    proven: tuple[ProvenForms, ...] = ()
