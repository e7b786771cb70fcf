"""A typical batch of a model: one item per stream."""

from __future__ import annotations

from collections import Counter

from symflops.runtime.batch import LONGEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def typical_lengths(
    streams: Sequence[Any], inner: Sequence[tuple[frozenset[str], Callable[[Mapping[str, int]], Any]]]
) -> dict[str, int]:
    """Each length: 1024 along one axis, 16 along each of several axes; streams that a batch may leave out have their default.

    Lengths of which too little is left are doubled. ``inner`` are the letters that such a rest reads, and the rest itself.
    """
    absent = {stream.name: stream.absent for stream in left_out(streams)}
    found = {
        name: absent[stream.name] if stream.name in absent else 1024 if len(stream.variables) == 1 else 16
        for stream in streams
        for name in stream.variables
    }
    for letters, rest in inner:
        while rest(found) < 1 and max(found.values()) < LONGEST:
            found |= {name: 2 * found[name] for name in found.keys() & letters}
    return found


def left_out(streams: Sequence[Any]) -> list[Any]:
    """The streams that a batch may leave out, of their default length then, beside another stream of their items."""
    measured = Counter(stream.items for stream in streams if stream.variables)
    return [stream for stream in streams if stream.absent and measured[stream.items] > bool(stream.variables)]


def as_batch(streams: Sequence[Any], lengths: Mapping[str, int]) -> dict[str, list[Any]]:
    """One item per stream, of some lengths."""
    rows = {stream.name: [lengths[name] for name in stream.variables] for stream in streams if stream.variables}
    return {name: [row[0] if len(row) == 1 else row] for name, row in rows.items()}
