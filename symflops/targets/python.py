"""The Python target: a module that a training framework can vendor, standard library only, Python 3.10 and later."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from symflops.model.formula import Formula, Num, Sym, brackets, symbols, tallies
from symflops.model.program import Amount, Field, Line, Program, RegimeLines, Tensor
from symflops.model.verification import Verification
from symflops.targets.python_batch import columns, largest, signature, slots, stream_groups, stream_rows, summed
from symflops.targets.python_printer import PythonPrinter
from symflops.targets.rendering import template

PRINT = PythonPrinter()
TYPES = {
    "number": "int", "count": "int", "entries": "int", "position": "int", "rational": "Fraction", "flag": "bool",
    "text": "str", "list": "tuple[Any, ...]", "number or list": "Any", "any": "Any",
}  # fmt: skip
ABSENT = {"number": "{} or 0", "count": "{} or 0", "list": "_Null() if {0} is None else {0}"}


def render(program: Program, version: str, verified: Sequence[Verification] = ()) -> str:
    """The module of ``program``. What it was verified against stands on the derivation page, not here."""
    names, tables = parameter_tables(program)
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
        moment_letters=unpack([Sym(name) for moment in program.moments for name in moment.sizes], program),
        columns=[f"{name}_: list[int]" for name in columns(program)] or ["*_: list[int]"],
        sums=[(moment, summed(moment, program)) for moment in program.moments],
        largest=[(item, largest(item, program), PRINT.text(item.formula)) for item in program.statistics],
        parameter_names=names,
        parameter_tables=tables,
        trained=trained(program),
        regime_names=[regime.name for regime in program.regimes],
        slots=slots(program),
        dot=" + ".join(f"c[{position}] * m.{moment.name}" for position, moment in enumerate(program.moments)) or "0",
        regimes=[regime_table(regime, program) for regime in program.regimes],
        amounts=[(amount, amount_text(amount, program)) for amount in program.amounts],
        moments=[(moment, PRINT.text(moment.formula)) for moment in program.moments],
        nullable=[field.attribute for field in program.fields if field.nullable and not field.required],
        null_lists=any(field.kind == "list" and field.nullable for field in program.fields),
        fractions=any(field.kind == "rational" for field in program.fields),
        entries=any(field.kind == "entries" for field in program.fields),
        each=any(field.kind == "number or list" for field in program.fields),
        anything=any(field.kind == "any" for field in program.fields),
        positions=any(field.kind == "position" for field in program.fields),
        exact=any("_exact(" in summed(moment, program) for moment in program.moments),
        tabulate=tabulate,
    )


def fixed_fields(program: Program) -> list[tuple[Field, object]]:
    """The sizes that decided the structure, and their values."""
    return [(field, value) for letter, value in program.fixed for field in program.fields if field.letter == letter]


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


def needed(formulas: Iterable[Formula], program: Program) -> list[str]:
    """The letters that ``formulas`` read, and those that their derived sizes read, in the program's order."""
    wanted = {name for formula in formulas for name in symbols(formula)}
    for definition in reversed(program.definitions):
        if definition.letter in wanted:
            wanted |= set(symbols(definition.formula))
    return [field.letter for field in program.fields if field.letter in wanted] + [
        item.letter for item in program.definitions if item.letter in wanted
    ]


def unpack(formulas: Iterable[Formula], program: Program) -> list[str]:
    """Statements that bring the letters of ``formulas`` into scope from ``sizes``."""
    formulas = list(formulas)
    wanted = needed(formulas, program)
    inside = [*formulas, *(item.formula for item in program.definitions if item.letter in wanted)]
    asked = {formula.arguments[0] for formula in brackets(inside) if formula.kind == "given"}
    valued = {name for formula in inside for name in symbols(formula, given=False)}
    lines = []
    for field in program.fields:
        if field.letter in wanted and field.letter in valued:
            value = ABSENT.get(field.kind, "{}") if field.nullable else "{}"
            lines.append(f"{field.letter} = {value.format(f'sizes.{field.attribute}')}")
        if field.nullable and Sym(field.letter) in asked:
            lines.append(f"has_{field.letter} = sizes.{field.attribute} is not None")
    return lines + [f"{item.letter} = {PRINT.text(item.formula)}" for item in program.definitions if item.letter in wanted]


