"""A typical batch of a model: one item per stream."""

from __future__ import annotations

from collections import Counter

from symflops.runtime.batch import LONGEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    Rests = Sequence[tuple[frozenset[str], Callable[[Mapping[str, int]], Any]]]
    """The letters that a rest reads, and the rest itself, which must be at least 1."""

MOST_RAISED = 2048
"""By how much lengths are raised at most, so that they divide."""


def typical_lengths(streams: Sequence[Any], inner: Rests, taken: Mapping[str, int]) -> dict[str, int]:
    """Each length: 1024 along one axis, 16 along each of several axes; streams that a batch may leave out have their default.

    Lengths that a condition refuses become those that it names (``taken``). Lengths of which too little is left are doubled, in
    all streams or in one; if that does not make them divide, lengths are raised.
    """
    absent = {stream.name: stream.absent for stream in left_out(streams)}
    found = {
        name: absent[stream.name] if stream.name in absent else 1024 if len(stream.variables) == 1 else 16
        for stream in streams
        for name in stream.variables
    }
    short = {name for letters, rest in inner if rest(found) < 1 for name in letters}
    limited = {name: taken[name] if name in short and name in taken else length for name, length in found.items()}
    own = [doubled(limited, inner, stream.variables) for stream in streams]
    for grown in (doubled(found, inner, found), doubled(limited, inner, found), *own, raised(limited, inner)):
        fitting = next((lengths for lengths in grown if all(rest(lengths) >= 1 for _, rest in inner)), None)
        if fitting is not None:
            return fitting
    return found


def doubled(lengths: Mapping[str, int], inner: Rests, among: Collection[str]) -> Iterator[dict[str, int]]:
    """``lengths``, those ``among`` them of which too little is left doubled, again and again."""
    found = dict(lengths)
    while max(found.values(), default=0) < LONGEST:
        yield found
        short = {name for letters, rest in inner if rest(found) < 1 for name in letters if name in among}
        if not short:
            break
        found = {name: length * (1 + (name in short)) for name, length in found.items()}


def raised(lengths: Mapping[str, int], inner: Rests) -> Iterator[dict[str, int]]:
    """``lengths`` that the rests read raised by 1, 2, ..., for divisions by other numbers than powers of 2."""
    read = {name for letters, _ in inner for name in letters}
    for more in range(1, MOST_RAISED):
        yield {name: length + more * (name in read) for name, length in lengths.items()}


def left_out(streams: Sequence[Any]) -> list[Any]:
    """The streams that a batch may leave out, of their default length then, beside another stream of their items."""
    measured = Counter(stream.items for stream in streams if stream.variables)
    return [stream for stream in streams if stream.absent and measured[stream.items] > bool(stream.variables)]


def as_batch(streams: Sequence[Any], lengths: Mapping[str, int]) -> dict[str, list[Any]]:
    """One item per stream, of some lengths."""
    rows = {stream.name: [lengths[name] for name in stream.variables] for stream in streams if stream.variables}
    return {name: [row[0] if len(row) == 1 else row] for name, row in rows.items()}
