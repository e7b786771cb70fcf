"""What only symbols can give: where attention overtakes all else, what one more token costs, and where the work goes as
sequences grow. All of it is of one item: one sample, one image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from symflops.emit.page.length_polynomials import Assumption, Unknown
from symflops.model.formula import ZERO, Formula
from symflops.model.program import Program, StreamInfo

FORWARD, BOTH = "forward", "both"
PASSES = (FORWARD, BOTH)


@dataclass(frozen=True, slots=True)
class Crossover:
    """The length at which attention does as much as all else, in one of ``PASSES``.

    ``kind`` is ``quotient``, ``root`` (the positive one of ``square z^2 + linear z + constant``), ``always`` or ``never``
    (at each length), ``ratio`` (both grow alike: a length decides nothing), or ``open`` (no closed form).
    ``value`` is the first whole length from which on it holds, at the default sizes, where there is one.
    """

    work: str
    kind: str
    above: Formula = ZERO
    below: Formula = ZERO
    square: Formula = ZERO
    linear: Formula = ZERO
    constant: Formula = ZERO
    value: int | None = None


@dataclass(frozen=True, slots=True)
class Growth:
    """What one item costs as a function of one length: by power of it, attention and all else (FLOPs forward).

    ``marginal`` is what one more token costs, forward and in both passes, with what that is at the default sizes and typical
    lengths. ``reach`` is ``long`` or ``short`` where a bound
    such as a window makes a difference, else empty; ``assumed`` is what has to hold.
    """

    unknown: Unknown
    reach: str
    assumed: tuple[Assumption, ...]
    attention: tuple[tuple[int, Formula], ...]
    others: tuple[tuple[int, Formula], ...]
    crossovers: tuple[Crossover, ...]
    marginal: tuple[tuple[str, Formula, int | None], ...]


@dataclass(frozen=True, slots=True)
class Share:
    """Forward FLOPs of one part of one item that grow with a power of its tokens, and their share at the default sizes."""

    part: str
    work: Formula
    share: Fraction | None


@dataclass(frozen=True, slots=True)
class Order:
    """The work of one item that grows with one ``power`` of its tokens.

    That with the least power is all that is left when sequences are short, that with the greatest when they are long.
    """

    power: Fraction
    work: Formula
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of long sequences, the least power first, or of ``short`` ones where that differs: then the least alone."""

    reach: str
    assumed: tuple[Assumption, ...]
    orders: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class ItemAnalysis:
    """The analysis of the items of one index set."""

    items: str
    growth: tuple[Growth, ...]
    orders: tuple[Orders, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What symbols give of one regime under one convention; ``lengths`` are those at which values and shares are told,
    ``tokens`` the letters of products of axes that formulas hold.
    """

    regime: str
    convention: str
    items: tuple[ItemAnalysis, ...]
    lengths: tuple[tuple[str, int], ...]
    tokens: tuple[Unknown, ...] = ()


def typical_batch(program: Program) -> dict[str, list[Any]]:
    """One item per stream, of typical lengths."""
    lengths = typical_lengths(program)
    return {
        stream.name: [
            lengths[stream.variables[0]] if len(stream.variables) == 1 else [lengths[name] for name in stream.variables]
        ]
        for stream in program.streams
        if stream.variables
    }


def typical_lengths(program: Program) -> dict[str, int]:
    """Each length: 1024 along one axis, 16 along each of several, 1 where a model takes that for what is left out."""
    assumed = {stream.name for stream in left_out(program)}
    return {
        name: 1 if stream.name in assumed else 1024 if len(stream.variables) == 1 else 16
        for stream in program.streams
        for name in stream.variables
    }


def left_out(program: Program) -> Iterator[StreamInfo]:
    """The streams that a batch may leave out while the others of their items are there; their length is 1 then."""
    for stream in program.streams:
        others = (other for other in program.streams if other.items == stream.items and other.name != stream.name)
        if stream.absent and any(other.variables for other in others):
            yield stream
