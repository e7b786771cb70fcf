"""Converts a program to JSON and back: versioned plain data, the same bytes on every machine.

Formulas are one table of nodes that refer to each other by position, so that equal parts are written once. Lines, tensors,
amounts and gradients, which regimes share, have one table each; so do the fields that lines of different modules share. A
field with its default value is omitted. Later lines of a module refer to its first line for the module's name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, cast, get_args, get_origin

from symflops.formula import formula as nodes
from symflops.ir.format import FORMAT, FormatError, leading, line_of, packed, unpacked
from symflops.ir.program import Amount, ConventionRow, GradientLine, Line, Program, RegimeLines, Tensor

TABLES: Mapping[type, str] = {Line: "all_lines", Tensor: "all_tensors", Amount: "all_amounts", GradientLine: "all_gradients"}
DERIVED: Mapping[tuple[type, str], Callable[[Any], object]] = {
    (Line, "within"): lambda line: leading(line["module"]),
    (Tensor, "template"): lambda tensor: (tensor["name"],),
    (RegimeLines, "trains"): lambda regime: (True,) * len(regime["tensors"]),
}
"""Fields whose default follows from another field."""
SHARED: Mapping[type, tuple[str, str, tuple[str, ...]]] = {
    Line: ("work", "module", ("within",)),
    Tensor: ("shapes", "name", ("template", "ranges")),
}
"""Record type -> the table of its shared fields, the field that names a row, and its other unshared fields."""
FORMULAS = frozenset(
    (nodes.Num, nodes.Sym, nodes.Text, nodes.Sum, nodes.Prod, nodes.Power, nodes.Apply, nodes.Bracket, nodes.TallyOf)
)


COLUMNS = {
    "pairs": "pairs", "lengths": "lengths", "unseen": "unseen", "units": "unit",
    "exceptions": "exception", "shares": "shares", "pages": "page",
}  # fmt: skip
"""Key of a document -> field of a convention row; the last three columns omit default values."""
KEYS = (
    "name", "title", "references", "model_types", "pipelines", "sources", "fields", "definitions", "streams", "inputs",
    "moments", "amounts", "tensors", "parameters", "regimes", "cases", "conventions", "pairs", "lengths", "unseen", "loops",
    "fixed", "statistics", "units", "variant", "reading", "inner", "conditions", "expected", "census", "exceptions",
    "requirements", "shares", "pages",
)  # fmt: skip
"""The keys of a document after its tables, in order."""


def document_of(program: Program) -> dict[str, Any]:
    """Convert a program to a document: nested dicts and lists that :mod:`json` can write."""
    writer = _Writer()
    body = writer.record(program) | _columns(program.rows)
    return {"format": FORMAT, "formulas": writer.formulas.rows, **writer.tables} | {
        key: body[key] for key in KEYS if key in body
    }


def _columns(rows: Sequence[ConventionRow]) -> dict[str, Any]:
    """Convert convention rows to columns: key of the document -> [convention, value] pairs.

    The key ``conventions`` has the names of all conventions. A column without entries is left out.
    """
    found: dict[str, Any] = {"conventions": [row.name for row in rows]}
    for key, name in COLUMNS.items():
        values = [[row.name, getattr(row, name)] for row in rows]
        needless = ("", 1) if key in ("exceptions", "shares", "pages") else ()
        found[key] = [pair for pair in values if pair[1] not in needless]
    return {key: column for key, column in found.items() if column}


def _rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert the columns of a document back to convention rows, each a dict of fields."""
    columns = {name: dict(document.get(key, ())) for key, name in COLUMNS.items()}
    return [
        {"name": convention, **{name: column[convention] for name, column in columns.items() if convention in column}}
        for convention in document["conventions"]
    ]


def text_of(document: Mapping[str, Any]) -> str:
    """The compressed JSON text of a document from :func:`document_of`, with one line per table row."""
    return _in_rows(packed(document)) + "\n"


