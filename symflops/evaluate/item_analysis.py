"""Result types of the analysis of one item (a sample, an image): crossovers, cost of one more token, growth by part.

The analysis is symbolic. The comparison of a model with a baseline adds figures, causes and crossings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, lcm

from symflops.evaluate.length_polynomials import Assumption, Unknown
from symflops.formula.factoring import Writer
from symflops.formula.formula import ZERO, Formula
from symflops.formula.sparse import Poly, common_monomial, content
from symflops.ir.batch import Moment
from symflops.ir.program import Line

ATTENTION = "attention"
PARTS = {
    "attention": ATTENTION, "scan": "recurrence", "delta": "recurrence", "product": "products of two values",
    "bilinear": "products of two values", "conv": "convolutions", "lm_head": "head", "router": "routing",
    "shared_gate": "routing", "modulation": "modulation", "out_modulation": "modulation", "timestep": "modulation",
    "patch_embed": "first and last projections", "unpatch": "first and last projections",
    "text_in": "first and last projections", "merger": "first and last projections", "pooler": "first and last projections",
}  # fmt: skip
LINEARS, EXPERTS = "linears", "experts"
ORDER = (LINEARS, EXPERTS, *(part for part in dict.fromkeys(PARTS.values()) if part != ATTENTION), ATTENTION)
"""The order of parts from the bottom of a plot to its top."""


def part_of(line: Line) -> str:
    """Classify a line of work by its role: attention, experts, linears, ... (see ``ORDER``)."""
    if line.role == "linear" and "experts" in line.regions:
        return EXPERTS
    return PARTS.get(line.role, LINEARS)


FORWARD, BOTH = "forward", "both"
PASSES = (FORWARD, BOTH)


@dataclass(frozen=True, slots=True)
class Crossover:
    """The length from which attention costs at least as much as everything else, in one of ``PASSES``.

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
    """The forward FLOPs of one item by power of one length, for attention and for everything else.

    ``marginal`` is the cost of one more token, forward and in both passes, with its value at the default sizes and typical
    lengths. ``reach`` is ``long`` or ``short`` if a bound such as a window matters, else empty. The result holds only under
    ``assumed``.
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
    """Forward FLOPs of one part in one :class:`Order`, and their share at the default sizes."""

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
    """The orders of work, least power first; for ``short`` sequences (if they differ) only the least."""

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

    Values and shares are computed at ``lengths``. ``tokens`` lists the products of axes that have a letter in formulas.
    """

    regime: str
    convention: str
    items: tuple[ItemAnalysis, ...]
    lengths: tuple[tuple[str, int], ...]
    tokens: tuple[Unknown, ...] = ()


Powers = dict[int, Poly]


def crossover(work: str, attention: Powers, others: Powers, writer: Writer, value: int | None) -> Crossover:
    """Closed form of the crossover of attention and everything else in ``work``; ``value`` is copied."""
    powers = difference(attention, others)
    if len(powers) < 2:
        sign = sum(poly.sign for poly in powers.values())
        return Crossover(work, "always" if sign > 0 else "never" if sign < 0 else "ratio", value=value)
    least, most = min(powers), max(powers)
    if most - least == 1:
        above, below = powers[least].scale(-1), powers[most]
        if above.sign * below.sign < 0:
            return Crossover(work, "always" if below.sign > 0 else "never", value=value)
        one, two = map(writer.factored, cancelled(above, below))
        return Crossover(work, "quotient", one, two, value=value)
    if most - least == 2:
        square, linear, constant = cancelled(*(powers.get(least + step, Poly({})) for step in (2, 1, 0)))
        one, two, three = map(writer.factored, (square, linear, constant))
        return Crossover(work, "root", square=one, linear=two, constant=three, value=value)
    return Crossover(work, "open", value=value)


def difference(attention: Powers, others: Powers) -> Powers:
    """Attention minus everything else, by power of the length, without zeros."""
    powers = {power: attention.get(power, Poly({})) - others.get(power, Poly({})) for power in {*attention, *others}}
    return {power: poly for power, poly in powers.items() if poly}


