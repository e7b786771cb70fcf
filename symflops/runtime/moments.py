"""Moments of a batch, and the FLOPs of a module, as an interpreted estimator returns them."""

from __future__ import annotations

from symflops.runtime.batch import BatchError


class Moments:
    """Sums over the items of a batch; those of two batches add, unless some (``whole``) are of one batch as a whole.

    Raises:
        BatchError: a sum of moments that do not add.
    """

    __slots__ = ("names", "padded", "values", "whole")

    def __init__(
        self, names: tuple[str, ...], values: tuple[int, ...], padded: tuple[int, ...], whole: tuple[str, ...] = ()
    ) -> None:
        self.names, self.values, self.padded, self.whole = names, values, padded, whole

    def __add__(self, other: Moments) -> Moments:
        if self.whole:
            told = "take the moments of all items together, or add the FLOPs of each batch"
            raise BatchError(f"moments of one batch as a whole do not add ({', '.join(self.whole)}): {told}")
        pairs = ((self.values, other.values), (self.padded, other.padded))
        values, padded = (tuple(a + b for a, b in zip(one, two, strict=True)) for one, two in pairs)
        return Moments(self.names, values, padded)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Moments) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.names, self.values, self.padded))

    def __repr__(self) -> str:
        return f"Moments({', '.join(f'{name}={value}' for name, value in self.as_dict().items())})"

    def as_dict(self) -> dict[str, int]:
        """The moments by name."""
        return dict(zip(self.names, self.values, strict=True))


class Flops:
    """FLOPs of one module in one step."""

    __slots__ = ("backward", "forward", "recomputed")

    def __init__(self, forward: int, backward: int, recomputed: int) -> None:
        self.forward, self.backward, self.recomputed = forward, backward, recomputed

    @property
    def total(self) -> int:
        """Forward and backward."""
        return self.forward + self.backward

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flops) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash((self.forward, self.backward, self.recomputed))

    def __repr__(self) -> str:
        return f"Flops(forward={self.forward}, backward={self.backward}, recomputed={self.recomputed})"
