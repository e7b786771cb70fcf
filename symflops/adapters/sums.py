"""FLOPs from the sums that a framework already has: numbers of sequences, of tokens, and of squares and products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flops_of_sums(estimator: Any, sums: Mapping[str, int], kind: str = "total") -> int:
    """FLOPs where every moment is one of ``sums``: ``n``, ``x``, ``xx`` of the first stream, ``y``, ``yy``, ``xy`` of a second.

    What each moment is a sum of is found out by evaluating it at a few lengths.

    Raises:
        ValueError: the model has other moments (windows, patches), or a sum that it needs is missing.
    """
    streams = [stream for members in estimator.sets.values() for stream in members]
    if len(estimator.sets) != 1 or len(streams) > 2 or any(len(axes) > 1 for _, axes, _ in streams):
        raise ValueError("this model's work is not a function of sums of lengths: give the lengths themselves")
    # lengths below and above any window
    points = [(1, 1), (2, 3), (5, 7), (1009, 2003), (10**6 + 3, 10**5 + 3), (10**15 + 37, 10**14 + 31)]
    found = [estimator.terms(*point[: len(streams)]) for point in points]
    monomials = {
        "n": [1 for _ in points], "x": [x for x, _ in points], "xx": [x * x for x, _ in points],
        "y": [y for _, y in points], "yy": [y * y for _, y in points], "xy": [x * y for x, y in points],
    }  # fmt: skip
    total = 0
    for moment, coefficient, values in zip(
        estimator.moment_sets, estimator.coefficients[kind], zip(*found, strict=True), strict=True
    ):
        if coefficient:
            name = next((name for name, column in monomials.items() if list(values) == column), None)
            if name is None or sums.get(name) is None:
                raise ValueError(f"this model needs the sum '{moment}' of the lengths, which is not given")
            total += coefficient * int(sums[name])
    return total
