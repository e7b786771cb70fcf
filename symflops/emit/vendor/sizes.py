"""The sizes of a vendored estimator, read from the config of the project that it is written for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from symflops.emit.code.language import Language
from symflops.emit.code.tables import needed
from symflops.emit.python.helpers import NullList, each
from symflops.emit.python.printer import PythonPrinter
from symflops.emit.python.tables import PYTHON
from symflops.emit.rendering import tuple_of
from symflops.emit.vendor.targets import Target
from symflops.model.formula import Formula, Num
from symflops.model.program import Field, Program

PRINT = PythonPrinter()
READ = '''def _field(config, names, default, *null):
    """The first of some fields that a config has; ``default`` if it has none, or ``null`` if one of them is None."""
    for name in names:
        value = config
        for word in name.split("."):
            value = value.get(word, ...) if hasattr(value, "get") else getattr(value, word, ...)
        if value is None:
            default = null[0] if null else default
        elif value is not ...:
            return value
    return default'''
LIST = '''def _list(value):
    """A list, or one that is null."""
    return _Null() if value is None else tuple(value)'''
ABSENT = {"number": "{} or 0", "count": "{} or 0", "rational": "{} or 0", "list": "_list({})"}
GIVEN = {"list": "tuple({})", "rational": "Fraction(repr({}))", "entries": "{0} if isinstance({0}, int) else len({0})"}


@dataclass(frozen=True)
class Reading:
    """How the estimator of a program reads a project's config.

    ``words`` say where it has a field, beside the project's own; ``values`` are those of sizes that it lacks, by letter.
    """

    program: Program
    target: Target
    words: Mapping[str, str]
    values: Mapping[str, Any] = field(default_factory=dict)

    def language(self) -> Language:
        """Python that reads sizes from the config."""
        return replace(PYTHON, size=self.size, given=lambda size: f"{self.found(size)} is not None")

    def word(self, size: Field) -> str:
        """The path of a field in a config with words of its own; empty if it has none."""
        known = {**self.target.words, **self.words}
        return next((known[key] for key in size.keys if key in known), "")

    def has(self, size: Field) -> bool:
        """Whether the config has a field."""
        return self.target.reads != "words" or bool(self.word(size))

    def size(self, size: Field) -> str:
        """The expression that reads a size."""
        form = ABSENT.get(size.kind, "{}") if size.nullable else GIVEN.get(size.kind, "{}")
        return form.format(self.found(size))

    def found(self, size: Field) -> str:
        """The expression that reads a field as it stands."""
        config = self.target.config
        if self.target.reads == "arguments":
            return self.of_word(size, argument_of(size))
        if self.target.reads == "words":
            return self.of_word(size, path_text(config, self.word(size))) if self.word(size) else repr(self.values[size.letter])
        plain = (size.default is None and size.required) or isinstance(size.default, Num)
        alone = len(size.keys) == 1 and not size.nullable and self.null(size) in ("", "None")
        if self.target.reads == "attributes" and plain and alone:
            return f"{config}.{size.keys[0]}"
        if size.required:
            return f"_field({config}, {tuple_of(size.keys)}, None)"
        null = self.null(size)
        if null == "None" and len(size.keys) == 1 and self.target.reads == "mapping" and "." not in size.keys[0]:
            return f'{config}.get("{size.keys[0]}", {self.default(size)})'
        return f"_field({config}, {tuple_of(size.keys)}, {self.default(size)}{f', {null}' if null else ''})"

    def of_word(self, size: Field, text: str) -> str:
        """A field under a word of the project; one that is None there has the default that other sizes make."""
        if size.nullable or is_plain(size.default):
            return text
        return f"{text} if {text} is not None else {self.default(size)}"

    def default(self, size: Field) -> str:
        """The default of a field as an expression."""
        return expression(size.default)

    def null(self, size: Field) -> str:
        """What a field is that the config has as null; empty if that is its default."""
        tables = absent_of(self.program)
        if any(key in tables for key in size.keys) or (not self.program.reading and size.null is None):
            return ""
        if size.null is not None:
            return expression(size.null)
        return "False" if size.kind == "flag" and not size.nullable else "None" if size.default is not None else ""

    def defaults(self, formulas: Iterable[Formula]) -> list[Formula]:
        """Formulas, and those that are the defaults of the sizes that they read."""
        found = list(formulas)
        while True:
            letters = needed(found, self.program)
            given = [
                value
                for size in self.program.fields
                if size.letter in letters
                for value in (size.default, size.null)
                if value is not None and not isinstance(value, (bool, str, tuple))
            ]
            more = [value for value in given if value not in found]
            if not more:
                return found
            found += more


def expression(value: Any) -> str:
    """A default as an expression."""
    return repr(value) if value is None or isinstance(value, (bool, str, tuple)) else PRINT.text(value)


def is_plain(default: Any) -> bool:
    """Whether a default is no formula of other sizes."""
    return default is None or isinstance(default, (bool, str, tuple, Num))


def argument_of(size: Field) -> str:
    """The name of the argument that holds a field."""
    return re.sub(r"\W", "_", size.keys[0])


def path_text(config: str, path: str) -> str:
    """A path in a config as code.

    >>> path_text("config", "len:layers")
    'len(config.layers)'
    """
    return f"len({config}.{path.removeprefix('len:')})" if path.startswith("len:") else f"{config}.{path}"


def absent_of(program: Program) -> set[str]:
    """The fields of a config of which null means the default, whichever class reads it."""
    reading: Any = program.reading or {}
    return {name for table in reading.get("tables", {}).values() for name in _absent(table, "")}


def _absent(table: Mapping[str, Any], place: str) -> Iterator[str]:
    yield from (f"{place}{name}" for name in table.get("absent", ()))
    for name, inner in table.get("parts", {}).items():
        yield from _absent(inner, f"{place}{name}.")


def helpers(text: str) -> list[str]:
    """The functions that the text of an estimator calls."""
    found = [READ] if "_field(" in text else []
    found += [source(NullList, "_Null"), LIST] if "_list(" in text else []
    return found + ([source(each, "_each")] if "_each(" in text else [])


def source(own: Any, name: str) -> str:
    """The source of a function or a class of generated modules, under another name."""
    text = inspect.getsource(own).strip().replace("Any", "object")
    return re.sub(rf"^(def|class) {own.__name__}\b", rf"\1 {name}", text)