def cancelled(*polys: Poly) -> tuple[Poly, ...]:
    """Divide polynomials by their common factor."""
    monomials, numbers = zip(*(poly.common for poly in polys if poly), strict=True)
    return tuple(poly.over(common_monomial(monomials), content(numbers)) for poly in polys)


def first_from(powers: Mapping[int, Fraction], start: int = 1) -> int | None:
    """The first integer from ``start`` after which a polynomial of degree 2 or less is never negative.

    >>> first_from({1: Fraction(2), 0: Fraction(-5)})
    3
    """
    scale = lcm(*(value.denominator for value in powers.values())) if powers else 1
    a, b, c = (int(powers.get(power, Fraction(0)) * scale) for power in (2, 1, 0))
    if a < 0 or (a == 0 and b < 0) or (a == b == 0 and c < 0):
        return None
    if a == 0:
        return max(start, -(c // b)) if b else start
    root = b * b - 4 * a * c
    if root < 0:
        return start
    near = (-b + isqrt(root)) // (2 * a)
    found = next(z for z in range(near - 1, near + 4) if (a * z + b) * z + c >= 0 and 2 * a * z + b >= 0)
    return max(start, found)


def sides(cost: Mapping[str, Powers]) -> tuple[Powers, Powers]:
    """Split a cost into (attention, everything else), each by power."""
    others = merged(powers for part, powers in cost.items() if part != ATTENTION)
    return cost.get(ATTENTION, {}), others


def merged(parts: Iterable[Powers]) -> Powers:
    """Sum several costs by power, without zeros."""
    found: Powers = {}
    for powers in parts:
        for power, poly in powers.items():
            found[power] = found.get(power, Poly({})) + poly
    return {power: poly for power, poly in found.items() if poly}


Change = tuple[tuple[Moment, Formula], ...]
"""A difference of closed forms: sums over the batch, each with its coefficient."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Parameters and FLOPs of one step, or their differences."""

    parameters: int
    forward: int
    backward: int

    @property
    def total(self) -> int:
        """FLOPs of both passes."""
        return self.forward + self.backward

    def less(self, other: Figures) -> Figures:
        """The difference to other figures."""
        return Figures(self.parameters - other.parameters, self.forward - other.forward, self.backward - other.backward)


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of a cost difference between two models, with its figures and its forward formula.

    ``kind`` is ``size`` (``changes`` lists field, value before and value after) or ``module`` (called ``name``; only the
    model ``alone`` has it if that is not empty).
    """

    kind: str
    figures: Figures
    terms: Change
    name: str = ""
    alone: str = ""
    changes: tuple[tuple[str, str, str], ...] = ()

    @property
    def words(self) -> str:
        """Text that describes the cause."""
        told = (f"{key}: {before} -> {after}" for key, before, after in self.changes)
        return ", ".join(told) or (f"{self.name} of {self.alone} alone" if self.alone else self.name)


@dataclass(frozen=True, slots=True)
class Point:
    """FLOPs of one step of a model (``own``) and of its baseline (``base``) at one length."""

    length: int
    own: int
    base: int

    @property
    def ratio(self) -> Fraction:
        """FLOPs of the model divided by those of the baseline."""
        return Fraction(self.own, self.base)


@dataclass(frozen=True, slots=True)
class Crossing:
    """A length from which the model costs ``less`` than its baseline, or otherwise at least as much."""

    length: int
    less: bool


@dataclass(frozen=True, slots=True)
class Against:
    """Comparison of a model with its baseline on one item, as ``letter`` (all axes if ``square``) grows.

    ``config`` and ``batch`` are the baseline's inputs, and ``lengths`` the lengths that grow along, as names with formulas
    from the spec; ``along`` has the latter as formulas. The figures are computed at the length ``here``.
    """

    baseline: str
    title: str
    regime: str
    convention: str
    letter: str
    config: tuple[tuple[str, str], ...]
    batch: tuple[tuple[str, str], ...]
    lengths: tuple[tuple[str, str], ...]
    along: tuple[tuple[str, Formula], ...]
    square: bool
    here: int
    own: Figures
    base: Figures
    forward: Change
    backward: Change
    causes: tuple[Cause, ...]
    points: tuple[Point, ...]
    crossings: tuple[Crossing, ...]
