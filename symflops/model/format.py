"""The version of stored programs and what their writer and reader share; light to import."""

from __future__ import annotations

from symflops.diagnostics.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

FORMAT = 2
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


def packed(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document as a file holds it: names of shared fields once, and runs of positions by their ends."""
    columns: dict[tuple[str, ...], int] = {}
    rows = [[columns.setdefault(tuple(row), len(columns)), *row.values()] for row in document["work"]]
    regimes = [{key: _in_runs(value) for key, value in row.items()} for row in document["regimes"]]
    return {**document, "work": {"columns": list(map(list, columns)), "rows": rows}, "regimes": regimes}


def unpacked(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document that a file holds; one in memory stays as it is.

    Raises:
        FormatError: it is of another version.
        LookupError, TypeError, ValueError: it is damaged.
    """
    check_format(document.get("format"))
    if isinstance(document["work"], list):
        return document
    columns, limit = document["work"]["columns"], len(document["all_lines"]) + len(document["all_tensors"])
    rows = [dict(zip(columns[row[0]], row[1:], strict=True)) for row in document["work"]["rows"]]
    regimes = [{key: _out_of_runs(value, limit) for key, value in row.items()} for row in document["regimes"]]
    return {**document, "work": rows, "regimes": regimes}


def _in_runs(value: Any) -> Any:
    """A list of positions as first and last of each run of consecutive ones, if that is shorter."""
    if not isinstance(value, list):
        return value
    if not all(type(item) is int for item in value):
        return list(map(_in_runs, value))
    ends: list[int] = []
    for item in value:
        if ends and item == ends[-1] + 1:
            ends[-1] = item
        else:
            ends += [item, item]
    return {"runs": ends} if len(ends) + 2 < len(value) else value


def _out_of_runs(value: Any, limit: int) -> Any:
    """The inverse of :func:`_in_runs`; no run has more than ``limit`` positions."""
    if isinstance(value, list):
        return [item if type(item) is int else _out_of_runs(item, limit) for item in value]
    if not (isinstance(value, dict) and value.keys() == {"runs"}):
        return value
    ends = value["runs"]
    found: list[int] = []
    for first, last in zip(ends[::2], ends[1::2], strict=True):
        if not 0 <= last - first < limit:
            raise ValueError(f"a run from {first} to {last}")
        found += range(first, last + 1)
    return found


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
