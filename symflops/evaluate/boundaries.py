"""Lengths as arrays: those whose values are at hand, since they lie on the host, and those between the boundaries of packs.

Nothing here waits for a device. Boundaries are arrays of one row per pack.

A mark is True for a sub-sequence and False for a filler; None means that there are no fillers.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

HOST = "cpu"
"""The type of device whose values can be read without waiting."""


def rows_of(cu: Any) -> Any:
    """Boundaries in a list, an array or a tensor as an array of one row per pack.

    Raises:
        LengthError: they are not whole numbers.
    """
    if hasattr(cu, "dtype"):
        shape = tuple(cu.shape)
        alone = not shape or (len(shape) > 1 and shape[-1] == 1)
        return cu.reshape(1, -1) if alone else cu.reshape(prod(shape[:-1]), shape[-1])
    try:
        nested = len(cu) > 0 and (isinstance(cu[0], Sequence) or bool(getattr(cu[0], "shape", ())))
        packs = [list(row) for row in cu] if nested else [cu]
        width = max(map(len, packs))
        flat = packs[0] if len(packs) == 1 else [value for row in packs for value in (*row, *(-1,) * (width - len(row)))]
        return _whole(flat).reshape(len(packs), width)
    except (TypeError, ValueError, LookupError):
        raise LengthError(f"boundaries are whole numbers, e.g. [0, 100, 150], not {cu!r:.80}") from None


def _whole(values: Sequence[Any]) -> Any:
    """Integers as an array: of 64 bits, or of Python's integers if one does not fit."""
    try:
        return numpy_here().asarray(array("q", values))
    except (TypeError, OverflowError):
        return numpy_here().array([index(value) for value in values], object)


def steps(rows: Any, valid: int | None = None) -> tuple[Any, Any]:
    """Lengths between boundaries, and their mark; ``valid`` boundaries count, else those before the first smaller one.

    Raises:
        LengthError: boundaries on the host go on behind that one, other than as equal fillers.
    """
    places = wide(host_array(rows if valid is None else rows[:, :valid]))
    if valid is None and hasattr(places, "cummax"):
        highest = places.cummax(1).values  # a value that falls back is below what came before, and so is what follows it
        return highest[:, 1:] - highest[:, :-1], places[:, 1:] == highest[:, 1:]
    found = places[:, 1:] - places[:, :-1]
    falls = found < 0
    if valid is not None or not falls.any():
        return found, None
    mark = falls.cumsum(1) == 0
    if (((found != 0) & ~mark).sum(1) > 1).any():
        raise LengthError(f"boundaries rise from 0 on, and equal fillers may follow; they are {places.tolist()!s:.80}")
    return found * mark, mark


def filled(real: Any, mark: Any, outer: Any, width: int | None) -> tuple[Any, Any, Any]:
    """Real lengths, padded ones and the mark in packs of ``width`` tokens each; by default up to the last ``outer`` boundary.

    The rest of a pack is padding of its last sub-sequence with tokens. A pack of fillers alone is one sequence.
    """
    whole = (real if outer is None else outer).sum(1).reshape(-1, 1) if width is None else width
    padded = real if outer is None else _paired(real, outer, whole)
    ends = padded.cumsum(1)
    last, rest = ends == ends[:, -1:], (whole - ends[:, -1:]).clip(min=0)
    padded = padded + last * rest
    padded[:, 1:] -= last[:, :-1] * rest
    if mark is None:
        return real, padded, None
    alone = (mark.sum(1) == 0).reshape(-1, 1)
    return real + padded * alone, padded, mark | (alone & (padded > 0))


def _paired(real: Any, outer: Any, width: Any) -> Any:
    """The ``outer`` length of each real one; in a pack whose outer lengths do not fit, the real ones.

    Raises:
        LengthError: there are other packs.
    """
    if len(outer) != len(real):
        raise LengthError(f"{len(outer)} packs with padding and {len(real)} without")
    padded, columns = real * 0, min(real.shape[1], outer.shape[1])
    padded[:, :columns] = outer[:, :columns]
    fits = ((padded < real).sum(1).reshape(-1, 1) == 0) & (outer.sum(1).reshape(-1, 1) <= width)
    return padded * fits + real * ~fits


class LengthError(ValueError):
    """The input has no form from which lengths can be read."""


def host_array(values: Any) -> Any:
    """A dense tensor of integers on the host as an array of the same memory; anything else as it is."""
    torch = sys.modules.get("torch")
    if torch is None or type(values) is not torch.Tensor or values.device.type != HOST:
        return values
    dense = values.layout == torch.strided and not (values.is_floating_point() or values.is_complex() or values.is_nested)
    return values.numpy() if dense else values


def wide(column: Any, name: str = "") -> Any:
    """A column as 64-bit integers, because squares of lengths do not fit into 32 bits; of a tensor a copy.

    Raises:
        LengthError: of another type than integers.
    """
    kind = str(column.dtype).rpartition(".")[2]
    if not kind.startswith(("int", "uint", "bool")) and 0 not in column.shape:
        raise LengthError(f"{f'{name!r} must be' if name else 'lengths are'} whole numbers, not of type {kind}")
    if not hasattr(column, "long"):
        return column.astype("int64", copy=False)
    return column.long() if kind != "int64" else column.clone()


def numpy_here() -> Any:
    import numpy

    return numpy
