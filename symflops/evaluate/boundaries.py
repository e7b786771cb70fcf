"""Computes lengths from the boundaries of packs (cumulative lengths), without waiting for a device.

Boundaries are arrays with one row per pack. A mask is True for a sub-sequence and False for a filler; None means no fillers.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

HOST = "cpu"
"""The device type whose values can be read without synchronisation."""


def rows_of(cu: Any) -> Any:
    """Convert cumulative lengths (a list, array or tensor) to an array or tensor with one row per pack.

    Raises:
        LengthError: the entries are not whole numbers.
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
        raise LengthError(f"boundaries are whole numbers, e.g. [0, 100, 150], not {told(cu)}") from None


def _whole(values: Sequence[Any]) -> Any:
    """Convert integers to an int64 array, or to an object array if one does not fit."""
    try:
        return numpy_here().asarray(array("q", values))
    except (TypeError, OverflowError):
        return numpy_here().array([index(value) for value in values], object)


def steps(rows: Any, valid: int | None = None) -> tuple[Any, Any]:
    """Compute the lengths between boundaries: (array of lengths, mask of the real ones; None if all are real).

    The boundaries of a pack end after the first ``valid`` ones, or, if ``valid`` is None, before the first decrease.

    Raises:
        LengthError: on the host, boundaries after the first decrease are not equal fillers.
    """
    places = wide(host_array(rows if valid is None else rows[:, :valid]))
    if valid is None and hasattr(places, "cummax"):
        highest = places.cummax(1).values  # from the first decrease on, values stay below the running maximum
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
    """Compute the padded lengths of sub-sequences in packs, as (real lengths, padded lengths, mask).

    The last non-empty sub-sequence takes the rest of a pack as padding. A pack with only fillers is one sequence.

    Args:
        real: the real lengths, one row per pack.
        mark: the mask of real lengths; None if all are real.
        outer: the lengths with the padding of each sub-sequence; None if there is none.
        width: the number of tokens of each pack; None for the sum of ``outer``, or of ``real``.
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
    """Match the padded lengths ``outer`` to the real ones, pack by pack.

    The result has the real lengths for a pack in which a padded length is less than the real one, or padded lengths sum to
    more than ``width``.

    Raises:
        LengthError: the numbers of packs differ.
    """
    if len(outer) != len(real):
        raise LengthError(f"{len(outer)} packs with padding and {len(real)} without")
    padded, columns = real * 0, min(real.shape[1], outer.shape[1])
    padded[:, :columns] = outer[:, :columns]
    fits = ((padded < real).sum(1).reshape(-1, 1) == 0) & (outer.sum(1).reshape(-1, 1) <= width)
    return padded * fits + real * ~fits


class LengthError(ValueError):
    """The form of an input is not one from which lengths can be read."""


def host_array(values: Any) -> Any:
    """View a dense integer tensor on the host as an array; return anything else unchanged."""
    torch = sys.modules.get("torch")
    if torch is None or type(values) is not torch.Tensor or values.device.type != HOST:
        return values
    dense = values.layout == torch.strided and not (values.is_floating_point() or values.is_complex() or values.is_nested)
    return values.numpy() if dense else values


def wide(column: Any, name: str = "") -> Any:
    """Convert a column to 64-bit integers, since squared lengths overflow 32 bits; tensors are copied.

    Raises:
        LengthError: the column's type is not integer.
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


def told(value: Any) -> str:
    """Describe a value by keys, types and shapes, and a single number as it is; never by a user's texts and tokens."""
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if hasattr(value, "keys"):
        return ", ".join(f"{key!s:.40} ({told(value[key])})" for key in list(value.keys())[:20]) or "nothing"
    shape, kind = getattr(value, "shape", None), type(value).__name__
    if shape is not None:
        return f"{kind} of shape {list(shape)}"
    inner = dict.fromkeys(type(one).__name__ for one in value[:20]) if isinstance(value, (list, tuple)) else ()
    return f"a {kind} of {', '.join(list(inner)[:4])}" if inner else f"a {kind}"
