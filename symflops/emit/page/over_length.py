"""Work per token as the items of a stream grow, and the share of attention in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from symflops.diagnostics.errors import SymflopsError
from symflops.emit.page.plots import sweep
from symflops.emit.page.step import Step

EVERY = 2
"""How many of the lengths of a sweep one row of a page stands for."""


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
