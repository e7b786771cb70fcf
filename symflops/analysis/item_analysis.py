"""The analysis of one item (a sample, an image): where attention overtakes all else, the cost of one more token, and growth.

Only symbols give these; no figure of a batch does.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from symflops.analysis.length_polynomials import Assumption, Unknown
from symflops.model.formula import ZERO, Formula

FORWARD, BOTH = "forward", "both"
PASSES = (FORWARD, BOTH)


@dataclass(frozen=True, slots=True)
class Crossover:
    """The length from which on attention costs at least as much as all else, in one of ``PASSES``.

    ``kind`` is ``quotient``, ``root`` (the positive root of ``square z^2 + linear z + constant``), ``always`` or ``never``
    (at each length), ``ratio`` (both grow alike, so no length decides), or ``open`` (no closed form).
    ``value`` is the first whole length at the default sizes, if there is one.
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
    """The forward FLOPs of one item by power of one length, of attention and of all else.

    ``marginal`` is the cost of one more token, forward and in both passes, with its value at the default sizes and typical
    lengths. ``reach`` is ``long`` or ``short`` if a bound such as a window matters, else empty. ``assumed`` must hold.
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
    """Forward FLOPs of a part of one item that grow with a power of its tokens, and their share at the default sizes."""

    part: str
    work: Formula
    share: Fraction | None


@dataclass(frozen=True, slots=True)
class Order:
    """The work of one item that grows with one ``power`` of its tokens.

    The least power dominates in short sequences, the greatest in long ones.
    """

    power: Fraction
    work: Formula
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of long sequences, least power first; of ``short`` sequences, if they differ, only the least."""

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
    """The analysis of one regime under one convention.

    ``lengths`` are those of all values and shares, ``tokens`` the products of axes that have a letter in formulas.
    """

    regime: str
    convention: str
    items: tuple[ItemAnalysis, ...]
    lengths: tuple[tuple[str, int], ...]
    tokens: tuple[Unknown, ...] = ()
