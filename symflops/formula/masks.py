"""Useful pairs of queries and keys under attention masks, in closed form.

Row ``i`` of ``Lq`` queries may see key ``j`` of ``Lk``. Queries stand at the end of the keys (bottom-right alignment), so row
``i`` has the position ``t = i + Lk - Lq``; with more queries than keys the first rows stand before every key. Row ``t`` sees
key ``j`` where the base and every bound that is given allow it:

* ``full``: always. ``block``: the keys of its own block; without blocks, an item is one block. The other masks hold within an
  item, too, so packed documents are items of their own.
* ``causal``: ``j <= t``.
* ``prefix`` with ``p`` keys: ``j < p or j <= t``; without a number of keys (it is null) it is ``causal``.
* ``sliding`` ``W``: ``t - W < j``, the last ``W`` keys including itself. Under ``full`` it is causal as well (``j <= t``);
  under ``prefix`` the keys of the prefix that are still ahead stay visible, those out of the window do not.
* ``local`` ``W``: ``|t - j| <= W``, so up to ``2 W + 1`` keys.
* ``chunked`` ``c``: ``t // c == j // c``, counted from the first key.

Blocks of unequal lengths ``b`` are given by the pairs ``within`` them, the sum of ``b (b - 1) / 2``; a token of no block is one
of its own. A causal mask allows these pairs beside its own, so that a row sees its block and all before, in whatever order
blocks come. ``picked`` are the pairs of a mask that allows each row a number of keys.

The keys that a row sees up to its own position depend on that position alone. So for any bounds, the pairs behind are those of
a square of ``Lk`` minus those of the ``Lk - Lq`` missing rows; the pairs ahead are counted separately. The formulas use
``min(length, W)``, ``length // c`` and ``length % c`` of a few lengths, and are exact for all lengths from 0 on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sympy import Expr, Integer, Rational

from symflops.formula.functions import AtLeast, Excess, FloorDiv, Least, Modulo
from symflops.formula.polynomial import Polynomial

ZERO, ONE = Integer(0), Integer(1)
BASES = ("full", "block", "causal", "prefix", "within")

Square = Callable[[Expr], Expr]


@dataclass(frozen=True, slots=True)
class Mask:
    """The allowed pairs: those of a base that also satisfy each bound; a bound of None allows all.

    ``prefix`` belongs to the base of that name. The base ``within`` has the pairs within blocks alone.
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
        """The mask in one word, empty if every pair is allowed."""
        if self.picked is not None or self.within is not None:
            return "_".join([*([] if self.base == "full" else [self.base]), "picked" if self.within is None else "blocks"])
        bounds = [name for name in ("sliding", "local", "chunked") if getattr(self, name) is not None]
        implied = ("full", "block", "causal") if self.sliding is not None else ("full", "block")
        return "_".join(bounds if self.base in implied else [self.base, *bounds])

    @property
    def looks_ahead(self) -> bool:
        """Whether a query may see keys after its own position."""
        if self.base == "prefix":
            return self.prefix is not None
        if self.picked is not None or self.within is not None:
            return True
        return self.base != "causal" and self.sliding is None


