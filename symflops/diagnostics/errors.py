"""What a user did wrong, as exceptions; light to import, for the commands that answer at once."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class SymflopsError(Exception):
    """What a user did cannot be carried out; the message says what and why. ``exit_code`` is that of the command line."""

    exit_code = 2


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint that names the nearest of ``known``, or ``otherwise``."""
    import difflib

    near = difflib.get_close_matches(name, sorted(set(known)), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(match) for match in near)}?" if near else otherwise
