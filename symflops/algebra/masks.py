"""Useful pairs of queries and keys under attention masks, in closed form.

Row ``i`` of ``Lq`` queries may see key ``j`` of ``Lk``. Queries stand at the end of the keys (bottom-right alignment),
so row ``i`` has the
position ``i + Lk - Lq``: causal lets it see the keys up to its own position, a sliding window the last ``W`` of those.
"""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Rational

from symflops.algebra.functions import Excess


@dataclass(frozen=True, slots=True)
class Mask:
    """Which pairs are allowed: a base and bounds that intersect with it."""

    base: str = "full"
    prefix: Expr | None = None
    sliding: Expr | None = None
    local: Expr | None = None
    chunked: Expr | None = None

    @property
    def name(self) -> str:
        """The mask in one word, empty when every pair is allowed."""
        bounds = [name for name in ("sliding", "local", "chunked") if getattr(self, name) is not None]
        return "_".join(bounds) or ("" if self.base == "full" else self.base)


def useful_pairs(mask: Mask, queries: Expr, keys: Expr) -> Expr:
    """Pairs that ``mask`` allows between ``queries`` and ``keys`` tokens of one sample."""
    if mask.base == "full" and not mask.name:
        return queries * keys
    if mask.base == "causal" and mask.name == "causal":
        return causal(queries, keys)
    raise ValueError(f"no closed form for the mask {mask.name}")


def causal(queries: Expr, keys: Expr) -> Expr:
    """Row ``i`` sees ``i + 1 + keys - queries`` keys, where that is positive."""
    if queries == keys:
        return triangle(keys)
    return triangle(keys) - triangle(Excess(keys - queries))


def triangle(length: Expr) -> Expr:
    """``1 + 2 + ... + length``."""
    return Rational(1, 2) * length * (length + 1)