def useful_pairs(mask: Mask, queries: Expr, keys: Expr) -> Expr:
    """Pairs that ``mask`` allows between ``queries`` and ``keys`` tokens of one sample.

    Raises:
        ValueError: no such base.
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
    """Pairs of a row with the keys up to its own position."""
    if mask.sliding is None and mask.local is None and mask.chunked is None:
        return causal(queries, keys)
    square, start = chunks(lambda length: band(mask, length), mask.chunked), Excess(keys - queries)
    return square(keys) if start == ZERO else square(keys) - square(start)


def ahead(mask: Mask, queries: Expr, keys: Expr) -> Expr:
    """Pairs of a row with the keys after its own position; a prefix mask allows the first few of these."""
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
    """Pairs of a causal mask: row ``i`` sees ``max(0, i + 1 + keys - queries)`` keys."""
    if queries == keys:
        return triangle(keys)
    return triangle(keys) - triangle(Excess(keys - queries))


def triangle(length: Expr) -> Expr:
    """``1 + 2 + ... + length``."""
    return Rational(1, 2) * length * (length + 1)


def band(mask: Mask, length: Expr) -> Expr:
    """Pairs up to the diagonal of a square: row ``t`` sees the last ``min(t + 1, W)`` keys."""
    if mask.sliding is None:
        return triangle(length) if mask.local is None else length + near(length, mask.local)
    width = mask.sliding if mask.local is None else Least(mask.sliding, mask.local + ONE)
    short = Least(length, width)
    return triangle(short) + width * (length - short)


def near(length: Expr, reach: Expr | None) -> Expr:
    """Pairs on one side of the diagonal of a square, at most ``reach`` away: ``min(0, W) + ... + min(length - 1, W)``."""
    if reach is None:
        return triangle(length - ONE)
    short = Least(length, reach)
    return triangle(short - ONE) + reach * (length - short)


def chunks(square: Square, size: Expr | None) -> Square:
    """Turn a count of pairs in a square into one in its chunks of ``size``: the whole chunks and the rest."""
    if size is None:
        return square
    return lambda length: FloorDiv(length, size) * square(size) + square(Modulo(length, size))


def reach(mask: Mask, keys: Expr) -> Expr:
    """Keys that a row far from both ends sees: all, or those within the smallest bound."""
    for bound in bounds_of(mask):
        keys = Least(keys, bound)
    return keys


def bounds_of(mask: Mask) -> list[Expr]:
    """The keys that each bound of a mask leaves to a row far from both ends."""
    bounds = [mask.sliding, mask.chunked, None if mask.local is None else 2 * mask.local + ONE]
    return [bound for bound in bounds if bound is not None]


def area(mask: Mask, queries: Expr, keys: Expr) -> Expr:
    """The area of a mask as a figure whose sides are lengths; a mask that looks ahead has its useful pairs."""
    if mask.looks_ahead:
        return useful_pairs(mask, queries, keys)
    half = Rational(1, 2)

    def triangle_and_band(length: Expr) -> Expr:
        short = length if mask.sliding is None else Least(length, mask.sliding)
        return short * length - half * short**2

    square, start = chunks(triangle_and_band, mask.chunked), Excess(keys - queries)
    return square(keys) if start == ZERO else square(keys) - square(start)


def pairs_by(word: str, mask: Mask, queries: Expr, keys: Expr) -> Expr:
    """Pairs as a convention's word counts them: ``useful``, ``all``, ``half`` of all, a ``band`` of full rows, ``half_band``.

    ``half_within`` is half of all if every key is in reach, else the useful pairs. ``area`` is that of the mask as a figure,
    half a square for a triangle. With ``_beyond`` each text counts as if it were longer than the bound. A mask that allows
    every pair has all its pairs for any word.
    """
    if not mask.name:
        return queries * keys
    if word.endswith("_beyond"):
        found = pairs_by(word.removesuffix("_beyond"), mask, queries, keys)
        return found.xreplace(
            {atom: one for atom in found.atoms(Least) for one in bounds_of(mask) if set(atom.args) == {keys, one}}
        )
    if mask.base == "within" and word not in ("useful", "area"):
        return ZERO  # all pairs are counted beside
    if word == "useful":
        return useful_pairs(mask, queries, keys)
    if word == "area":
        return area(mask, queries, keys)
    bound = reach(mask, keys)
    if word == "half_within" and isinstance(bound, Least):
        beyond = AtLeast(keys, next(arg for arg in bound.args if arg != keys) + ONE)
        return beyond * useful_pairs(mask, queries, keys) + (ONE - beyond) * Rational(1, 2) * queries * keys
    width = bound if word.endswith("band") else keys
    return queries * width * (Rational(1, 2) if word.startswith("half") else ONE)


def bound_of(mask: Mask) -> str:
    """The word of a convention for a mask: its tightest bound, else its base."""
    return next((name for name in ("sliding", "local", "chunked") if getattr(mask, name) is not None), mask.base)
