"""The Python target: a module for Python 3.10 and later, which imports the machinery or, stand-alone, holds it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from symflops.emit.code.batches import columns, stream_groups, stream_rows
from symflops.emit.code.tables import Function, Tables
from symflops.emit.grouping import grouped
from symflops.emit.python.batch import figure, grows, joined, methods, quick, signature
from symflops.emit.python.closed_forms import closed_forms
from symflops.emit.python.machinery import IMPORTS, machinery, with_imports
from symflops.emit.python.printer import PythonPrinter
from symflops.emit.python.tables import PYTHON
from symflops.emit.python.work import Chosen, tensor_tables, work_table
from symflops.emit.rendering import template, tuple_of, tuple_text
from symflops.model.formula import Formula, Num
from symflops.model.program import Field, Program
from symflops.model.verification import Verification
from symflops.runtime.classes import class_name

KINDS = ("guarded", "words")
EMPTY = ("()", "{}", "False")
PRINT = PythonPrinter()
TYPES = {
    "number": "int", "count": "int", "entries": "int", "position": "int", "rational": "Fraction", "flag": "bool",
    "text": "str", "list": "tuple[Any, ...]", "number or list": "Any", "any": "Any",
}  # fmt: skip


def render(program: Program, version: str, verified: Sequence[Verification] = (), standalone: bool = False) -> str:
    """The module of ``program``; the derivation page says what it was verified against.

    A module imports what all modules share, unless it is ``standalone``: then it holds that text.
    """
    tables = Tables(program, PYTHON)
    work, regimes = work_table(tables)
    counts, tensors = tensor_tables(tables)
    context = head_context(program) | size_context(program) | batch_context(program, tables)
    text = template("estimator.py.jinja").render(
        program=program,
        version=version,
        regime_names=[regime.name for regime in program.regimes],
        machinery=machinery() if standalone else "",
        imports=IMPORTS,
        functions=[replace(work, statements=joined(work.statements)), *map(compact, counts)],
        columns=column_titles(regimes),
        regimes=[(name, one, tensors[name]) for name, one in regimes.items()],
        settings=settings(program, tables),
        methods=methods(program, tables),
        **context,
    )
    return text if standalone else with_imports(text)


def compact(function: Function) -> Function:
    """A function that counts parameters, with short blocks in one line."""
    blocks = []
    for name, rows in function.blocks:
        line = re.sub("  +", " ", " ".join(rows)).rstrip(",")
        blocks.append((name, [line] if len(line) < 80 else rows))
    return replace(function, statements=joined(function.statements), blocks=blocks)


def head_context(program: Program) -> dict[str, Any]:
    """The names of the template for the docstring and the constants of a module."""
    formulas, counts = closed_forms(program)
    return {
        "formulas": formulas,
        "definitions": [*(f"{item.letter} = {PRINT.text(item.formula)}" for item in program.definitions), *counts],
        "moments": [(moment, PRINT.text(moment.formula)) for moment in program.moments],
        "moment_sets": [(moment.name, moment.items) for moment in program.moments],
        "moment_names": [moment.name for moment in program.moments],
        "moments_kept": filled([*(moment.name for moment in program.moments), "padded", "lengths"], 32, ", "),
        "moment_arguments": "".join(f"{moment.name}: int = 0, " for moment in program.moments),
        "fixed": fixed_fields(program),
    }


def size_context(program: Program) -> dict[str, Any]:
    """The names of the template for sizes and the reading of configs."""
    found = arguments(program)
    computed = [(field.attribute, default(field, program)) for field, _, value in found if value == "None"]
    return {
        "fields": filled([f"{field_row(field)}," for field in program.fields], 104),
        "config": config_rows(program),
        "arguments": found,
        "derived": [(name, text) for name, text in computed if text != "None"],
        "assigned": assigned(program),
        "fractions": any(field.kind == "rational" for field in program.fields),
        "census": census_rows(program),
    }


def field_row(field: Field) -> str:
    """A size as the arguments of ``field_of``: the attribute, its kind, keys that are not its name, the kind of items."""
    keys = () if field.keys == (field.attribute,) else field.keys
    cells = [json.dumps(field.attribute), json.dumps(field.kind)]
    cells += [tuple_of(keys)] if keys or field.items else []
    return tuple_text([*cells, json.dumps(field.items)] if field.items else cells)


def assigned(program: Program) -> list[str]:
    """Statements that keep the sizes, a few in each line."""
    names = filled([field.attribute for field in program.fields], 44, ", ")
    return [f"{', '.join(f'self.{name}' for name in line.split(', '))} = {line}" for line in names]


def filled(cells: Iterable[str], width: int, between: str = " ") -> list[str]:
    """Cells as lines of at most ``width`` characters, or of one cell."""
    lines: list[str] = []
    for cell in cells:
        if lines and len(lines[-1]) + len(between) + len(cell) <= width:
            lines[-1] += between + cell
        else:
            lines.append(cell)
    return lines


def config_rows(program: Program) -> list[tuple[str, str]]:
    """What a module says of the configs that it reads, as source code by name."""
    nulls = ", ".join(f"{json.dumps(attribute)}: lambda sizes: {text}" for attribute, text in null_values(program))
    rows = {
        "classes": tuple_of(dict.fromkeys(map(class_name, program.references))),
        "model_types": tuple_of(program.model_types),
        "required": tuple_of(field.attribute for field in program.fields if field.required),
        "nullable": tuple_of(field.attribute for field in program.fields if field.nullable and not field.required),
        "nulls": f"{{{nulls}}}",
        "reading": repr(program.reading or {}),
    }
    return [(name, text) for name, text in rows.items() if text not in EMPTY]


def column_titles(regimes: Mapping[str, Chosen]) -> str:
    """Says what the columns of the work are."""
    kinds = [", ".join(names) for names in grouped((one.column, name) for name, one in regimes.items()).values()]
    told = "times forward, times each operand's gradient, times forward again, and what stands behind the module's name"
    return f"then for {'; for '.join(kinds)}: {told}"


def settings(program: Program, tables: Tables) -> list[tuple[str, str]]:
    """The attributes of an estimator that differ from those of its base, as source code by name."""
    hidden = {
        regime.name: tuple(place for place, line in enumerate(regime.lines) if not line.seen) for regime in program.regimes
    }
    inner = [length.formula for length in program.inner]
    pairs, lengths, unseen = dict(program.pairs), dict(program.lengths), dict(program.unseen)
    told = [f'"{name}": ("{pairs[name]}", "{lengths[name]}", {unseen[name]})' for name in program.conventions]
    found = {
        "sized": repr(any(moment.sizes for moment in program.moments)),
        "fixed": repr(tuple((field.attribute, value) for field, value in fixed_fields(program))),
        "conventions": f"{{{', '.join(told)}}}",
        "hidden": repr(hidden) if any(hidden.values()) else "{}",
        "inner_sets": tuple_of(length.items for length in program.inner),
        "inner_sized": repr(bool(tables.letters(inner))),
        "growing": repr(bool(inner) and all(grows(formula, set(columns(program))) for formula in inner)),
    }
    return [(name, text) for name, text in found.items() if text not in EMPTY]


def census_rows(program: Program) -> list[tuple[str, str]]:
    """Per class its guarded fields, and its fields of words, as source code."""
    known_of: Any = program.census or {}
    rows = ((name, {kind: entry[kind] for kind in KINDS if entry.get(kind)}) for name, entry in known_of.items())
    return [(json.dumps(name), repr(entry)) for name, entry in rows if entry]


def batch_context(program: Program, tables: Tables) -> dict[str, Any]:
    """The names of the template for batches and their moments."""
    streams = stream_rows(program)
    plain_lists, plain_columns = quick(program)
    return {
        "signature": signature(program),
        "streams": streams,
        "given": "{" + ", ".join(f'"{name}": {name}' for name, *_ in streams) + "}",
        "groups": stream_groups(program),
        "ones": [stream.name for stream in program.streams if stream.absent],
        "figures": [(item, figure(item, program), PRINT.text(item.formula)) for item in program.statistics],
        "sized": any(moment.sizes for moment in program.moments),
        "quick": plain_lists,
        "quick_columns": plain_columns,
        "few": f"len({streams[0][0]}) < 100" if plain_lists and not program.inner else "",
    }


def fixed_fields(program: Program) -> list[tuple[Field, object]]:
    """The sizes that decide the structure, with their values."""
    return [(field, value) for letter, value in program.fixed for field in program.fields if field.letter == letter]


def fixed_sizes(program: Program) -> dict[str, str]:
    """The sizes that decide the structure, by their names in code, as texts that a look-up compares."""
    return {size.attribute: repr(value) for size, value in fixed_fields(program)}


def default(field: Field, program: Program) -> str:
    """The default of a size as an expression of the other arguments; empty if it has none."""
    if field.default is None:
        return "" if field.required else "None"
    if isinstance(field.default, (bool, str, tuple)):
        return repr(field.default)
    names = {other.letter: other.attribute for other in program.fields}
    return PythonPrinter(names).text(field.default)


def null_values(program: Program) -> list[tuple[str, str]]:
    """The sizes that a null sets, each with its value as an expression of the other sizes."""
    found = []
    for field in program.fields:
        if field.null is not None:
            printer = PythonPrinter({other.letter: f"sizes.{other.attribute}" for other in program.fields})
            plain = isinstance(field.null, (bool, str, tuple))
            found.append((field.attribute, repr(field.null) if plain else printer.text(cast("Formula", field.null))))
    return found


def is_constant(field: Field) -> bool:
    """Whether the default is a plain value, which a signature can show."""
    return isinstance(field.default, (bool, str, tuple, Num))


def arguments(program: Program) -> list[tuple[Field, str, str]]:
    """Each size with its type and its default in the signature; an empty default marks a required size."""
    found = []
    for field in program.fields:
        kind = TYPES[field.kind]
        if field.required:
            found.append((field, kind, ""))
        elif is_constant(field):
            value = default(field, program)
            kind += " | None" if field.nullable else ""
            found.append((field, kind, f"Fraction({value!r})" if field.kind == "rational" else value))
        else:
            found.append((field, f"{kind} | None", "None"))
    return found
