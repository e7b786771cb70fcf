"""The interface of an estimator for meters, and the sums of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Estimates(Protocol):
    """The interface that a meter needs of an estimator, generated or interpreted."""

    streams: Mapping[str, bool]
    sets: Mapping[str, Sequence[tuple[str, tuple[str, ...], int]]]
    moment_sets: Mapping[str, str]
    coefficients: Mapping[str, Sequence[int]]
    padded: bool
    whole: tuple[str, ...]
    parameters: int

    def terms(self, *columns: Any) -> tuple[Any, ...]: ...
    def rests(self, *columns: Any) -> tuple[Any, ...]: ...
    def moments(self, **streams: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of a step: moments of real and of padded lengths, tokens of each stream, and the number of faulty lengths."""

    real: tuple[int, ...]
    padded: tuple[int, ...]
    tokens: tuple[int, ...]
    faults: int

    def flops(self, coefficients: Sequence[int], padded: bool = False) -> int:
        """The dot product with FLOPs per moment."""
        return int(sum(c * value for c, value in zip(coefficients, self.padded if padded else self.real, strict=True)))
