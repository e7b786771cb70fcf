"""The version of stored programs and what their writer and reader share; light to import."""

from __future__ import annotations

from symflops.diagnostics.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

FORMAT = 1
"""The version of the format. A reader refuses any other."""


class FormatError(SymflopsError):
    """A stored program is damaged, or of another version."""


def check_format(found: object) -> None:
    """Refuse a document of another version.

    Raises:
        FormatError: the version is not ``FORMAT``.
    """
    if found != FORMAT:
        raise FormatError(f"a stored program has format {found!r}, this version reads {FORMAT}")


def leading(module: str) -> tuple[str, ...]:
    """The modules that lead to ``module``: ``a.b`` to ``a``, ``a.b``."""
    words = module.split(".")
    return tuple(".".join(words[: count + 1]) for count in range(len(words)))


def line_of(document: Mapping[str, Any], row: Sequence[Any]) -> Sequence[Any]:
    """A row of the table of lines with its module's name, which may stand in an earlier row alone."""
    if not isinstance(row[0], int):
        return row
    name, _, *rest = document["all_lines"][row[0]]
    if isinstance(name, int):
        raise FormatError("a stored program is damaged: the name of a module stands in no line")
    return [name, row[1], *rest]
