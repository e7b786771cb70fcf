"""What every estimator offers, generated or interpreted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Estimator(Protocol):
    """Parameters and FLOPs of one model under one regime and convention.

    ``streams`` says of each stream whether a batch may leave it out; ``sets`` has the streams of each index set with their
    axes and the length of one that is left out; ``moment_sets`` the index set of each moment. ``coefficients`` are FLOPs per
    moment, by pass. ``padded`` says whether the convention counts padded lengths; ``whole`` are the moments that do not add.
    """

    @property
    def regime(self) -> str: ...
    @property
    def convention(self) -> str: ...
    @property
    def streams(self) -> Mapping[str, bool]: ...
    @property
    def sets(self) -> Mapping[str, Sequence[tuple[str, tuple[str, ...], int]]]: ...
    @property
    def moment_sets(self) -> Mapping[str, str]: ...
    @property
    def coefficients(self) -> Mapping[str, Sequence[int]]: ...
    @property
    def padded(self) -> bool: ...
    @property
    def whole(self) -> tuple[str, ...]: ...
    @property
    def parameters(self) -> int: ...
    @property
    def trainable_parameters(self) -> int: ...
    def terms(self, *columns: Any) -> tuple[Any, ...]:
        """What items add to each moment, on columns of lengths."""

    def rests(self, *columns: Any) -> tuple[Any, ...]:
        """What is left over where the model divides lengths."""

    def inputs(self) -> dict[str, tuple[str, str, int | None]]:
        """Per argument of the model that tells lengths: stream or index set, layout, width."""

    def moments(self, **streams: Any) -> Any:
        """The moments of a batch."""

    def forward(self, m: Any) -> int:
        """FLOPs of the forward pass."""

    def backward(self, m: Any) -> int:
        """FLOPs of the backward pass, recomputation apart."""

    def recomputed(self, m: Any) -> int:
        """FLOPs of forward work that the backward pass repeats."""

    def total(self, m: Any) -> int:
        """FLOPs of both passes."""

    def per_item(self, **streams: Any) -> dict[str, Any]:
        """FLOPs of each item, per index set."""

    def by_module(self, m: Any) -> Mapping[str, Any]:
        """FLOPs per module."""

    def tensors(self) -> dict[str, int]:
        """Elements per parameter."""
