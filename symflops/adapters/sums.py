"""FLOPs from sums that a framework already has: the number of sequences, the tokens, and squares and products of lengths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symflops.model.index_sets import padded_name
from symflops.runtime.units import in_flops

# lengths below and above any window: a moment is identified by its values at these
POINTS = ((1, 1), (2, 3), (5, 7), (1009, 2003), (10**6 + 3, 10**5 + 3), (10**15 + 37, 10**14 + 31))
SUMS = {
    tuple(1 for _ in POINTS): "n", tuple(x for x, _ in POINTS): "x", tuple(x * x for x, _ in POINTS): "xx",
    tuple(y for _, y in POINTS): "y", tuple(y * y for _, y in POINTS): "yy", tuple(x * y for x, y in POINTS): "xy",
}  # fmt: skip
"""The name of each sum, by its term at ``POINTS``."""


def flops_of_sums(estimator: Any, sums: Mapping[str, int], kind: str = "total") -> int:
    """FLOPs of a model whose every moment is one of ``sums``.

    Args:
        estimator: The estimator of the model.
        sums: ``n`` sequences; ``x`` and ``xx`` the sums of the first stream's lengths and of their squares; ``y``, ``yy`` those
            of a second stream; ``xy`` the sum of products. ``x_padded`` and so on are those of padded lengths; without one,
            the lengths are not padded, and it is ``x``.
        kind: The coefficients: ``total``, ``forward``, ...

    Raises:
        ValueError: the model has other moments (windows, patches), or a sum that it needs is missing.
    """
    streams = [stream for members in estimator.sets.values() for stream in members]
    if len(estimator.sets) != 1 or len(streams) > 2 or any(len(axes) > 1 for _, axes, _ in streams):
        raise ValueError("this model's work is not a function of sums of lengths: give the lengths themselves")
    columns = zip(*(estimator.terms(*point[: len(streams)]) for point in POINTS), strict=True)
    total = 0
    for moment, coefficient, values in zip(estimator.moment_sets, estimator.coefficients[kind], columns, strict=True):
        if coefficient:
            name = SUMS.get(values, "")
            padded = estimator.padded or moment in getattr(estimator, "padded_sums", ())
            known = sums.get(padded_name(name), sums.get(name)) if padded else sums.get(name)
            if known is None:
                raise ValueError(f"this model needs the sum '{moment}' of the lengths, which is not given")
            total += coefficient * int(known)
    return in_flops(estimator, total)