def _in_rows(document: Mapping[str, Any]) -> str:
    """The JSON text of an object; each item of a long list gets a line of its own."""
    entries = []
    for key, value in document.items():
        text = _in_rows(value) if isinstance(value, dict) and "rows" in value else _dump(value)
        if isinstance(value, list) and len(text) > 100:
            text = "[\n" + ",\n".join(_dump(item) for item in value) + "\n]"
        entries.append(f"{_dump(key)}:{text}")
    return "{\n" + ",\n".join(entries) + "\n}"


def program_of(document: Mapping[str, Any]) -> Program:
    """Convert a document from :func:`document_of`, compressed or not, back to the program.

    Raises:
        FormatError: the document is damaged, or of another format version.
    """
    try:
        document = unpacked(document)
        program: Program = _Reader(document).record(Program, {**document, "rows": _rows(document)})
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise FormatError(f"a stored program is damaged: {type(error).__name__}: {error}") from None
    return program


_dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Form(NamedTuple):
    """How one field of a record is stored.

    Attributes:
        name: The name of the field.
        default: The value that is not written.
        derived: Function that computes the default from the fields before it; None if the default is constant.
        is_open: Whether its type admits any value of a config.
        hint: Its type.
    """

    name: str
    default: Any
    derived: Callable[[Any], object] | None
    is_open: bool
    hint: Any


@cache
def _forms(kind: Any) -> tuple[Form, ...]:
    """How each field of the dataclass ``kind`` is stored; fields with ``compare=False`` are not."""
    return tuple(
        Form(field.name, field.default, DERIVED.get((kind, field.name)), _is_open(cast(Any, field.type)), field.type)
        for field in fields(kind)
        if field.compare
    )


class _Writer:
    """Converts records and formulas to JSON data, in tables in which equal ones share one row."""

    def __init__(self) -> None:
        self.formulas = nodes.Table()
        self.tables: dict[str, list[Any]] = {
            name: [] for name in (*TABLES.values(), *(table for table, _, _ in SHARED.values()))
        }
        self.known: dict[tuple[str, str], int] = {}
        self.seen: dict[int, tuple[Any, int]] = {}  # by identity: hashing a line walks through all of it
        self.heads: dict[str, int] = {}  # (module name, unshared fields) as text -> position of its first line

    def value(self, value: Any) -> Any:
        """JSON data for a field's value; formulas, and records of types with a table, become table positions."""
        kind = type(value)
        if kind in FORMULAS:
            return self.formulas.add(value)
        if kind is tuple:
            return [self.value(item) for item in value]
        if kind in TABLES:
            return self.row(value)
        return self.record(value) if is_dataclass(kind) else value

    def record(self, record: Any) -> dict[str, Any]:
        """Convert a record to a dict of those fields that differ from their defaults."""
        found: dict[str, Any] = {}
        for name, default, derived, is_open, _ in _forms(cast(Any, type(record))):
            value = getattr(record, name)
            default = derived(found) if derived else default
            if value is not default and (value != default or type(value) is not type(default)):
                found[name] = self.plain(value) if is_open else self.value(value)
        return found

    def plain(self, value: Any) -> Any:
        """JSON data for a config value; a formula or a Fraction becomes a dict whose key names the type."""
        if type(value) in FORMULAS:
            return {"formula": self.formulas.add(value)}
        if isinstance(value, Fraction):
            return {"fraction": str(value)}
        return [self.plain(item) for item in value] if isinstance(value, tuple) else value

    def row(self, record: Any) -> int:
        """The position of a record in the table of its type; a record not yet in the table is added."""
        if id(record) not in self.seen:
            row = self.split(record, self.record(record))
            self.seen[id(record)] = (record, self.position(TABLES[type(record)], row))
        return self.seen[id(record)][1]

    def position(self, name: str, row: Any) -> int:
        """The position of a row in the table ``name``; a row without an equal one in the table is added."""
        table, key = self.tables[name], (name, repr(row))
        position = self.known.setdefault(key, len(table))
        if position == len(table):
            table.append(row)
        return position

    def split(self, record: Any, row: dict[str, Any]) -> Any:
        """Convert the dict ``row`` of a record's fields to its table row: [name, position of shared fields].

        A third entry has the other unshared fields, if any. A later line of a module has the position of the module's first
        line in place of name and third entry. For a record of a type without shared fields, the result is ``row`` itself.
        """
        if type(record) not in SHARED:
            return row
        shared, name, own = SHARED[type(record)]
        rest = {key: row.pop(key) for key in own if key in row}
        head, position = row.pop(name), self.position(shared, row)
        found = [head, position, rest] if rest else [head, position]
        if type(record) is not Line:
            return found
        table = self.tables[TABLES[Line]]
        first = self.heads.setdefault(repr((head, rest)), len(table))
        return found if first == len(table) or table[first] == found else [first, position]


