"""Tensors whose values are at hand, since they lie on the host, and columns as integers that are wide enough."""

from __future__ import annotations

import sys
from typing import Any

HOST = "cpu"
"""The type of device whose values can be read without waiting."""


class LengthError(ValueError):
    """The input has no form from which lengths can be read."""


def at_hand(values: Any) -> Any:
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