def regime_table(regime: RegimeLines, program: Program) -> tuple[RegimeLines, list[str], list[list[str]]]:
    """A regime with the statements before its lines, and its lines; iterations that follow no run are counted before."""
    formulas = line_formulas(regime.lines)
    names, counts = tallied(formulas, program)
    return regime, unpack(formulas, program) + counts, rows(regime, PythonPrinter(tallies=names))


def tallied(formulas: Iterable[Formula], program: Program) -> tuple[dict[Formula, str], list[str]]:
    """A name for each count of iterations that a formula does not say, and the statement that counts them."""
    labels, lines = dict(program.loops), []
    names: dict[Formula, str] = {}
    for tally in dict.fromkeys(tally for formula in formulas for tally in tallies(formula)):
        label = labels.get(tally.index, "layers")
        names[tally] = f"{label}_{sum(name.rpartition('_')[0] == label for name in names.values()) + 1}"
        lines.append(f"{names[tally]} = {PRINT.text(tally)}")
    return names, lines


def line_formulas(lines: Sequence[Line]) -> list[Formula]:
    """Every formula that lines print."""
    found: list[Formula] = []
    for line in lines:
        found += [line.unit, line.forward, *line.backward, line.recomputed]
        found += [formula for vector in (line.amount.useful, line.amount.executed) for _, formula in vector]
    return found


def rows(regime: RegimeLines, printer: PythonPrinter) -> list[list[str]]:
    """The table of a regime: module, what it runs over, FLOPs each, forward, gradients; and the contraction as a comment."""
    table = []
    for line in regime.lines:
        gradients = ", ".join(printer.text(count) for count in line.backward)
        table.append(
            [
                f"({line.module!r},".replace("'", '"'),
                f"{line.amount.name}_,",
                f"{printer.text(line.unit)},",
                f"{printer.text(line.forward)},",
                f"({gradients}),",
                f"{printer.text(line.recomputed)}),",
                f"# {line.contraction}",
            ]
        )
    return table


def amount_text(amount: Amount, program: Program) -> str:
    """A vector over the moments; a choice of two where conventions differ."""

    def vector(terms: tuple[tuple[int, Formula], ...]) -> str:
        found = dict(terms)
        cells = [PRINT.text(found[position]) if position in found else "0" for position in range(len(program.moments))]
        return f"({', '.join(cells)}{',' if len(cells) == 1 else ''})"

    useful, executed = vector(amount.useful), vector(amount.executed)
    return useful if useful == executed else f'{useful} if pairs == "useful" else {executed}'


def parameter_tables(program: Program) -> tuple[list[tuple[str, str]], list[tuple[str, list[str], list[list[str]]]]]:
    """The function that counts the parameters of each regime, and those functions: name, statements, rows."""
    names: list[tuple[str, str]] = []
    tables: dict[tuple[Tensor, ...], tuple[str, list[str], list[list[str]]]] = {}
    for regime in program.regimes:
        if regime.tensors not in tables:
            counts = [tensor.count for tensor in regime.tensors]
            printer = PythonPrinter(tallies=tallied(counts, program)[0])
            name = "_parameters" + (f"_{regime.name.replace('-', '_')}" if tables else "")
            letters = unpack(counts, program) + tallied(counts, program)[1]
            tables[regime.tensors] = (name, letters, tensor_rows(regime.tensors, printer))
        names.append((regime.name, tables[regime.tensors][0]))
    return names, list(tables.values())


def tensor_rows(tensors: Sequence[Tensor], printer: PythonPrinter) -> list[list[str]]:
    """The table of parameters: name, elements over all copies."""
    counts: dict[str, list[str]] = {}
    for tensor in tensors:
        counts.setdefault(tensor.name, []).append(printer.text(tensor.count))
    return [[f'"{name}":', f"{' + '.join(texts)},"] for name, texts in counts.items()]


def trained(program: Program) -> list[tuple[str, list[str], str]]:
    """Per regime in which not all parameters train: its name, statements, and how many elements do."""
    found = []
    for regime in program.regimes:
        if not all(regime.trains):
            names, counts = tallied([regime.trainable], program)
            letters = unpack([regime.trainable], program) + counts
            found.append((regime.name.replace("-", "_"), letters, PythonPrinter(tallies=names).text(regime.trainable)))
    return found


def tabulate(table: Sequence[Sequence[str]]) -> list[str]:
    """Rows with aligned columns."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))] if table else []
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
