"""Format version of stored programs, and the compression that their writer and reader share; light to import."""

from __future__ import annotations

from itertools import takewhile

from symflops.support.errors import SymflopsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

FORMAT = 3
"""The version of the format. A reader refuses any other."""


class FormatError(SymflopsError):
    """The error for a stored program that is damaged, or of another format version."""


TABLES = ("work", "all_gradients", "shapes")
"""Tables of records that a file stores as rows, without field names."""
WORDS = ("contraction", "operator", "caption", "role", "operand", "kind", "reason")
"""Fields of those records whose texts a file stores once."""
NAMES, LONGEST = ("all_lines", "all_tensors"), 1000
"""Tables whose rows begin with a name, and the longest prefix that a name may share with its predecessor."""


def packed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Compress the document of a program; :func:`unpacked` is the inverse.

    Repeated texts are stored once, names lose the prefix that they share with the name before, and runs of consecutive
    positions are stored as their first and last position.
    """
    words: dict[str, int] = {}
    ranges: dict[str, tuple[int, Any]] = {}
    found = {**document, **{name: _in_columns(document[name], words) for name in TABLES}}
    found["all_tensors"] = [_in_place(row, ranges) for row in document["all_tensors"]]
    found |= {name: list(_shortened(found[name])) for name in NAMES}
    found["regimes"] = [{key: _in_runs(value) for key, value in row.items()} for row in document["regimes"]]
    return {**found, "words": list(words), "ranges": [value for _, value in ranges.values()]}


def unpacked(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Decompress a document; one that is not compressed is returned unchanged.

    Raises:
        FormatError: it is of another version.
        LookupError, TypeError, ValueError: it is damaged.
    """
    if document.get("format") != FORMAT:
        raise FormatError(f"a stored program has format {document.get('format')!r}, this version reads {FORMAT}")
    if isinstance(document["work"], list):
        return document
    limit = len(document["all_lines"]) + len(document["all_tensors"])
    found = dict(document)
    words, ranges = found.pop("words"), found.pop("ranges")
    found |= {name: list(_out_of_columns(document[name], words)) for name in TABLES}
    found |= {name: list(_whole(document[name])) for name in NAMES}
    found["all_tensors"] = [_out_of_place(row, ranges) for row in found["all_tensors"]]
    found["regimes"] = [{key: _out_of_runs(value, limit) for key, value in row.items()} for row in document["regimes"]]
    return found


def _in_columns(rows: Sequence[Mapping[str, Any]], words: dict[str, int]) -> dict[str, Any]:
    """Convert a list of dicts to a table that has the field names only once.

    ``words`` collects texts that are stored once: text -> position. The result has ``columns``, the distinct lists of field
    names, and ``rows``: position in ``columns``, then the values.
    """
    columns: dict[tuple[str, ...], int] = {}
    found = [
        [
            columns.setdefault(tuple(row), len(columns)),
            *(words.setdefault(v, len(words)) if k in WORDS else v for k, v in row.items()),
        ]
        for row in rows
    ]
    return {"columns": list(map(list, columns)), "rows": found}


def _out_of_columns(table: Mapping[str, Any], words: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the dicts of a table of :func:`_in_columns`, field name -> value.

    A cell of the table has the value, or, if the field is one of ``WORDS``, the position of the value in ``words``.
    """
    for place, *values in table["rows"]:
        pairs = zip(table["columns"][place], values, strict=True)
        yield {name: words[value] if name in WORDS else value for name, value in pairs}


def _shortened(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Abbreviate the name that begins each row: ``12~abc`` has the first 12 letters of the last name.

    A row that begins with a number instead of a name is unchanged.
    """
    last = ""
    for name, *rest in rows:
        if isinstance(name, str):
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name[:LONGEST], last, strict=False)))
            name, last = f"{same or ''}~{name[same:]}", name
        yield [name, *rest]


def _whole(rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Yield rows of :func:`_shortened` with their full names."""
    last = ""
    for name, *rest in rows:
        if isinstance(name, str):
            same, _, own = name.partition("~")
            if not 0 <= int(same or 0) <= LONGEST:
                raise ValueError(f"{name!r} is no name")
            name = last = last[: int(same or 0)] + own
        yield [name, *rest]


def _in_place(row: Sequence[Any], ranges: dict[str, tuple[int, Any]]) -> Sequence[Any]:
    """Compress a tensor's row: its template becomes the formulas for the stars in its name.

    ``ranges`` collects the index ranges of tensors, each stored once: text -> (position, ranges). The row refers to a position.
    """
    if len(row) < 3:
        return row
    formulas = [part for part in row[2]["template"] if not isinstance(part, str)]
    found = row[2].get("ranges")
    return [*row[:2], formulas, ranges.setdefault(repr(found), (len(ranges), found))[0]]


def _out_of_place(row: Sequence[Any], ranges: Sequence[Any]) -> Sequence[Any]:
    """The row of a tensor before :func:`_in_place`; ``ranges`` are the index ranges by position."""
    if len(row) < 4:
        return row
    name, shape, formulas, place = row
    parts = [part for pair in zip(name.split("*"), [*formulas, ""], strict=True) for part in pair if part != ""]
    return [name, shape, {"template": parts} | ({"ranges": ranges[place]} if ranges[place] else {})]


def _in_runs(value: Any) -> Any:
    """Encode a list of positions as the first and last of each consecutive run, if that is shorter.

    Lists inside a list are encoded one by one; any other value is unchanged.
    """
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
    """The value before :func:`_in_runs`; a run of more than ``limit`` positions is refused as damage."""
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
    """The module paths that lead to ``module``, itself last: ``a`` and ``a.b`` for ``a.b``."""
    words = module.split(".")
    return tuple(".".join(words[: count + 1]) for count in range(len(words)))


def line_of(document: Mapping[str, Any], row: Sequence[Any]) -> Sequence[Any]:
    """The row of a line, with an earlier line's position at its start replaced by that line's module name."""
    if not isinstance(row[0], int):
        return row
    name, _, *rest = document["all_lines"][row[0]]
    if isinstance(name, int):
        raise FormatError("a stored program is damaged: the name of a module stands in no line")
    return [name, row[1], *rest]
