"""The interface of estimators, generated and interpreted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Estimator(Protocol):
    """Parameters and FLOPs of one model under one regime and convention."""

    @property
    def regime(self) -> str:
        """The name of the regime: what trains."""

    @property
    def convention(self) -> str:
        """The name of the convention: what counts."""

    @property
    def streams(self) -> Mapping[str, bool]:
        """Whether a batch may leave out a stream, by its name."""

    @property
    def sets(self) -> Mapping[str, Sequence[tuple[str, tuple[str, ...], int]]]:
        """The streams of each index set: name, axes, and the length of a stream that is left out."""

    @property
    def implied(self) -> Sequence[str]:
        """The streams that a batch may leave out although the model has them."""

    @property
    def moment_sets(self) -> Mapping[str, str]:
        """The index set of each moment."""

    @property
    def coefficients(self) -> Mapping[str, Sequence[int]]:
        """FLOPs per moment, by pass."""

    @property
    def unit(self) -> str:
        """The unit of what it counts: ``flops``, ``macs`` of two FLOPs each, or ``macs_as_flops`` as its source has it."""

    @property
    def padded(self) -> bool:
        """Whether the convention counts padded lengths."""

    @property
    def padded_sums(self) -> tuple[str, ...]:
        """The moments that are of padded lengths, whatever the convention counts else."""

    @property
    def whole(self) -> tuple[str, ...]:
        """The moments that belong to one batch as a whole, and do not add."""

    @property
    def parameters(self) -> int:
        """Elements of all parameters."""

    @property
    def trainable_parameters(self) -> int:
        """Elements of the parameters that train."""

    def terms(self, *columns: Any) -> tuple[Any, ...]:
        """What items add to each moment, on columns of lengths."""

    def rests(self, *columns: Any) -> tuple[Any, ...]:
        """The remainders of the model's divisions of lengths; all must be 0."""

    def inner_lengths(self, *columns: Any) -> tuple[tuple[str, Any], ...]:
        """What the model leaves of items, which must be at least 1: index set, and column of lengths."""

    def inputs(self) -> dict[str, tuple[str, str, int | None]]:
        """Stream or index set, layout and width of each argument whose shape holds lengths."""

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
