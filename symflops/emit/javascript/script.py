"""The JavaScript target: a script with exact integers (BigInt) and no dependencies, for pages.

It computes the integers of the Python estimator: parameters and FLOPs of a batch under every regime and convention.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from symflops.emit.code.batches import columns_of, lengths_in, stream_groups, stream_rows, summed
from symflops.emit.code.infix import DENOMINATOR, UNARY, Fractions, denominators, in_whole_numbers
from symflops.emit.code.sharing import Scope, letters_read
from symflops.emit.javascript.printer import JAVASCRIPT, READ, JavaScriptPrinter, LengthsPrinter, name_of, work_context
from symflops.emit.rendering import template
from symflops.evaluate.item_analysis import part_of
from symflops.formula.formula import Formula, Num
from symflops.ir.batch import BatchCondition, InnerLength, Moment, Statistic
from symflops.ir.program import Field, Program
from symflops.ir.verification import Verification

PRINT = LengthsPrinter()
TEMPLATE = str.maketrans({"`": "\\`", "$": "\\$"})
"""Characters to escape in a template literal."""


def render(program: Program, version: str, verified: Sequence[Verification] = ()) -> str:
    """Print the script of ``program``; records in ``verified`` appear only on the derivation page."""
    whole = in_whole_numbers(program)
    key, title = key_of(program), program.title or program.name
    fixed = [[field.attribute, value] for letter, value in program.fixed for field in program.fields if field.letter == letter]
    return template("javascript/estimator.js.jinja").render(
        program=program,
        version=version,
        key=json.dumps(key),
        file=f"{key.replace('/', '_')}.js",
        title=title,
        title_text=json.dumps(title),
        sets=sets(program),
        moment_sets=[moment.name for moment in program.moments],
        pairs=dict(program.pairs),
        lengths=dict(program.lengths),
        unseen=dict(program.unseen),
        padded_sums=[place for place, moment in enumerate(program.moments) if moment.side],
        shares={name: f"{number}n" for name, number in program.shares},
        fixed=literal(fixed),
        fields=[
            (field.attribute, field.kind, field.keys, field.nullable, default(field, program), of_null(field, program))
            for field in program.fields
        ],
        tokens=per_token(whole),
        active=active(whole),
        moment_letters=letters_read(whole, JAVASCRIPT, [moment.formula for moment in whole.moments if moment.sizes]),
        figures=[(name_of(item.name), figure(item, whole)) for item in whole.statistics],
        inner_letters=letters_read(
            whole, JAVASCRIPT, [formula for length in whole.inner for formula in (length.formula, *length.values)]
        ),
        inner=[inner(length, whole) for length in whole.inner],
        demand_letters=letters_read(whole, JAVASCRIPT, [part for one in whole.conditions for part in parts_of(one)]),
        demand_figures=[
            (name_of(part.name), figure(part, whole))
            for part in dict.fromkeys(each for one in whole.conditions for each in one.statistics)
        ],
        demands=[demand(one, whole) for one in whole.conditions],
        requirement_letters=letters_read(whole, JAVASCRIPT, [one.formula for one in whole.requirements]),
        requirements=[(PRINT.text(one.formula), one.text) for one in whole.requirements],
        sums=[(moment.name, total(moment, whole)) for moment in whole.moments],
        **part_context(program),
        **work_context(whole),
    )


def key_of(program: Program) -> str:
    """Return the key under which a script registers its estimator: ``model`` or ``model/structure``."""
    return program.name + (f"/{program.variant}" if program.variant else "")


def part_context(program: Program) -> dict[str, Any]:
    """Return the template variables for the parts of the work, such as attention.

    ``part_names`` maps a letter to each part. ``parts`` maps each regime to a string with one letter per contraction.
    """
    works = dict(program.works())
    parts = dict.fromkeys(part_of(line) for regime in works.values() for line in regime.lines)
    letters = {part: chr(ord("a") + number) for number, part in enumerate(parts)}
    lines = {key: "".join(letters[part_of(line)] for line in regime.lines) for key, regime in works.items()}
    return {"parts": lines, "part_names": {letter: part for part, letter in letters.items()}}


def sets(program: Program) -> dict[str, list[list[object]]]:
    """Map each index set to its streams: (name, axes, length if the stream is omitted; None if required)."""
    optional = {stream.name: stream.absent if stream.optional else None for stream in program.streams}
    return {group[0][1]: [[name, list(axes), optional[name]] for name, _, axes, _ in group] for group in stream_groups(program)}


def literal(value: Any) -> str:
    """Print a plain value of a config as a JavaScript literal; integers become BigInt."""
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
    """Print the default of a size: a value, a function of earlier sizes, or ``undefined`` if required."""
    if field.default is None:
        return "undefined" if field.required else "null"
    return size_value(field, field.default, program)


def of_null(field: Field, program: Program) -> str:
    """Print the value that a size has if it is null in a config; ``undefined`` if the class refuses null."""
    if field.null is not None:
        return size_value(field, field.null, program)
    if field.nullable:
        return "null"
    if not program.reading:
        return default(field, program)
    return "false" if field.kind == "flag" else "undefined"


def size_value(field: Field, given: Formula | bool | str | tuple[object, ...], program: Program) -> str:
    """Print a value of a size, or a function of earlier sizes."""
    if isinstance(given, (bool, str, tuple)):
        return literal(given)
    if isinstance(given, Num):
        return literal(given.value if field.kind == "rational" else int(given.value))
    names = {other.letter: READ.get(other.kind, "{}").format(f"s.{other.attribute}") for other in program.fields}
    under = denominators(program)
    names |= {
        under[other.letter]: READ[DENOMINATOR].format(f"s.{other.attribute}")
        for other in program.fields
        if other.letter in under
    }
    return f"(s) => {JavaScriptPrinter(names).text(Fractions(under).whole(given))}"


def per_token(program: Program) -> list[tuple[str, list[str], list[tuple[int, str]]]]:
    """Return how to compute the tokens of a batch: (regime, statements, terms) per regime.

    The terms, maybe none, are pairs (position of a moment, factor as text), whose products are added.
    """
    found = []
    for regime in program.regimes:
        scope = Scope(program, JAVASCRIPT, [part for _, part in regime.tokens])
        found.append((regime.name, scope.statements, [(place, scope.printer.text(part)) for place, part in regime.tokens]))
    return found


def active(program: Program) -> list[tuple[str, list[str], str]]:
    """Return (regime, statements, number of active parameters as text) per regime that has inactive ones.

    Active parameters are those that one token uses.
    """
    found = []
    for regime in program.regimes:
        if regime.active is not None and regime.active != regime.parameters:
            scope = Scope(program, JAVASCRIPT, [regime.active])
            found.append((regime.name, scope.statements, scope.printer.text(regime.active)))
    return found


def total(what: Moment | Statistic, program: Program) -> str:
    """Print a moment or statistic as a sum over columns."""
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
    """Print a statistic as a sum or a maximum over columns."""
    return total(statistic, program) if statistic.kind == "sum" else f"$largest({over_items(statistic, program)})"


def inner(length: InnerLength, program: Program) -> tuple[str, str, str, str]:
    """Print the parts of a check that a length inside of the model is valid.

    They are (columns, arguments of a function of one item, its body, text of what the class requires).
    """
    columns = lengths_in(length.formula, program)
    return json.dumps(columns), ", ".join(map(name_of, columns)), PRINT.text(length.formula), words_of(length)


def words_of(one: InnerLength | BatchCondition) -> str:
    """Print what the class requires as a template literal; empty if there is no text."""
    values = [f"${{{PRINT.text(value)}}}" for value in one.values]
    words = json.dumps(one.text, ensure_ascii=False)[1:-1].translate(TEMPLATE).format(*values)
    return f"`{words}`" if words else ""


def parts_of(condition: BatchCondition) -> list[Formula]:
    """Return all formulas of a condition on a batch."""
    return [condition.formula, *condition.values, *(statistic.formula for statistic in condition.statistics)]


def demand(one: BatchCondition, program: Program) -> tuple[str, str, str]:
    """Print a condition on a batch: (test that there are items, condition, text of what is required)."""
    firsts = {row[1]: columns_of(row)[0] for row in reversed(stream_rows(program))}
    sets = dict.fromkeys(statistic.items for statistic in one.statistics)
    return " && ".join(f"$c.{firsts[items]}.length" for items in sets), PRINT.text(one.formula), words_of(one)


def over_items(what: Moment | Statistic, program: Program) -> str:
    """Print the arguments of a sum over items: the columns that it reads, and a function of one item."""
    found = summed(what, program)
    columns, arguments = ", ".join(f"$c.{name}" for name in found.columns), ", ".join(map(name_of, found.columns))
    return f"[{columns}], ({arguments}) => {PRINT.text(found.formula)}"
