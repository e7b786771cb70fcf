"""Useful pairs of queries and keys under attention masks, in closed form.

Row ``i`` of ``Lq`` queries may attend to key ``j`` of ``Lk``. Queries align with the last keys (bottom-right alignment), so
row ``i`` has the position ``t = i + Lk - Lq``; with more queries than keys the first rows precede every key. Row ``t`` attends
to key ``j`` if the base and every given bound allow it:

* ``full``: always. ``block``: the keys of its own block; without blocks, an item is one block. The other masks also apply
  within an item, so packed documents are separate items.
* ``causal``: ``j <= t``.
* ``prefix`` with ``p`` keys: ``j < p or j <= t``; without a number of keys (it is null) it is ``causal``.
* ``sliding`` ``W``: ``t - W < j``, the last ``W`` keys including itself. Under ``full`` it is causal as well (``j <= t``);
  under ``prefix`` the keys of the prefix that are still ahead stay visible, those behind the window do not.
* ``local`` ``W``: ``|t - j| <= W``, so up to ``2 W + 1`` keys.
* ``chunked`` ``c``: ``t // c == j // c``, counted from the first key.

Blocks of unequal lengths ``b`` are given by the pairs ``within`` blocks, the sum of ``b (b - 1) / 2``; a token outside blocks
is a block of one. A causal mask adds these pairs to its own, so a row attends to its block and all earlier keys, in any order
of blocks. ``picked`` is the number of pairs of a mask that allows each row a fixed number of keys.

The number of keys up to a row's own position depends on that position alone. So for any bounds, the pairs behind are those of
a square of ``Lk`` minus those of the ``Lk - Lq`` missing rows; the pairs ahead are counted separately. The formulas use
``min(length, W)``, ``length // c`` and ``length % c`` of a few lengths, and are exact for all lengths >= 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from sympy import Expr, Integer, Rational

from symflops.formula.functions import AtLeast, Excess, FloorDiv, Least, Modulo
from symflops.formula.polynomial import Polynomial

ZERO, ONE = Integer(0), Integer(1)
BASES = ("full", "block", "causal", "prefix", "within")

Square = Callable[[Expr], Expr]


@dataclass(frozen=True, slots=True)
class Mask:
    """An attention mask: a pair of query and key is allowed if the base and every bound allow it.

    The bounds ``sliding``, ``local`` and ``chunked`` are numbers of keys; None is no bound. ``prefix`` is the number of keys
    of the base ``prefix``. ``within`` is the number of pairs within blocks, and the base ``within`` allows only these.
    ``picked`` is the number of pairs of a mask with a fixed number of keys per row.
    """

    base: str = "full"
    prefix: Expr | None = None
    sliding: Expr | None = None
    local: Expr | None = None
    chunked: Expr | None = None
    within: Expr | None = None
    picked: Expr | None = None

    @property
    def name(self) -> str:
        """Name of the mask, e.g. ``causal`` or ``prefix_sliding``; empty if every pair is allowed."""
        if self.picked is not None or self.within is not None:
            return "_".join([*([] if self.base == "full" else [self.base]), "picked" if self.within is None else "blocks"])
        bounds = [name for name in ("sliding", "local", "chunked") if getattr(self, name) is not None]
        implied = ("full", "block", "causal") if self.sliding is not None else ("full", "block")
        return "_".join(bounds if self.base in implied else [self.base, *bounds])

    @property
    def looks_ahead(self) -> bool:
        """Whether a query may attend to keys after its own position."""
        if self.base == "prefix":
            return self.prefix is not None
        if self.picked is not None or self.within is not None:
            return True
        return self.base != "causal" and self.sliding is None


def useful_pairs(mask: Mask, queries: Expr, keys: Expr) -> Expr:
    """Number of pairs that ``mask`` allows between ``queries`` and ``keys`` tokens of one sample.

    Raises:
        ValueError: the base of ``mask`` is none of ``BASES``.
    """
    if mask.base not in BASES:
        raise ValueError(f"no closed form for the mask '{mask.name}'")
    queries, keys = Polynomial.of(queries).expr, Polynomial.of(keys).expr
    if mask.picked is not None:
        return mask.picked
    if mask.within is not None:
        return {"causal": causal(queries, keys) + mask.within, "block": queries + 2 * mask.within}.get(mask.base, mask.within)
    if not mask.name:
        return queries * keys
    return behind(mask, queries, keys) + (ahead(mask, queries, keys) if mask.looks_ahead else ZERO)


def behind(mask: Mask, queries: Expr, keys: Expr) -> Expr:
    """Number of pairs that ``mask`` allows with keys up to the position of the query."""
    if mask.sliding is None and mask.local is None and mask.chunked is None:
        return causal(queries, keys)
    square, start = chunks(lambda length: band(mask, length), mask.chunked), Excess(keys - queries)
    return square(keys) if start == ZERO else square(keys) - square(start)


def ahead(mask: Mask, queries: Expr, keys: Expr) -> Expr:
    """Number of pairs that ``mask`` allows with keys after the position of the query, as within a prefix."""
    start, early = Excess(keys - queries), Excess(queries - keys)
    rows, last, seen = queries, keys, Least(queries, keys)
    if mask.base == "prefix" and mask.prefix is not None:
        seen = Least(Least(queries, keys), Excess(mask.prefix - start))
        rows, last = seen + early, start + seen
    if mask.chunked is None:
        return near(rows, mask.local) - near(early, mask.local)
    square = chunks(lambda length: near(length, mask.local), mask.chunked)
    if start == ZERO:
        return square(last)
    above = Modulo(start, mask.chunked)
    width = Least(mask.chunked, seen + above)
    cut = near(width, mask.local) - near(width - above, mask.local)
    return square(last) - FloorDiv(start, mask.chunked) * near(mask.chunked, mask.local) - cut


def causal(queries: Expr, keys: Expr) -> Expr:
    """Number of pairs of a causal mask: row ``i`` attends to ``max(0, i + 1 + keys - queries)`` keys."""
    return triangle(keys) - triangle(Excess(keys - queries))


def triangle(length: Expr) -> Expr:
    """``1 + 2 + ... + length``."""
    return Rational(1, 2) * length * (length + 1)


def band(mask: Mask, length: Expr) -> Expr:
    """Number of pairs if row ``t`` of ``length`` attends to the last ``min(t + 1, W)`` keys (bound ``W``)."""
    if mask.sliding is None:
        return triangle(length) if mask.local is None else length + near(length, mask.local)
    width = mask.sliding if mask.local is None else Least(mask.sliding, mask.local + ONE)
    short = Least(length, width)
    return triangle(short) + width * (length - short)


def near(length: Expr, reach: Expr | None) -> Expr:
    """Number of pairs up to ``W`` = ``reach`` beside a diagonal: ``min(0, W) + ... + min(length - 1, W)``."""
    if reach is None:
        return triangle(length - ONE)
    short = Least(length, reach)
    return triangle(short - ONE) + reach * (length - short)


def chunks(square: Square, size: Expr | None) -> Square:
    """Restrict ``square``, which maps a length to a number of pairs, to chunks of ``size`` keys, if any."""
    if size is None:
        return square
    return lambda length: FloorDiv(length, size) * square(size) + square(Modulo(length, size))


def bounds_of(mask: Mask) -> list[Expr]:
    """Return, for each bound of a mask, the number of keys that it allows for a row far from both ends."""
    bounds = [mask.sliding, mask.chunked, None if mask.local is None else 2 * mask.local + ONE]
    return [bound for bound in bounds if bound is not None]


def area(mask: Mask, queries: Expr, keys: Expr) -> Expr:
    """Area of a mask as a geometric shape, ``L**2 / 2`` if causal; the useful pairs if it looks ahead."""
    if mask.looks_ahead:
        return useful_pairs(mask, queries, keys)
    half = Rational(1, 2)

    def triangle_and_band(length: Expr) -> Expr:
        short = length if mask.sliding is None else Least(length, mask.sliding)
        return short * length - half * short**2

    square, start = chunks(triangle_and_band, mask.chunked), Excess(keys - queries)
    return square(keys) if start == ZERO else square(keys) - square(start)


def pairs_by(word: str, mask: Mask, queries: Expr, keys: Expr) -> Expr:
    """Number of pairs of a mask that a convention counts by ``word``: ``useful``, ``all``, ``half``, ...

    ``band`` gives every row its full width, ``half_band`` half of that. ``half_within`` is half of all pairs if every key is
    within the bounds, else the useful pairs. ``area`` is the geometric area, half a square for a causal mask. The suffix
    ``_beyond`` counts each sequence as if it were longer than the bound. A mask that allows every pair has all its pairs
    under any word.
    """
    if not mask.name:
        return queries * keys
    if word.endswith("_beyond"):
        found = pairs_by(word.removesuffix("_beyond"), mask, queries, keys)
        return found.xreplace(
            {atom: one for atom in found.atoms(Least) for one in bounds_of(mask) if set(atom.args) == {keys, one}}
        )
    if mask.base == "within" and word not in ("useful", "area"):
        return ZERO  # another contraction counts all pairs
    if word == "useful":
        return useful_pairs(mask, queries, keys)
    if word == "area":
        return area(mask, queries, keys)
    bound = reduce(Least, bounds_of(mask), keys)  # keys of a row far from both ends
    if word == "half_within" and isinstance(bound, Least):
        beyond = AtLeast(keys, next(arg for arg in bound.args if arg != keys) + ONE)
        return beyond * useful_pairs(mask, queries, keys) + (ONE - beyond) * Rational(1, 2) * queries * keys
    width = bound if word.endswith("band") else keys
    return queries * width * (Rational(1, 2) if word.startswith("half") else ONE)


def bound_of(mask: Mask) -> str:
    """The name by which conventions refer to a mask: its first bound, else its base."""
    return next((name for name in ("sliding", "local", "chunked") if getattr(mask, name) is not None), mask.base)
