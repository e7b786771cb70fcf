"""The interface of an estimator for meters, and the sums of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of a step: moments of real and of padded lengths, tokens of each stream, and the number of faulty lengths."""

    real: tuple[int, ...]
    padded: tuple[int, ...]
    tokens: tuple[int, ...]
    faults: int

    def __add__(self, other: Sums) -> Sums:
        """The sums of both."""
        pairs = ((self.real, other.real), (self.padded, other.padded), (self.tokens, other.tokens))
        real, padded, tokens = (tuple(map(add, one, two)) for one, two in pairs)
        return Sums(real, padded, tokens, self.faults + other.faults)

    def flops(self, coefficients: Sequence[int], padded: bool = False) -> int:
        """The dot product with FLOPs per moment.

        Raises:
            ValueError: it is negative.
        """
        found = int(sum(c * value for c, value in zip(coefficients, self.padded if padded else self.real, strict=True)))
        if found < 0:
            raise ValueError(f"config and batches do not fit the model: a total of {found}")
        return found
