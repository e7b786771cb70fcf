"""The class of a module that holds sizes: a field of the config each, with its default and its meaning."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from symflops.emit.code.infix import SUM
from symflops.emit.code.tables import Scope, Tables
from symflops.emit.python.lines import joined, packed, statement, wrapped
from symflops.emit.python.printer import SpacedPrinter
from symflops.emit.python.tables import PYTHON, size
from symflops.emit.rendering import tuple_text
from symflops.model.formula import Num
from symflops.model.program import Field, Program

TYPES = {"number": "int", "count": "int", "entries": "int", "position": "int", "flag": "bool", "text": "str"}
WIDTH = 116


def fields(program: Program) -> Iterator[str]:
    """A line per size."""
    fixed = dict(program.fixed)
    for field in program.fields:
        value = literal(fixed[field.letter]) if field.letter in fixed else default(field)
        kind = TYPES.get(field.kind, "Any") if is_plain(field) else "Any"
        line = f"{field.attribute}: {kind}{f' = {value}' if value else ''}"
        key = f" ({field.keys[0]})" if field.keys[0] != field.attribute else ""
        if len(line) > WIDTH:
            yield "# fmt: off"
            first, *more = wrapped(line, WIDTH - 4)
            told = f"# {field.letter}{f': {field.doc}' if field.doc else ''}"
            yield from (text if text[0] == "#" else f"# {text}" for text in wrapped(told, WIDTH - 2))
            yield from (first, *(f"    {part}" for part in more), "# fmt: on")
            continue
        told = f"# {field.letter}{f': {field.doc}' if field.doc else ''}{key}"
        if len(line) + len(told) + 2 <= WIDTH:
            yield f"{line}  {told}"
        else:
            yield from (text if text[0] == "#" else f"# {text}" for text in wrapped(told, WIDTH - 2))
            yield line


def default(field: Field) -> str:
    """The default of a size as far as a signature can show it; empty if it has none."""
    if field.default is None or not is_constant(field):
        return "" if field.required else "None"
    if isinstance(field.default, Num):
        value = field.default.value
        return str(value) if value.denominator == 1 else literal(value)
    return literal(field.default)


def is_constant(field: Field) -> bool:
    """Whether the default is a plain value."""
    return isinstance(field.default, (bool, str, tuple, Num))


def is_plain(field: Field) -> bool:
    """Whether a size is never null, and no other sizes are its default."""
    return not field.nullable and (field.required or is_constant(field))


def checks(program: Program) -> Iterator[str]:
    """The statements that set what other sizes decide, and refuse sizes that do not fit."""
    own = {field.letter: f"self.{field.attribute}" for field in program.fields}
    printer = SpacedPrinter(own)
    for field in program.fields:
        if field.kind == "rational":
            given = f" if {own[field.letter]} is not None else None" if not is_plain(field) else ""
            yield f"{own[field.letter]} = Fraction(str({own[field.letter]})){given}"
        if field.default is not None and not is_constant(field):
            text = printer.text(field.default)  # type: ignore[arg-type]
            yield f"if {own[field.letter]} is None:"
            value = f"bool({text})" if field.kind == "flag" else text
            yield from (f"    {line}" for line in statement(own[field.letter], value, WIDTH - 8))
    if program.requirements:
        null = "self.{0.attribute} is not None".format
        language = replace(PYTHON, printer=SpacedPrinter, size=partial(size, config="self"), given=null)
        scope = Scope(Tables(program, language), [one.formula for one in program.requirements])
        yield from joined(scope.statements, WIDTH - 8)
        for one in program.requirements:
            condition = statement_of(f"{scope.printer.inside(one.formula, SUM)} != 0")
            yield from (*condition, *raised(one.text.replace("{", "{{").replace("}", "}}")))
    if program.fixed:
        yield "for name, value in FIXED.items():"
        yield "    if getattr(self, name) != value:"
        yield "        raise ValueError(f\"this module is of models whose '{name}' is {value!r}, not {getattr(self, name)!r}\")"


def fixed(program: Program) -> Iterator[str]:
    """The sizes that decide the structure, as a dictionary."""
    attributes = {field.letter: field.attribute for field in program.fields}
    if program.fixed:
        yield "# fmt: off"
        yield "FIXED = {  # the sizes that decide the structure"
        yield from packed([f"{json.dumps(attributes[letter])}: {literal(value)}," for letter, value in program.fixed], WIDTH)
        yield "}"
        yield "# fmt: on"


def literal(value: object) -> str:
    """A value of a config as formatters write it."""
    if isinstance(value, tuple):
        return tuple_text([literal(item) for item in value])
    if isinstance(value, Fraction):
        return f'Fraction("{value}")'
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def statement_of(condition: str) -> list[str]:
    """The head of an ``if``, in parentheses if it takes several lines."""
    if len(condition) < WIDTH - 12:
        return [f"if {condition}:"]
    return ["if (", *(f"    {line}" for line in wrapped(condition, WIDTH - 16)), "):"]


def raised(text: str, values: Sequence[str] = ()) -> list[str]:
    """The statement that refuses something; ``values`` stand in the text in the places of ``{0}``, ``{1}``, ..."""
    given = f".format({', '.join(values)})" if values else ""
    whole = json.dumps(text if values else text.replace("{{", "{").replace("}}", "}"), ensure_ascii=False)
    if len(whole) + len(given) < WIDTH - 26:
        return [f"    raise ValueError({whole}{given})"]
    parts = textwrap.wrap(whole[1:-1], WIDTH - 20, break_long_words=False, break_on_hyphens=False, drop_whitespace=False)
    first = [f'"{part}"' for part in parts]
    end = wrapped(given, WIDTH - 16)
    return ["    raise ValueError(", *(f"        {part}" for part in (*first, *end)), "    )"]
