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
    """Name the part of a model that a contraction belongs to, one of ``ORDER``, by its role."""
    return EXPERTS if line.role == "linear" and "experts" in line.regions else PARTS.get(line.role, LINEARS)


FORWARD, BOTH = "forward", "both"
PASSES = (FORWARD, BOTH)


@dataclass(frozen=True, slots=True)
class Crossover:
    """The length from which attention costs at least as much as everything else.

    Attributes:
        work: ``forward``, or ``both`` for the forward and backward pass.
        kind: the form of that length: ``quotient`` (``above / below``); ``root`` (the positive root of
            ``square z^2 + linear z + constant``); ``always`` or ``never`` (the same at each length); ``ratio`` (both costs grow
            alike, so that no length decides); ``open`` (no closed form).
        value: the first such whole length at the default sizes; None if there is none or it cannot be computed.
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
    """The forward FLOPs of one item as a polynomial in one length, for attention and for everything else.

    Attributes:
        unknown: the length.
        reach: ``long`` or ``short`` if the result is only for lengths above or below a bound such as a window, else empty.
        assumed: the assumptions under which the result holds.
        attention: pairs of power and coefficient.
        others: pairs of power and coefficient for all work except attention.
        crossovers: the lengths from which attention costs at least as much as everything else.
        marginal: the cost of one more token, for the forward pass and for both passes: name of the passes, formula, and value
            at the default sizes and typical lengths (None if unknown).
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
    """Forward FLOPs of one part of the model in an :class:`Order`, and their share of the order's work."""

    part: str
    work: Formula
    share: Fraction | None


@dataclass(frozen=True, slots=True)
class Order:
    """The terms of the forward work of one item that are proportional to its tokens to the ``power``."""

    power: Fraction
    work: Formula
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Orders:
    """The forward work of one item by power of its tokens, least power first.

    ``reach`` is ``long`` or ``short`` if long and short sequences differ, else empty. ``short`` has only the least power.
    """

    reach: str
    assumed: tuple[Assumption, ...]
    orders: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class ItemAnalysis:
    """The cost of one item of an index set: by power of each length, and by power of its tokens."""

    items: str
    growth: tuple[Growth, ...]
    orders: tuple[Orders, ...]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The cost of one item of each index set, in one regime under one convention.

    Attributes:
        items: one entry per index set.
        lengths: the typical length of each axis, at which values and shares are computed.
        tokens: the products of axes that formulas abbreviate by one letter.
    """

    regime: str
    convention: str
    items: tuple[ItemAnalysis, ...]
    lengths: tuple[tuple[str, int], ...]
    tokens: tuple[Unknown, ...] = ()


Powers = dict[int, Poly]


def crossover(work: str, attention: Powers, others: Powers, writer: Writer, value: int | None) -> Crossover:
    """Derive the closed form of the length from which attention costs at least as much as everything else.

    Args:
        work: the passes that the costs are of: ``forward`` or ``both``.
        attention: the cost of attention, by power of the length.
        others: all other costs, by power of the length.
        writer: converts polynomials to formulas.
        value: the length at the default sizes, stored in the result as given.
    """
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
    """The cost of attention minus all other costs, by power of the length, without zero coefficients."""
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
    return max(start, next(z for z in range(near - 1, near + 4) if (a * z + b) * z + c >= 0 and 2 * a * z + b >= 0))


def sides(cost: Mapping[str, Powers]) -> tuple[Powers, Powers]:
    """Split the cost of each part into (attention, sum of all other parts), each by power of the length."""
    return cost.get(ATTENTION, {}), merged(powers for part, powers in cost.items() if part != ATTENTION)


def merged(parts: Iterable[Powers]) -> Powers:
    """Add several costs by power of the length; zero coefficients are omitted."""
    found: Powers = {}
    for powers in parts:
        for power, poly in powers.items():
            found[power] = found.get(power, Poly({})) + poly
    return {power: poly for power, poly in found.items() if poly}


Change = tuple[tuple[Moment, Formula], ...]
"""A difference of closed forms: sums over the batch, each with its coefficient."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Parameters of a model and FLOPs of one step, or the differences of these between two models."""

    parameters: int
    forward: int
    backward: int

    @property
    def total(self) -> int:
        """FLOPs of both passes."""
        return self.forward + self.backward

    def less(self, other: Figures) -> Figures:
        """Subtract ``other`` from these figures."""
        return Figures(self.parameters - other.parameters, self.forward - other.forward, self.backward - other.backward)


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of the difference in cost between two models.

    Attributes:
        kind: ``size`` (config fields differ) or ``module`` (the cost of a module differs).
        figures: the part of the difference that this cause explains.
        terms: the formula of that part's forward FLOPs.
        name: the module, if ``kind`` is ``module``.
        alone: the name of the only model that has the module; empty if both have it.
        changes: config field, value in the first model and value in the second, if ``kind`` is ``size``.
    """

    kind: str
    figures: Figures
    terms: Change
    name: str = ""
    alone: str = ""
    changes: tuple[tuple[str, str, str], ...] = ()

    @property
    def words(self) -> str:
        """The changed fields with their values, or the name of the module, as text."""
        told = (f"{key}: {before} -> {after}" for key, before, after in self.changes)
        return ", ".join(told) or (f"{self.name} of {self.alone} alone" if self.alone else self.name)


@dataclass(frozen=True, slots=True)
class Point:
    """FLOPs of one step at one length: of the model (``own``) and of its baseline (``base``)."""

    length: int
    own: int
    base: int

    @property
    def ratio(self) -> Fraction:
        """FLOPs of the model divided by those of the baseline."""
        return Fraction(self.own, self.base)


@dataclass(frozen=True, slots=True)
class Crossing:
    """A length from which the model costs less than its baseline, or, if not ``less``, at least as much."""

    length: int
    less: bool


@dataclass(frozen=True, slots=True)
class Against:
    """Comparison of the cost of a model with that of its baseline, on one item whose length grows.

    Attributes:
        letter: the length that grows.
        square: whether all axes of the item grow, and equally.
        config: the baseline's config fields, each with a formula in the model's sizes.
        batch: the baseline's streams, each with a formula in the model's lengths.
        lengths: the model's lengths that depend on ``letter``, each with its formula as text.
        along: the same lengths, each with its formula as a tree.
        here: the length at which ``own``, ``base`` and ``causes`` are computed.
        own: the figures of the model.
        base: the figures of the baseline.
        forward: the formula of the model's forward FLOPs minus the baseline's.
        backward: the same for the backward pass.
        causes: the changed config fields and modules that explain the difference.
        points: the FLOPs of both at several lengths.
        crossings: the lengths from which the model is cheaper, or stops being cheaper.
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
