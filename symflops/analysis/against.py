"""What a page says of a model beside its baseline: figures, the difference by cause, and both over a length."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from symflops.model.formula import Formula
from symflops.model.sums import Moment

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
        """These minus others."""
        passes = self.forward - other.forward, self.backward - other.backward
        return Figures(self.parameters - other.parameters, *passes)


@dataclass(frozen=True, slots=True)
class Cause:
    """What makes a part of a difference, its figures, and its forward formula.

    ``kind`` is ``size`` (``changes`` are fields with the values of both) or ``module`` (of that ``name``, which the model
    ``alone`` has if that is not empty).
    """

    kind: str
    figures: Figures
    terms: Change
    name: str = ""
    alone: str = ""
    changes: tuple[tuple[str, str, str], ...] = ()

    @property
    def words(self) -> str:
        """What it is, in words."""
        told = (f"{key}: {before} -> {after}" for key, before, after in self.changes)
        return ", ".join(told) or (f"{self.name} of {self.alone} alone" if self.alone else self.name)


@dataclass(frozen=True, slots=True)
class Point:
    """FLOPs of a step of both models at one length."""

    length: int
    own: int
    base: int

    @property
    def ratio(self) -> Fraction:
        """The model's, over those of the baseline."""
        return Fraction(self.own, self.base)


@dataclass(frozen=True, slots=True)
class Crossing:
    """A length from which on the model costs ``less`` than its baseline, or as much and more."""

    length: int
    less: bool


@dataclass(frozen=True, slots=True)
class Against:
    """A model less its baseline, of one item whose length ``letter`` grows, in all its axes if it is a ``square``.

    ``config`` and ``batch`` are what the baseline gets, ``lengths`` what grows with it: names with formulas as the spec has
    them; ``along`` are those of lengths. ``here`` is the length of the figures.
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
