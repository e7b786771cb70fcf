"""Batches whose items grow along one stream, and the work per token of each, with the share of attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

from symflops.analysis.step import Step
from symflops.diagnostics.errors import SymflopsError

EVERY = 2
"""How many of the lengths of a sweep one row of a page stands for."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Batches whose items grow along one stream; of several axes, the last two grow."""

    batch: Mapping[str, Any]
    stream: str
    entry: Any

    @property
    def sides(self) -> list[int]:
        """The lengths of the axes that grow, in order."""
        return [2**power for power in (range(7, 18) if isinstance(self.entry, int) else range(3, 10))]

    def grown(self, side: int) -> Any:
        """The entry of an item whose axes have grown to ``side``."""
        return side if isinstance(self.entry, int) else [*self.entry[:-2], *[side] * min(2, len(self.entry))]

    @property
    def label(self) -> str:
        """The label of the horizontal axis."""
        what = "tokens" if isinstance(self.entry, int) else "positions"
        return f"{what} of {self.stream} in an item"

    def tokens(self, side: int) -> int:
        """The number of tokens of an item."""
        return side if isinstance(self.entry, int) else prod(self.grown(side))

    def at(self, side: int) -> dict[str, Any]:
        """The batch whose axes have grown to ``side``."""
        return {**self.batch, self.stream: [self.grown(side)] * len(self.batch[self.stream])}

    def first(self, holds: Callable[[dict[str, Any]], bool]) -> int | None:
        """The tokens from which on ``holds`` is true, if it is false at first and true in the end; else None."""
        low, *_, high = self.sides
        if holds(self.at(low)) or not holds(self.at(high)):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(self.at(middle)) else (middle, high)
        return self.tokens(high)


def sweep(batch: Mapping[str, Any], stream: str = "") -> Sweep:
    """The sweep over a stream of a batch, by default its first.

    Raises:
        SymflopsError: the batch has no such stream, or none with lengths.
    """
    given = {name: entries for name, entries in batch.items() if isinstance(entries, list) and entries}
    if stream and stream not in given:
        raise SymflopsError(f"a picture cannot be over '{stream}': the batch has {', '.join(given) or 'no stream with items'}")
    if not given:
        raise SymflopsError("a picture is over the length of a stream, and the batch has none with items")
    name = stream or next(iter(given))
    return Sweep(batch, name, given[name][0])


@dataclass(frozen=True, slots=True)
class PerToken:
    """The work of both passes per token of an item of ``tokens`` tokens, and the share of attention."""

    tokens: int
    each: Fraction
    attention: Fraction


@dataclass(frozen=True, slots=True)
class OverLength:
    """Work per token over the tokens of ``stream`` in an item."""

    stream: str
    rows: tuple[PerToken, ...]


def over_length(step: Step) -> OverLength | None:
    """The work per token of a step whose items grow along its first stream; None if the model has no tokens there."""
    if not any(isinstance(entries, list) and entries and entries[0] != [] for entries in step.batch.values()):
        return None
    grown = sweep({name: entries for name, entries in step.batch.items() if not isinstance(entries, list) or entries[0] != []})
    attention = step.attention()

    def rows() -> Iterator[PerToken]:
        for side in grown.sides[::EVERY]:
            try:
                there = step.at(batch={**step.batch, **grown.at(side)})
            except SymflopsError:
                continue
            moments, total = there.moments(step.case.convention), there.total
            part = sum(each * moments[place] for place, each in attention.items())
            if total and there.tokens:
                yield PerToken(grown.tokens(side), Fraction(total, there.tokens), Fraction(part, total))

    found = tuple(rows())
    return OverLength(grown.stream, found) if len({row.each for row in found}) > 1 else None
