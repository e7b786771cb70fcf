"""The Python target: a module for Python 3.10 and later, which imports the machinery or, stand-alone, holds it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any, cast

from symflops.emit.code.batches import columns, stream_rows
from symflops.emit.code.tables import Function, Tables
from symflops.emit.grouping import grouped
from symflops.emit.python.batch import grows, joined, methods, signature
from symflops.emit.python.machinery import IMPORTS, machinery, with_imports
from symflops.emit.python.parts import constants, docstring, exported, function_text, quick_lines, stream_docs, unit_words
from symflops.emit.python.printer import PythonPrinter
from symflops.emit.python.tables import PYTHON
from symflops.emit.python.work import Chosen, Work, tensor_tables, work_tables
from symflops.emit.rendering import template, tuple_of, tuple_text
from symflops.model.formula import Bracket, Formula, Num, Sym
from symflops.model.program import Field, Program
from symflops.model.verification import Verification
from symflops.runtime.classes import class_name

KINDS = ("guarded", "words")
EMPTY = ("()", "{}", "False")
TYPES = {
    "number": "int", "count": "int", "entries": "int", "position": "int", "rational": "Fraction", "flag": "bool",
    "text": "str", "list": "tuple[Any, ...]", "number or list": "Any", "any": "Any",
    "number, list, same or valid": "Any",
}  # fmt: skip


def render(program: Program, version: str, verified: Sequence[Verification] = (), standalone: bool = False) -> str:
    """The module of ``program``; the derivation page says what it was verified against.

    A module imports what all modules share, unless it is ``standalone``: then it holds that text.
    """
    tables = Tables(program, PYTHON)
    works = work_tables(tables)
    regimes = works[0].regimes
    counts, tensors = tensor_tables(tables)
    text = template("python/module.py.jinja").render(
        program=program,
        version=version,
        option=" --standalone" if standalone else "",
        imports=imports(program, machinery() if standalone else IMPORTS),
        functions=[
            *(function_text(table_of(work), column_titles(work.regimes), unit_words(program)) for work in works),
            *(function_text(compact(function)) for function in counts),
        ],
        regimes=[(name, regimes[name], tensors[name]) for name in tensors],
        settings=settings(program, tables),
        own=[own_columns(name, work) for work in works for name in work.conventions if name],
        methods=methods(program, tables),
        **head_context(program),
        **size_context(program),
        **batch_context(program),
    )
    return text if standalone else with_imports(text)


def imports(program: Program, rest: str) -> str:
    """What a module imports."""
    fractions = any(field.kind == "rational" for field in program.fields)
    return f"from fractions import Fraction\n\n{rest}" if fractions else rest


def compact(function: Function) -> Function:
    """A function that counts parameters, with short blocks in one line."""
    blocks = []
    for name, rows in function.blocks:
        line = re.sub("  +", " ", " ".join(rows)).rstrip(",")
        blocks.append((name, [line] if len(line) < 80 else rows))
    return replace(function, statements=joined(function.statements), blocks=blocks)


def head_context(program: Program) -> dict[str, Any]:
    """The names of the templates for the head of a module and for its moments."""
    kept = filled([*(moment.name for moment in program.moments), "padded", "lengths"], 32, ", ")
    partly = ", some of which (``WHOLE``) are of it as a whole"
    return {
        "told": docstring(program),
        "exported": exported(program),
        "constants": constants(program),
        "moments_doc": f"Sums over the items of one batch{partly}" if program.statistics else "Sums over the items of a batch",
        "moment_names": [moment.name for moment in program.moments],
        "moment_arguments": "".join(f"{moment.name}: int = 0, " for moment in program.moments),
        "moments_kept": list(map(kept_line, kept)),
        "whole": [
            *(["_whole = WHOLE"] if program.statistics else []),
            *([f"_always = {tuple_of(program.padded_sums)}"] if program.padded_sums else []),
        ],
    }


def kept_line(names: str) -> str:
    """The statement that keeps arguments as attributes."""
    return f"{', '.join(f'self.{name}' for name in names.split(', '))} = {names}"


def size_context(program: Program) -> dict[str, Any]:
    """The names of the template for sizes and the reading of configs."""
    found = arguments(program)
    computed = [(field.attribute, default(field, program)) for field, _, value in found if value == "None"]
    derived = [line for name, text in computed if text != "None" for line in (f"if {name} is None:", f"    {name} = {text}")]
    kept = filled([field.attribute for field in program.fields], 44, ", ")
    return {
        "fields": filled([f"{field_row(field)}," for field in program.fields], 120),
        "config": config_rows(program),
        "arguments": ["*,", *starmap(argument_line, found)] if found else [],
        "assigned": [*derived, *(map(kept_line, kept) if kept else ["pass"])],
        "census": census_lines(program),
    }


def argument_line(field: Field, kind: str, value: str) -> str:
    """A size in the signature, with its meaning."""
    told = f"{field.letter}: {field.doc}" if field.doc else field.letter
    return f"{field.attribute}: {kind}{f' = {value}' if value else ''},  # {told}"


def field_row(field: Field) -> str:
    """A size as the arguments of ``field_of``: the attribute, its kind, keys that are not its name, the kind of items."""
    keys = () if field.keys == (field.attribute,) else field.keys
    cells = [json.dumps(field.attribute), json.dumps(field.kind)]
    cells += [tuple_of(keys)] if keys or field.items else []
    return tuple_text([*cells, json.dumps(field.items)] if field.items else cells)


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


def table_of(work: Work) -> Function:
    """The function of some work, with several sizes read in a line."""
    return replace(work.function, statements=joined(work.function.statements))


def own_columns(convention: str, work: Work) -> tuple[str, str]:
    """What a convention with rules of its own takes of its work, by regime."""
    function = work.function.name
    cells = [f'"{name}": ({function}, {one.column}, {one.gradients}, {one.recomputed})' for name, one in work.regimes.items()]
    return convention, f"{{{', '.join(cells)}}}"


def column_titles(regimes: Mapping[str, Chosen]) -> str:
    """Says what the columns of the work are."""
    kinds = [", ".join(names) for names in grouped((one.column, name) for name, one in regimes.items()).values()]
    told = "times forward, times each operand's gradient, times forward again, and what stands behind the module's name"
    return f"then for {'; for '.join(kinds)}: {told}"


def settings(program: Program, tables: Tables) -> list[str]:
    """The statements that set the attributes of an estimator that differ from those of its base."""
    hidden = {
        regime.name: tuple(place for place, line in enumerate(regime.lines) if not line.seen) for regime in program.regimes
    }
    inner, names = [length.formula for length in program.inner], set(columns(program))
    checked = [*inner, *(value for one in program.inner for value in one.values)]
    for one in program.conditions:
        checked += [one.formula, *one.values, *(statistic.formula for statistic in one.statistics)]
    growing = bool(inner) and all(grows(formula, names) for formula in inner)
    falling = [grows(formula, names) or grows(formula, names, down=True) for formula in inner]
    pairs, lengths, unseen = dict(program.pairs), dict(program.lengths), dict(program.unseen)
    told = [f'"{name}": ("{pairs[name]}", "{lengths[name]}", {unseen[name]})' for name in program.conventions]
    found = {
        "sized": repr(any(moment.sizes for moment in program.moments)),
        "fixed": repr(tuple((field.attribute, value) for field, value in fixed_fields(program))),
        "conventions": f"{{{', '.join(told)}}}",
        "units": repr({name: unit for name, unit in program.units if unit != "flops"}),
        "hidden": repr(hidden) if any(hidden.values()) else "{}",
        "inner_sets": tuple_of(length.items for length in program.inner),
        "demanding": repr(bool(program.conditions)),
        "inner_sized": repr(bool(tables.letters(checked))),
        "shares": repr(dict(program.shares)) if program.shares else "{}",
        "growing": repr(growing),
        "falling": repr(bool(inner) and not growing and all(falling)),
    }
    own = [f"_{name} = {text}" for name, text in found.items() if text not in EMPTY]
    padded = [f"padded_sums = {tuple_of(program.padded_sums)}"] if program.padded_sums else []
    return [*(["whole = WHOLE"] if program.statistics else []), *padded, "_moments = Moments", *own]


def census_lines(program: Program) -> list[str]:
    """The statement about what the classes read besides: per class its guarded fields, and its fields of words."""
    known_of: Any = program.census or {}
    rows = ((name, {kind: entry[kind] for kind in KINDS if entry.get(kind)}) for name, entry in known_of.items())
    lines = [f"    {json.dumps(name)}: {entry!r}," for name, entry in rows if entry]
    head = "_census = {  # per class the fields that it reads and this module does not describe, with what they may hold"
    return [head, *lines, "}"] if lines else []


def batch_context(program: Program) -> dict[str, Any]:
    """The names of the templates for batches and their moments."""
    sized = any(moment.sizes for moment in program.moments)
    return {
        "signature": signature(program),
        "own_signature": signature(program).replace("*", "self, *", 1) or "self",
        "stream_docs": stream_docs(program),
        "given": "{" + ", ".join(f'"{name}": {name}' for name, *_ in stream_rows(program)) + "}",
        "sized": ", with the sizes that some of them depend on" if sized else "",
        "quick": list(quick_lines(program)),
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
    text = PythonPrinter({other.letter: other.attribute for other in program.fields}).text(field.default)
    return f"bool({text})" if field.kind == "flag" and not isinstance(field.default, (Bracket, Sym)) else text


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