@cache
def _is_open(hint: Any) -> bool:
    """Whether a field of type ``hint`` can contain any config value: the type is, or contains, ``object``."""
    return hint is object or any(_is_open(part) for part in get_args(hint))


class _Reader:
    """Converts JSON data to records, by the types of their fields; each table row is converted once."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.formulas = nodes.formulas_of(document["formulas"])
        self.rows: dict[tuple[str, int], Any] = {}

    def record(self, kind: type, given: Mapping[str, Any]) -> Any:
        """Build a record of type ``kind`` from a dict of its stored fields; the others get their defaults."""
        found = {form.name: self.value(form.hint, given[form.name]) for form in _forms(kind) if form.name in given}
        more = {name: derived(found) for (of, name), derived in DERIVED.items() if of is kind and name not in found}
        return kind(**found, **more)

    def value(self, hint: Any, given: Any) -> Any:
        """Convert JSON data to the value of a field whose type is ``hint``."""
        if _is_open(hint):
            return self.plain(given)
        if hint == nodes.Formula:
            return self.formulas[_index(given)]
        if hint in TABLES:
            return self.row(hint, _index(given))
        if isinstance(hint, type) and is_dataclass(hint):
            return self.record(hint, given)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is UnionType:
            kept = [part for part in arguments if part not in (str, NoneType)]  # of several, data is of the formula type
            return given if type(given) in arguments else self.value(kept[0] if len(kept) == 1 else nodes.Formula, given)
        if origin is tuple:
            kinds = [arguments[0]] * len(given) if arguments[1:] == (...,) else arguments
            return tuple(self.value(inner, item) for inner, item in zip(kinds, given, strict=True))
        if type(given) is not hint:
            raise TypeError(f"{given!r} is no {hint}")
        return given

    def plain(self, given: Any) -> Any:
        """The config value for JSON data from :meth:`_Writer.plain`; a list becomes a tuple."""
        match given:
            case {"formula": position}:
                return self.formulas[_index(position)]
            case {"fraction": text}:
                return Fraction(text)
            case list():
                return tuple(self.plain(item) for item in given)
        return given

    def row(self, kind: type, position: int) -> Any:
        """The record of type ``kind`` at ``position`` in the table for that type."""
        key = (TABLES[kind], position)
        if key not in self.rows:
            self.rows[key] = self.record(kind, self.joined(kind, self.document[key[0]][position]))
        return self.rows[key]

    def joined(self, kind: type, row: Any) -> dict[str, Any]:
        """The dict of a record's fields from its table row; the inverse of :meth:`_Writer.split`."""
        if kind not in SHARED:
            return dict(row)
        shared, name, _ = SHARED[kind]
        head, position, *rest = line_of(self.document, row) if kind is Line else row
        return {name: head, **self.document[shared][_index(position)], **(rest[0] if rest else {})}


def _index(position: Any) -> int:
    if type(position) is not int or position < 0:
        raise ValueError(f"{position!r} is no position")
    return position
