"""Sums of watched calls, until a step is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from symflops.evaluate.units import in_flops
from symflops.training.meter.parts import shares
from symflops.training.meter.phases import Phase


@dataclass(slots=True)
class Entry:
    """Sums of calls of the same kind: a program, and how often each call ran forward and backward.

    Attributes:
        piece: The part of the model that ran, empty for all of it, and the part that did not.
        again: Whether the backward pass runs the forward work again, beside what the program says.
    """

    sums: Phase
    forward: int
    backward: int
    rated: bool
    piece: tuple[str, str] = ("", "")
    again: bool = False
    shares: dict[str, tuple[Any, ...]] | None = None

    def flops(self, window: bool) -> tuple[int, int, int]:
        """(model FLOPs, executed FLOPs, tokens) of the window, or else of earlier ones; clears the sums.

        Raises:
            ValueError: a length does not fit the model.
        """
        one = self.sums.estimator
        found = (self.sums.sums if window else self.sums.before).read(reduce=False)
        if found.faults:
            raise ValueError("a call has lengths that do not fit the model")
        self.shares = self.shares or shares(one, *self.piece)
        kinds = [self.shares[kind] for kind in ("forward", "backward", "recomputed")]

        def of(padded: bool, again: int) -> int:
            counts = (self.forward + self.backward * again * self.again, self.backward, self.backward * again)
            return in_flops(one, sum(count * found.flops(kind, padded) for count, kind in zip(counts, kinds, strict=True)))

        tokens = found.tokens[0] * self.forward if found.tokens and not self.piece[0] else 0
        return of(one.padded, 0), of(True, 1), tokens
