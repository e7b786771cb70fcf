"""The Python target: a module that a training framework can vendor, standard library only, Python 3.10 and later."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence

from symflops.emit.code.batches import columns, stream_groups, stream_rows
from symflops.emit.code.tables import Tables
from symflops.emit.python.batch import elements, figure, quick, signature, slots, total
from symflops.emit.python.printer import PythonPrinter
from symflops.emit.python.tables import Python
from symflops.emit.rendering import template
from symflops.model.formula import Num, Sym
from symflops.model.program import Field, Program
from symflops.model.verification import Verification
from symflops.runtime.layouts import inputs_of

PRINT = PythonPrinter()
TYPES = {
    "number": "int", "count": "int", "entries": "int", "position": "int", "rational": "Fraction", "flag": "bool",
    "text": "str", "list": "tuple[Any, ...]", "number or list": "Any", "any": "Any",
}  # fmt: skip


def render(program: Program, version: str, verified: Sequence[Verification] = ()) -> str:
    """The module of ``program``. What it was verified against stands on the derivation page, not here."""
    tables = Tables(program, Python())
    names, counted = tables.parameters()
    lines, trained = tables.regimes(), tables.trained()
    told = [figure(item, program) for item in program.statistics]
    terms, rests = elements(program)
    arguments_of_model = inputs_of(program)
    plain_lists, plain_columns = quick(program)
    return template("estimator.py.jinja").render(
        program=program,
        version=version,
        print=PRINT.text,
        formulas=closed_forms(program),
        hidden={
            regime.name: tuple(position for position, line in enumerate(regime.lines) if not line.seen)
            for regime in program.regimes
        },
        unseen=any(not line.seen for regime in program.regimes for line in regime.lines),
        fixed=[(field.attribute, repr(value)) for field, value in fixed_fields(program)],
        symbols=symbol_table(program),
        fields=program.fields,
        types=TYPES,
        defaults={field.letter: default(field, program) for field in program.fields},
        arguments=arguments(program),
        signature=signature(program),
        streams=stream_rows(program),
        groups=stream_groups(program),
        sized=any(moment.sizes for moment in program.moments),
        ones=[stream.name for stream in program.streams if stream.absent],
        moment_letters=tables.letters([Sym(name) for moment in program.moments for name in moment.sizes]),
        columns=[f"{name}_: list[int]" for name in columns(program)] or ["*_: list[int]"],
        elements=[f"{name}: Any" for name in columns(program)] or ["*_: Any"],
        terms=terms,
        rests=rests,
        quick=plain_lists,
        quick_columns=plain_columns,
        least=any("_least(" in text for text in (*terms, *rests)),
        most=any("_most(" in text for text in (*terms, *rests)),
        moment_sets=[(moment.name, moment.items) for moment in program.moments],
        inputs=[(*map(json.dumps, texts), PRINT.text(width) if width else "None") for *texts, width in arguments_of_model],
        input_letters=tables.letters([width for _, _, _, width in arguments_of_model if width]),
        sums=[(moment, total(moment, program)) for moment in program.moments],
        figures=[(item, text, PRINT.text(item.formula)) for item, text in zip(program.statistics, told, strict=True)],
        parameter_names=names,
        parameters=counted,
        trained=trained,
        regime_names=[regime.name for regime in program.regimes],
        slots=slots(program),
        dot=dot(program),
        regimes=lines,
        work=[(regime.name, function.name) for regime, function in zip(program.regimes, lines, strict=True)],
        blocks=any(function.blocks for function in lines),
        parameter_blocks=any(function.blocks for function in counted),
        moments=[(moment, PRINT.text(moment.formula)) for moment in program.moments],
        nullable=[field.attribute for field in program.fields if field.nullable and not field.required],
        null_lists=any(field.kind == "list" and field.nullable for field in program.fields),
        fractions=any(field.kind == "rational" for field in program.fields),
        entries=any(field.kind == "entries" for field in program.fields),
        each=any(field.kind == "number or list" for field in program.fields),
        anything=any(field.kind == "any" for field in program.fields),
        positions=any(field.kind == "position" for field in program.fields),
        exact=any("_exact(" in text for text in (*(total(moment, program) for moment in program.moments), *told)),
    )


def dot(program: Program) -> str:
    """Coefficients times moments, those left out that nothing runs over."""
    used = {position for amount in program.amounts for position, _ in (*amount.useful, *amount.executed)}
    terms = [f"c[{position}] * m.{moment.name}" for position, moment in enumerate(program.moments) if position in used]
    return " + ".join(terms) or "0"


def fixed_fields(program: Program) -> list[tuple[Field, object]]:
    """The sizes that decided the structure, and their values."""
    return [(field, value) for letter, value in program.fixed for field in program.fields if field.letter == letter]


def fixed_sizes(program: Program) -> dict[str, str]:
    """The sizes that make the structure of a program, by their names in code, as texts that a look-up compares."""
    return {size.attribute: repr(value) for size, value in fixed_fields(program)}


def closed_forms(program: Program) -> list[tuple[str, str, list[str]]]:
    """Per regime and convention the forms that differ, as lines of text: (regime, convention, lines)."""
    found: list[tuple[str, str, list[str]]] = []
    for case in program.cases:
        lines = []
        for name, form in (("forward", case.forward), ("backward", case.backward), ("recomputed", case.recomputed)):
            if form:
                terms = [f"({PRINT.text(formula)}) * {program.moments[position].name}" for position, formula in form]
                lines.extend(wrapped(name, terms))
        same = next((item for item in found if item[0] == case.regime and item[2] == lines), None)
        if same:
            found[found.index(same)] = (same[0], f"{same[1]}, {case.convention}", lines)
        else:
            found.append((case.regime, case.convention, lines))
    return found


def wrapped(name: str, terms: Sequence[str]) -> list[str]:
    """``name = term + term``, a line per term, long ones folded."""
    lines = []
    for number, term in enumerate(terms):
        head = f"{name:<10} = " if number == 0 else " " * 10 + " + "
        folded = textwrap.wrap(term, width=104, break_long_words=False, break_on_hyphens=False)
        lines.append(head + folded[0])
        lines.extend(" " * 15 + part for part in folded[1:])
    return lines


def symbol_table(program: Program) -> list[str]:
    """Letters with their config fields and what they are, derived ones with their formula."""
    lines = [f"{field.letter:<4} {field.attribute}{': ' + field.doc if field.doc else ''}" for field in program.fields]
    return lines + [f"{item.letter:<4} = {PRINT.text(item.formula)}" for item in program.definitions]


def default(field: Field, program: Program) -> str:
    """The default of a size as an expression of the other arguments, empty where it has none."""
    if field.default is None:
        return "" if field.required else "None"
    if isinstance(field.default, (bool, str, tuple)):
        return repr(field.default)
    names = {other.letter: other.attribute for other in program.fields}
    return PythonPrinter(names).text(field.default)


def is_constant(field: Field) -> bool:
    """Whether the default is a plain value that a signature can show."""
    return isinstance(field.default, (bool, str, tuple, Num))


def arguments(program: Program) -> list[tuple[Field, str, str]]:
    """Each size with its type and its default in the signature; an empty default means that it must be given."""
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
