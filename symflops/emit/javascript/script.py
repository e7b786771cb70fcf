"""The JavaScript target: a script with exact integers (BigInt) that a page loads from a file, without anything else.

It gives the integers of the Python estimator: parameters and FLOPs of a batch under every regime and convention of a program.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from symflops.emit.code.batches import stream_groups, summed
from symflops.emit.code.infix import UNARY
from symflops.emit.code.tables import Tables
from symflops.emit.code.whole_numbers import DENOMINATOR, Divided, in_whole_numbers
from symflops.emit.javascript.printer import JavaScriptPrinter, LengthsPrinter, name_of
from symflops.emit.javascript.tables import READ, JavaScript
from symflops.emit.page.parts import part_of
from symflops.emit.rendering import template
from symflops.model.formula import Num, Sym
from symflops.model.program import Field, Moment, Program, Statistic
from symflops.model.verification import Verification

PRINT = LengthsPrinter()


def render(program: Program, version: str, verified: Sequence[Verification] = ()) -> str:
    """The script of ``program``. What it was verified against stands on the derivation page, not here."""
    whole = in_whole_numbers(program)
    tables = Tables(whole, JavaScript())
    names, counted = tables.parameters()
    lines = tables.regimes()
    letters = part_letters(program)
    key = key_of(program)
    return template("javascript/estimator.js.jinja").render(
        program=program,
        version=version,
        key=json.dumps(key),
        file=f"{key.replace('/', '_')}.js",
        title=program.title or program.name,
        title_text=json.dumps(program.title or program.name),
        regime_names=[regime.name for regime in program.regimes],
        sets=sets(program),
        moment_sets=[moment.name for moment in program.moments],
        pairs=dict(program.pairs),
        lengths=dict(program.lengths),
        unseen=dict(program.unseen),
        hidden={regime.name: [place for place, line in enumerate(regime.lines) if not line.seen] for regime in program.regimes},
        parts={regime.name: "".join(letters[part_of(line)] for line in regime.lines) for regime in program.regimes},
        part_names={letter: part for part, letter in letters.items()},
        fixed=literal(
            [[field.attribute, value] for letter, value in program.fixed for field in program.fields if field.letter == letter]
        ),
        fields=[(field.attribute, field.kind, field.keys, field.nullable, default(field, program)) for field in program.fields],
        regimes=lines,
        parameters=counted,
        parameter_names=names,
        trained=tables.trained(),
        work=[(regime.name, function.name) for regime, function in zip(program.regimes, lines, strict=True)],
        moment_letters=tables.letters([Sym(name) for moment in whole.moments for name in moment.sizes]),
        figures=[(name_of(item.name), figure(item, whole)) for item in whole.statistics],
        sums=[(moment.name, total(moment, whole)) for moment in whole.moments],
    )


def key_of(program: Program) -> str:
    """The name under which the estimator of a program registers: its model's, with that of its structure where it has one."""
    return program.name + (f"/{program.variant}" if program.variant else "")


def part_letters(program: Program) -> dict[str, str]:
    """A letter for each part of the work."""
    parts = dict.fromkeys(part_of(line) for regime in program.regimes for line in regime.lines)
    return {part: chr(ord("a") + number) for number, part in enumerate(parts)}


def sets(program: Program) -> dict[str, list[list[object]]]:
    """Per index set its streams: name, axes, and the length of one that is left out, None where it must be given."""
    optional = {stream.name: stream.absent if stream.optional else None for stream in program.streams}
    return {group[0][1]: [[name, list(axes), optional[name]] for name, _, axes, _ in group] for group in stream_groups(program)}


def literal(value: Any) -> str:
    """A plain value of a config in JavaScript, whole numbers as BigInt."""
    match value:
        case bool() | str() | None:
            return json.dumps(value)
        case int():
            return f"{value}n"
        case Fraction():
            return f"[{value.numerator}n, {value.denominator}n]"
        case Mapping():
            return f"{len(value)}n"
        case Sequence():
            return f"[{', '.join(map(literal, value))}]"
    raise TypeError(f"{value!r} is no value of a config")


def default(field: Field, program: Program) -> str:
    """The default of a size: a value, a function of the sizes above it, or nothing where a config must have it."""
    if field.default is None:
        return "undefined" if field.required else "null"
    if isinstance(field.default, (bool, str, tuple)):
        return literal(field.default)
    if isinstance(field.default, Num):
        value = field.default.value
        return literal(value if field.kind == "rational" else int(value))
    under = {other.letter: f"{other.letter}_under" for other in program.fields if other.kind == "rational"}
    names = {other.letter: READ.get(other.kind, "{}").format(f"s.{other.attribute}") for other in program.fields}
    for other in program.fields:
        if other.letter in under:
            names[under[other.letter]] = READ[DENOMINATOR].format(f"s.{other.attribute}")
    return f"(s) => {JavaScriptPrinter(names).text(Divided(under).whole(field.default))}"


def total(what: Moment | Statistic, program: Program) -> str:
    """A moment or a statistic as a sum over columns."""
    found = summed(what, program)
    match found.kind:
        case "once":
            return PRINT.text(found.formula)
        case "count":
            count = f"BigInt($c.{found.columns[0]}.length)" if found.columns else "0n"
            return count if isinstance(found.formula, Num) else f"{count}*{PRINT.inside(found.formula, UNARY)}"
        case "column":
            return f"$total($c.{found.columns[0]})"
    return f"$sum({over_items(what, program)})"


def figure(statistic: Statistic, program: Program) -> str:
    """A statistic as the sum over columns, or as the largest value in them."""
    return total(statistic, program) if statistic.kind == "sum" else f"$largest({over_items(statistic, program)})"


def over_items(what: Moment | Statistic, program: Program) -> str:
    """The columns that a formula reads, and the formula as a function of one item."""
    found = summed(what, program)
    columns, arguments = ", ".join(f"$c.{name}" for name in found.columns), ", ".join(map(name_of, found.columns))
    return f"[{columns}], ({arguments}) => {PRINT.text(found.formula)}"
