"""Exceptions for mistakes of a user; light to import, for commands that answer at once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class SymflopsError(Exception):
    """A request that cannot be carried out; the message says what and why, ``exit_code`` is that of the command line."""

    exit_code = 2

    def __str__(self) -> str:
        return shown(super().__str__())


KEPT = "\t\u00a0\u2009\u202f"
"""Characters that are shown as they are, though they are not printable to Python: a tab, and spaces that do not break."""
LONGEST_LINE = 1_200
"""Of a longer line of a message, its beginning and its end are shown."""


def shown(text: str, most: int = LONGEST_LINE) -> str:
    r"""Text with words of a user in it, as it is shown: control characters as escapes, and long lines without their middle.

    >>> shown("a key \x1b[31m of a config")
    'a key \\x1b[31m of a config'
    """
    lines = text.split("\n")
    if all(line.isprintable() and len(line) <= most for line in lines):
        return text
    return "\n".join([escaped(cut(line, most)) for line in lines])


def cut(line: str, most: int) -> str:
    """A line of at most ``most`` characters, with how many were left out of its middle."""
    if len(line) <= most:
        return line
    ending = most // 3
    left = len(line) - most
    return f"{line[: most - ending]}... ({left:,} characters) ...{line[len(line) - ending :]}"


def escaped(text: str) -> str:
    r"""Text in which control characters, and others that a terminal obeys, are written as Python writes them.

    >>> escaped("\x1b]0;title\x07 \u202e\ud800 é 文")
    '\\x1b]0;title\\x07 \\u202e\\ud800 é 文'
    """
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() or c in KEPT else c.encode("unicode_escape").decode() for c in text])


LONGEST, MOST_KNOWN = 200, 1_000
"""Above so many characters, or so many names, nobody looks for similar ones: it takes too long."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint that names up to three of ``known`` close to ``name``, or ``otherwise``."""
    length = len(name)
    alike = {one for one in known if 2 * min(length, len(one)) >= 0.6 * (length + len(one))} if length <= LONGEST else ()
    likely = sorted(alike, key=lambda one: (-_shared(name, one) - _shared(name[::-1], one[::-1]), one))
    near = close_to(name, likely[:MOST_KNOWN], 3, 0.6)
    return f"did you mean {' or '.join(repr(match) for match in near)}?" if near else otherwise


def close_to(name: str, known: Sequence[str], most: int, cutoff: float) -> list[str]:
    """Those of ``known`` that are as alike to ``name`` as ``cutoff``, as :mod:`difflib` measures it, the nearest first."""
    import difflib

    return difflib.get_close_matches(name, known, n=most, cutoff=cutoff) if len(name) <= LONGEST else []


def _shared(one: str, other: str) -> int:
    """How many letters two names begin with alike."""
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
