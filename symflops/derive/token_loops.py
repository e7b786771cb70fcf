"""Loops over the tokens of a sample: moves their iteration counts, which are lengths, into the extents of contractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from sympy import Expr, Integer, Symbol

from symflops.algebra.polynomial import Polynomial
from symflops.model.derivation import Work


@lru_cache(maxsize=1 << 12)
def letters_of(count: Expr) -> frozenset[Symbol]:
    """The symbols of a count; cached, since many contractions share one."""
    return frozenset(count.free_symbols)


def executions(work: Work) -> list[Expr]:
    """How often a contraction runs: forward, recomputed, and each gradient."""
    return [work.forward, work.recomputed, *(gradient.count for gradient in work.gradients)]


def spread(work: Work, lengths: frozenset[Symbol]) -> list[Work]:
    """``work`` without ``lengths`` in its counts: one work per product of lengths, which becomes part of its extent.

    For example, ``x`` steps forward and ``max(0, x - 1)`` gradients become one work per step and one per step but the first.
    """
    counts = executions(work)
    if not any(letters_of(count) & lengths for count in counts):
        return [work]
    parts = [Polynomial.of(count).split(lambda atom: bool(atom.free_symbols & lengths)) for count in counts]
    executed, useful = (Polynomial.of(expr) for expr in (work.contraction.extent.executed, work.contraction.extent.useful))
    found: dict[tuple[Polynomial, Polynomial], list[Expr]] = {}
    for product in dict.fromkeys(product for part in parts for product in part):
        factor = Polynomial({product: Fraction(1)})
        once = [part[product].expr if product in part else Integer(0) for part in parts]
        key = (executed * factor, useful * factor)  # different factors may give one extent
        found[key] = [added(one, two) for one, two in zip(found.get(key, [Integer(0)] * len(once)), once, strict=True)]
    return [_times(work, *extent, once) for extent, once in found.items()]


def _times(work: Work, executed: Polynomial, useful: Polynomial, once: Sequence[Expr]) -> Work:
    extent = replace(work.contraction.extent, executed=executed.expr, useful=useful.expr)
    gradients = tuple(
        replace(gradient, count=count, reason="" if count == once[0] else gradient.reason)
        for gradient, count in zip(work.gradients, once[2:], strict=True)
    )
    contraction = replace(work.contraction, extent=extent)
    return replace(work, contraction=contraction, forward=once[0], recomputed=once[1], gradients=gradients)


@lru_cache(maxsize=1 << 12)
def added(one: Expr, two: Expr) -> Expr:
    """The sum of two counts, expanded."""
    return Polynomial.of(one + two).expr
