"""Converts arrays and tensors of lengths to integer columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from symflops.evaluate.columnwise import LIMIT

FEW = 100  # up to here the minimum is checked at once; in longer columns, negative lengths are found with the maximum


def axes(name: str, entries: Any, count: int) -> list[np.ndarray[Any, Any]]:
    """Split an integer array or tensor with one row per item into a list of columns, one per axis.

    Raises:
        ValueError: ``entries`` is masked, has entries other than non-negative integers, or another number of axes.
    """
    if hasattr(entries, "detach"):
        entries = entries.detach().cpu().numpy()
    if np.ma.isMaskedArray(entries) and np.ma.is_masked(entries):
        raise ValueError(f"'{name}' is a masked array: give the entries that count, with '.compressed()'")
    found = np.asarray(entries)
    wrong = _wrong(found, count) if found.size else ""
    if wrong:
        raise ValueError(f"an entry of '{name}' is {count} whole number{'s' * (count > 1)}, not {wrong}")
    wide = found.dtype == np.uint64 and found.size and int(found.max()) >= LIMIT
    found = found.astype(object) if wide else found.astype(np.int64, copy=False)
    return [found] if count == 1 else [np.ascontiguousarray(found[:, axis]) for axis in range(count)]


def _wrong(found: np.ndarray[Any, Any], count: int) -> str:
    """Explain why an array is not one of non-negative integers with ``count`` axes; empty if it is."""
    if found.dtype.kind not in "iu":
        return f"of type {found.dtype}"
    if found.shape != ((len(found),) if count == 1 else (len(found), count)):
        return f"of shape {found.shape[1:]}"
    small = len(found) < FEW or count > 1  # the minimum of a long column is checked with its bounds
    return str(int(found.min())) if small and int(found.min()) < 0 else ""
