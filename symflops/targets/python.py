"""The Python target: a module that a training framework can vendor, standard library only, Python 3.10 and later."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from symflops.model.formula import Formula, Num, Sym, symbols
from symflops.model.graph import ONCE
from symflops.model.program import Amount, Field, Line, Moment, Program, RegimeLines
from symflops.model.verification import Verification
from symflops.targets.python_printer import PythonPrinter
from symflops.targets.rendering import template, tuple_of

PRINT = PythonPrinter()
TYPES = {"number": "int", "rational": "Fraction", "flag": "bool", "text": "str", "list": "tuple[Any, ...]"}
AMBIGUOUS = {"l", "O", "I"}


def render(program: Program, version: str, verified: Sequence[Verification] = ()) -> str:
    """The module of ``program``. What it was verified against stands on the derivation page, not here."""
    letters = {field.letter for field in program.fields} | {definition.letter for definition in program.definitions}
    return template("estimator.py.jinja").render(
        program=program,
        version=version,
        print=PRINT.text,
        formulas=closed_forms(program),
        symbols=symbol_table(program),
        fields=program.fields,
        types=TYPES,
        defaults={field.letter: default(field, program) for field in program.fields},
        arguments=arguments(program),
        signature=signature(program),
        streams=stream_rows(program),
        groups=stream_groups(program),
        columns=[f"{name}_: list[int]" for name in columns(program)] or ["*_: list[int]"],
        sums=[(moment, summed(moment, program)) for moment in program.moments],
        parameter_letters=unpack([tensor.count for tensor in program.tensors], program),
        trained=trained(program),
        regime_names=[regime.name for regime in program.regimes],
        slots=["padded", *(moment.name for moment in program.moments)],
        dot=" + ".join(f"c[{position}] * m.{moment.name}" for position, moment in enumerate(program.moments)) or "0",
        regimes=[(regime, regime_letters(regime, program), rows(regime)) for regime in program.regimes],
        amounts=[(amount, amount_text(amount, program)) for amount in program.amounts],
        tensors=tensor_rows(program),
        moments=[(moment, PRINT.text(moment.formula)) for moment in program.moments],
        ambiguous=bool(letters & AMBIGUOUS),
        nullable=[field.attribute for field in program.fields if field.nullable and not field.required],
        fractions=any(field.kind == "rational" for field in program.fields),
        tabulate=tabulate,
    )


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
    """Statements that bring the letters of ``formulas`` into scope from ``s``."""
    wanted = needed(formulas, program)
    lines = []
    for field in program.fields:
        if field.letter in wanted:
            lines.append(f"{field.letter} = s.{field.attribute}{' or 0' if field.nullable and field.kind == 'number' else ''}")
            if field.nullable:
                lines.append(f"has_{field.letter} = s.{field.attribute} is not None")
    return lines + [f"{item.letter} = {PRINT.text(item.formula)}" for item in program.definitions if item.letter in wanted]


def regime_letters(regime: RegimeLines, program: Program) -> list[str]:
    """The statements before the lines of a regime."""
    return unpack(line_formulas(regime.lines), program)


def line_formulas(lines: Sequence[Line]) -> list[Formula]:
    """Every formula that lines print."""
    found: list[Formula] = []
    for line in lines:
        found += [line.unit, line.forward, *line.backward]
        found += [formula for vector in (line.amount.useful, line.amount.executed) for _, formula in vector]
    return found


def rows(regime: RegimeLines) -> list[list[str]]:
    """The table of a regime: module, what it runs over, FLOPs each, forward, gradients; and the contraction as a comment."""
    table = []
    for line in regime.lines:
        gradients = ", ".join(PRINT.text(count) for count in line.backward)
        table.append(
            [
                f"({line.module!r},".replace("'", '"'),
                f"{line.amount.name}_,",
                f"{PRINT.text(line.unit)},",
                f"{PRINT.text(line.forward)},",
                f"({gradients})),",
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


def tensor_rows(program: Program) -> list[list[str]]:
    """The table of parameters: name, elements over all copies."""
    counts: dict[str, list[str]] = {}
    for tensor in program.tensors:
        counts.setdefault(tensor.name, []).append(PRINT.text(tensor.count))
    return [[f'"{name}":', f"{' + '.join(texts)},"] for name, texts in counts.items()]


StreamRow = tuple[str, str, tuple[str, ...], bool]


def stream_rows(program: Program) -> list[StreamRow]:
    """The streams that a batch gives: name, index set, variables, and whether it may be left out."""
    return [(stream.name, stream.items, stream.variables, stream.optional) for stream in program.streams if stream.given]


def stream_groups(program: Program) -> list[list[StreamRow]]:
    """Those streams by index set."""
    groups: dict[str, list[StreamRow]] = {}
    for row in stream_rows(program):
        groups.setdefault(row[1], []).append(row)
    return list(groups.values())


def signature(program: Program) -> str:
    """The arguments of ``moments``."""
    parts = [
        f"{name}: {'Streams' if variables else 'Streams | int'}{' | None = None' if optional else ''}"
        for name, _, variables, optional in stream_rows(program)
    ]
    return ", ".join(["*", *parts]) if parts else ""


def columns(program: Program) -> list[str]:
    """The variables in the order in which ``moments`` hands over their columns."""
    return [column for group in stream_groups(program) for row in group for column in columns_of(row)]


def columns_of(row: StreamRow) -> tuple[str, ...]:
    """The columns of one stream: its variables, or its name where it only counts items."""
    return row[2] or (row[0],)


def summed(moment: Moment, program: Program) -> str:
    """A moment as a sum over columns."""
    if moment.items == ONCE:
        return "1"
    wanted = list(dict.fromkeys(name for name in symbols(moment.formula) if name not in moment.sizes))
    if not wanted:
        group = next((group for group in stream_groups(program) if group[0][1] == moment.items), None)
        return f"len({columns_of(group[0])[0]}_)" if group else "0"
    if moment.formula == Sym(wanted[0]):
        return f"sum({wanted[0]}_)"
    text = PRINT.text(moment.formula)
    if len(wanted) == 1:
        return f"sum({text} for {wanted[0]} in {wanted[0]}_)"
    return f"sum({text} for {', '.join(wanted)} in zip({', '.join(f'{name}_' for name in wanted)}))"


def trained(program: Program) -> list[tuple[str, str]]:
    """Per regime the parameters that train, as Python text, where it is not all of them."""
    found = []
    for regime in program.regimes:
        names = dict.fromkeys(tensor.name for tensor, trains in zip(program.tensors, regime.trains, strict=True) if trains)
        if not all(regime.trains):
            found.append((regime.name, tuple_of(names)))
    return found


def tabulate(table: Sequence[Sequence[str]]) -> list[str]:
    """Rows with aligned columns."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))] if table else []
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
