"""The Python target: a module for Python 3.10 and later that needs only the standard library, so that anyone can vendor it."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any, cast

from symflops.emit.code.batches import stream_groups, stream_rows
from symflops.emit.code.tables import Tables, work_context
from symflops.emit.grouping import grouped
from symflops.emit.python.batch import column_context, figure, signature, slots, total
from symflops.emit.python.printer import PythonPrinter
from symflops.emit.python.tables import PYTHON
from symflops.emit.rendering import template
from symflops.model.formula import ONE, Formula, Num, Sum, Sym
from symflops.model.program import Case, Field, Program
from symflops.model.verification import Verification
from symflops.runtime import census, config
from symflops.runtime.classes import class_name
from symflops.runtime.layouts import implied_streams, inputs_of

KINDS = ("guarded", "words")
MARK = "# ---- what generated modules hold, too\n"
PRINT = PythonPrinter()
TYPES = {
    "number": "int", "count": "int", "entries": "int", "position": "int", "rational": "Fraction", "flag": "bool",
    "text": "str", "list": "tuple[Any, ...]", "number or list": "Any", "any": "Any",
}  # fmt: skip


def render(program: Program, version: str, verified: Sequence[Verification] = ()) -> str:
    """The module of ``program``; the derivation page says what it was verified against."""
    tables = Tables(program, PYTHON)
    context = head_context(program) | size_context(program) | batch_context(program, tables) | work_context(tables)
    return template("estimator.py.jinja").render(program=program, version=version, print=PRINT.text, **context)


def head_context(program: Program) -> dict[str, Any]:
    """The names of the template for the docstring and the constants of a module."""
    return {
        "formulas": closed_forms(program),
        "symbols": symbol_table(program),
        "moments": [(moment, PRINT.text(moment.formula)) for moment in program.moments],
        "moment_sets": [(moment.name, moment.items) for moment in program.moments],
        "fixed": [(field.attribute, repr(value)) for field, value in fixed_fields(program)],
        "unseen": any(not line.seen for regime in program.regimes for line in regime.lines),
    }


def size_context(program: Program) -> dict[str, Any]:
    """The names of the template for sizes and the reading of configs."""
    kinds = {field.kind for field in program.fields}
    return {
        "fields": program.fields,
        "types": TYPES,
        "defaults": {field.letter: default(field, program) for field in program.fields},
        "arguments": arguments(program),
        "nullable": [field.attribute for field in program.fields if field.nullable and not field.required],
        "null_values": null_values(program),
        "reading": repr(program.reading or {}),
        "config_code": shared_code(config),
        "census_code": shared_code(census),
        "null_lists": any(field.kind == "list" and field.nullable for field in program.fields),
        "fractions": "rational" in kinds,
        "each": "number or list" in kinds,
        "classes": list(map(class_name, program.references)),
        "census": census_rows(program),
    }


def census_rows(program: Program) -> list[tuple[str, list[tuple[str, str]], list[tuple[str, str]]]]:
    """Per class its guarded fields, and its fields of words, as source code."""
    known_of: Any = program.census or {}
    rows = []
    for name, entry in known_of.items():
        guarded, words = ([(json.dumps(path), repr(known)) for path, known in entry.get(kind, {}).items()] for kind in KINDS)
        if guarded or words:
            rows.append((name, guarded, words))
    return rows


def batch_context(program: Program, tables: Tables) -> dict[str, Any]:
    """The names of the template for batches and their moments."""
    sums = [total(moment, program) for moment in program.moments]
    statistics = [figure(item, program) for item in program.statistics]
    inputs = inputs_of(program)
    return column_context(program) | {
        "signature": signature(program),
        "streams": stream_rows(program),
        "groups": stream_groups(program),
        "ones": [stream.name for stream in program.streams if stream.absent],
        "inputs": [(*map(json.dumps, texts), PRINT.text(width) if width else "None") for *texts, width in inputs],
        "input_letters": tables.letters([width for _, _, _, width in inputs if width]),
        "inner_letters": tables.letters([length.formula for length in program.inner]),
        "implied": [(name, PRINT.text(either(conditions))) for name, conditions in implied_streams(program)],
        "implied_letters": tables.letters([info.when for info in program.inputs if info.when]),
        "sized": any(moment.sizes for moment in program.moments),
        "moment_letters": tables.letters([Sym(name) for moment in program.moments for name in moment.sizes]),
        "sums": list(zip(program.moments, sums, strict=True)),
        "figures": [(item, text, PRINT.text(item.formula)) for item, text in zip(program.statistics, statistics, strict=True)],
        "exact": "_exact(" in " ".join((*sums, *statistics)),
        "slots": slots(program),
        "dot": dot(program),
    }


def either(conditions: Sequence[Formula | None]) -> Formula:
    """0 if no condition holds; None always holds."""
    known = tuple(condition for condition in conditions if condition is not None)
    return Sum(known) if known and len(known) == len(conditions) else ONE


def dot(program: Program) -> str:
    """The sum of coefficients times moments, without moments that no work runs over."""
    used = {position for amount in program.amounts for position, _ in (*amount.useful, *amount.executed)}
    terms = [f"c[{position}] * m.{moment.name}" for position, moment in enumerate(program.moments) if position in used]
    return " + ".join(terms) or "0"


def fixed_fields(program: Program) -> list[tuple[Field, object]]:
    """The sizes that decide the structure, with their values."""
    return [(field, value) for letter, value in program.fixed for field in program.fields if field.letter == letter]


def fixed_sizes(program: Program) -> dict[str, str]:
    """The sizes that decide the structure, by their names in code, as texts that a look-up compares."""
    return {size.attribute: repr(value) for size, value in fixed_fields(program)}


def closed_forms(program: Program) -> list[tuple[str, str, list[str]]]:
    """The closed forms as lines of text: (regime, conventions, lines); conventions with equal forms are merged."""
    found = grouped(((case.regime, tuple(form_lines(case, program))), case.convention) for case in program.cases)
    return [(regime, ", ".join(conventions), list(lines)) for (regime, lines), conventions in found.items()]


def form_lines(case: Case, program: Program) -> Iterator[str]:
    """The closed forms of one case as lines of text."""
    for name, form in (("forward", case.forward), ("backward", case.backward), ("recomputed", case.recomputed)):
        if form:
            terms = [f"({PRINT.text(formula)}) * {program.moments[position].name}" for position, formula in form]
            yield from wrapped(name, terms)


def wrapped(name: str, terms: Sequence[str]) -> list[str]:
    """``name = term + term`` as lines, one per term; long terms are folded."""
    lines = []
    for number, term in enumerate(terms):
        head = f"{name:<10} = " if number == 0 else " " * 10 + " + "
        folded = textwrap.wrap(term, width=104, break_long_words=False, break_on_hyphens=False)
        lines.append(head + folded[0])
        lines.extend(" " * 15 + part for part in folded[1:])
    return lines


def symbol_table(program: Program) -> list[str]:
    """A line per letter: sizes with their config field and meaning, derived sizes with their formula."""
    lines = [f"{field.letter:<4} {field.attribute}{': ' + field.doc if field.doc else ''}" for field in program.fields]
    return lines + [f"{item.letter:<4} = {PRINT.text(item.formula)}" for item in program.definitions]


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


@lru_cache(maxsize=1)
def shared_code(module: ModuleType) -> str:
    """The functions of a module of the runtime that generated modules hold, too."""
    return MARK.join(inspect.getsource(module).split(MARK)[1:]).strip()


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
