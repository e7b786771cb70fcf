"""Exceptions for mistakes of a user; light to import, for commands that answer at once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class SymflopsError(Exception):
    """A request that cannot be carried out; the message says what and why, ``exit_code`` is that of the command line."""

    exit_code = 2


LONGEST, MOST_KNOWN = 200, 1_000
"""Above so many characters, or so many names, nobody looks for similar ones: it takes too long."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint that names up to three of ``known`` close to ``name``, or ``otherwise``."""
    import difflib

    length = len(name)
    alike = {one for one in known if 2 * min(length, len(one)) >= 0.6 * (length + len(one))} if length <= LONGEST else ()
    likely = sorted(alike, key=lambda one: (-_shared(name, one) - _shared(name[::-1], one[::-1]), one))
    near = difflib.get_close_matches(name, likely[:MOST_KNOWN], n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(match) for match in near)}?" if near else otherwise


def _shared(one: str, other: str) -> int:
    """How many letters two names begin with alike."""
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
