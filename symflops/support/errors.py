"""Exceptions for mistakes of a user, and safe display of their text; light to import, for quick commands."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class SymflopsError(Exception):
    """A request that cannot be carried out; the text is for the user.

    ``exit_code`` is the exit status of a command that ends with this error.
    """

    exit_code = 2

    def __str__(self) -> str:
        return shown(super().__str__())


def kind_of(value: object) -> str:
    """Name the type of a wrong argument for a message.

    >>> kind_of(None), kind_of(5)
    ('None', 'int')
    """
    return "None" if value is None else type(value).__name__


KEPT = "\t\u00a0\u2009\u202f"
"""Characters displayed unescaped though Python calls them unprintable: a tab and special spaces."""
LONGEST_LINE = 1_200
"""Characters per line of a message; longer lines lose their middle."""


def shown(text: str, most: int = LONGEST_LINE) -> str:
    r"""Make user input safe to display: escape control characters, cut the middle of long lines.

    >>> shown("a key \x1b[31m of a config")
    'a key \\x1b[31m of a config'
    """
    lines = text.split("\n")
    if all(line.isprintable() and len(line) <= most for line in lines):
        return text
    return "\n".join([escaped(cut(line, most)) for line in lines])


def cut(line: str, most: int) -> str:
    """Shorten a line of more than ``most`` characters: ``... (N characters) ...`` replaces its middle."""
    if len(line) <= most:
        return line
    ending = most // 3
    left = len(line) - most
    return f"{line[: most - ending]}... ({left:,} characters) ...{line[len(line) - ending :]}"


def escaped(text: str) -> str:
    r"""Escape control characters, and others that a terminal interprets, in Python's notation.

    >>> escaped("\x1b]0;title\x07 \u202e\ud800 é 文")
    '\\x1b]0;title\\x07 \\u202e\\ud800 é 文'
    """
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() or c in KEPT else c.encode("unicode_escape").decode() for c in text])


LONGEST, MOST_KNOWN = 200, 1_000
"""Limits on characters and on names for similarity search, which would take too long."""


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """The hint ``did you mean ...?`` with up to three ``known`` names like ``name``; else ``otherwise``."""
    length = len(name)
    alike = {one for one in known if 2 * min(length, len(one)) >= 0.6 * (length + len(one))} if length <= LONGEST else ()
    likely = sorted(alike, key=lambda one: (-_shared(name, one) - _shared(name[::-1], one[::-1]), one))
    near = close_to(name, likely[:MOST_KNOWN], 3, 0.6)
    return f"did you mean {' or '.join(repr(match) for match in near)}?" if near else otherwise


def close_to(name: str, known: Sequence[str], most: int, cutoff: float) -> list[str]:
    """Up to ``most`` of ``known`` that resemble ``name``, the most similar first.

    ``cutoff`` is the least similarity, as :func:`difflib.get_close_matches` defines it.
    """
    import difflib

    return difflib.get_close_matches(name, known, n=most, cutoff=cutoff) if len(name) <= LONGEST else []


def _shared(one: str, other: str) -> int:
    """Number of characters that two names have in common at their beginnings."""
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
