"""The tables of a generated module: work and parameters, with the statements before them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from symflops.model.formula import ONE, ZERO, Formula, Sym, brackets, symbols, tallies
from symflops.model.program import Amount, Line, Program, RegimeLines, Tensor
from symflops.targets.python_printer import PythonPrinter
from symflops.targets.rendering import tuple_text
from symflops.targets.sharing import Row, Table, Use, columns_aligned, named_parts, shared

T = TypeVar("T")
PRINT = PythonPrinter()
ABSENT = {"number": "{} or 0", "count": "{} or 0", "list": "_Null() if {0} is None else {0}"}
WIDEST = 72
"""The characters of a cell to which a column is aligned."""

LONG = 24
"""The characters of a name that a shorter one may stand for."""

Cells = tuple[str, Formula, Formula, tuple[Formula, ...], Formula, str]
"""What a line runs over, FLOPs of one, how often forward, each gradient and forward again, and its contraction."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function that returns a table, or that of the function ``base`` without gradients."""

    name: str
    doc: str
    statements: list[str] = field(default_factory=list)
    blocks: list[tuple[str, list[str]]] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    base: str = ""


def identifier(regime: str) -> str:
    """The name of a regime in names of functions."""
    return re.sub(r"\W", "_", regime)


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
    for size in program.fields:
        if size.letter in wanted and size.letter in valued:
            value = ABSENT.get(size.kind, "{}") if size.nullable else "{}"
            lines.append(f"{size.letter} = {value.format(f'sizes.{size.attribute}')}")
        if size.nullable and Sym(size.letter) in asked:
            lines.append(f"has_{size.letter} = sizes.{size.attribute} is not None")
    return lines + [f"{item.letter} = {PRINT.text(item.formula)}" for item in program.definitions if item.letter in wanted]


def tallied(formulas: Iterable[Formula], program: Program) -> tuple[dict[Formula, str], list[str]]:
    """A name for each count of iterations that a formula does not say, and the statement that counts them."""
    labels, lines = dict(program.loops), []
    names: dict[Formula, str] = {}
    for tally in dict.fromkeys(tally for formula in formulas for tally in tallies(formula)):
        label = labels.get(tally.index, "layers")
        names[tally] = f"{label}_{sum(name.rpartition('_')[0] == label for name in names.values()) + 1}"
        lines.append(f"{names[tally]} = {PRINT.text(tally)}")
    return names, lines


class Scope:
    """The body of a function that evaluates formulas: the names in it, its statements, and a printer that knows both."""

    def __init__(self, formulas: Sequence[Formula], program: Program) -> None:
        names, counts = tallied(formulas, program)
        self.printer = PythonPrinter(named=names)
        self.statements = [*unpack(formulas, program), *counts]
        letters = {size.letter for size in program.fields} | {item.letter for item in program.definitions}
        self.taken = letters | set(names.values())

    def share(self, formulas: Iterable[Formula]) -> None:
        """Name the parts that several of ``formulas`` have in common."""
        self.statements += named_parts(formulas, self.printer, self.taken)


def regime_functions(program: Program) -> list[Function]:
    """The function of each regime's work; one that is the first one's without gradients says so."""
    first = program.regimes[0]
    found = []
    for regime in program.regimes:
        doc = f"Regime '{regime.name}'{': ' + regime.doc if regime.doc else ''}."
        if regime is not first and untrained(regime) and forward_only(regime) == forward_only(first):
            found.append(Function(f"_{identifier(regime.name)}", doc, base=f"_{identifier(first.name)}"))
        else:
            found.append(regime_function(regime, doc, program))
    return found


def untrained(regime: RegimeLines) -> bool:
    """Whether nothing but the forward pass runs."""
    return all(count == ZERO for line in regime.lines for count in (*line.backward, line.recomputed))


def forward_only(regime: RegimeLines) -> list[object]:
    """The forward pass of a regime."""
    return [(line.module, line.amount, line.unit, line.forward, line.contraction, len(line.backward)) for line in regime.lines]


def regime_function(regime: RegimeLines, doc: str, program: Program) -> Function:
    """The function that returns the lines of a regime."""
    amounts = list(dict.fromkeys(line.amount for line in regime.lines))
    vectors = [formula for amount in amounts for _, formula in (*amount.useful, *amount.executed)]
    rows = [(line.module, cells_of(line)) for line in regime.lines]
    scope = Scope([*vectors, *(formula for _, cells in rows for formula in formulas_of(cells))], program)
    table = shared(rows, scope.taken)
    scope.share([*vectors, *(formula for cells in table.cells() for formula in formulas_of(cells))])
    moments = ", ".join(moment.name for moment in program.moments)
    scope.statements.append(f"# what a contraction runs over, in multiples of ({moments})")
    names = short_names(amounts, program)
    scope.statements += [f"{names[amount.name]} = {amount_text(amount, program, scope.printer)}" for amount in amounts]

    def columns(path: str, cells: Cells) -> list[str]:
        amount, unit, forward, backward, recomputed, contraction = cells
        gradients = tuple_text([scope.printer.text(count) for count in backward])
        counts = [f"{scope.printer.text(unit)},", f"{scope.printer.text(forward)},", f"{gradients},"]
        return [f'("{path}",', f"{names[amount]},", *counts, f"{scope.printer.text(recomputed)}),", f"# {contraction}"]

    return function(f"_{identifier(regime.name)}", doc, scope, table, columns, '*_at("{}", {}),')


def short_names(amounts: Sequence[Amount], program: Program) -> dict[str, str]:
    """How tables call what contractions run over: its name, or that of its one moment where its own is long."""
    names = {amount.name: f"{amount.name}_" for amount in amounts}
    for amount in amounts:
        alone = amount.useful if amount.useful == amount.executed and [count for _, count in amount.useful] == [ONE] else ()
        short = [f"{program.moments[position].name}_" for position, _ in alone]
        if len(amount.name) > LONG and short and len(short[0]) < len(amount.name) and short[0] not in names.values():
            names[amount.name] = short[0]
    return names


def cells_of(line: Line) -> Cells:
    """What a row says of a line, beside its module."""
    return line.amount.name, line.unit, line.forward, line.backward, line.recomputed, line.contraction


def formulas_of(cells: Cells) -> list[Formula]:
    """The formulas in the row of a line."""
    _, unit, forward, backward, recomputed, _ = cells
    return [unit, forward, *backward, recomputed]


def function(name: str, doc: str, scope: Scope, table: Table[T], columns: Callable[[str, T], list[str]], use: str) -> Function:
    """The function that returns ``table``; ``columns`` are the cells of a row, ``use`` is how a block is called."""

    def printed(entries: Sequence[Row[T] | Use]) -> list[str]:
        aligned = iter(columns_aligned([columns(row.path, row.cells) for row in entries if isinstance(row, Row)], WIDEST))
        return [next(aligned) if isinstance(entry, Row) else use.format(entry.path, entry.block) for entry in entries]

    blocks = [(block, printed(entries)) for block, entries in table.blocks]
    return Function(name, doc, scope.statements, blocks, printed(table.rows))


def amount_text(amount: Amount, program: Program, printer: PythonPrinter = PRINT) -> str:
    """A vector over the moments; a choice of two where conventions differ."""

    def vector(terms: tuple[tuple[int, Formula], ...]) -> str:
        found = dict(terms)
        cells = [printer.text(found[position]) if position in found else "0" for position in range(len(program.moments))]
        return f"({', '.join(cells)}{',' if len(cells) == 1 else ''})"

    useful, executed = vector(amount.useful), vector(amount.executed)
    return useful if useful == executed else f'{useful} if pairs == "useful" else {executed}'


def parameter_functions(program: Program) -> tuple[list[tuple[str, str]], list[Function]]:
    """The function that counts the parameters of each regime, and those functions."""
    names: list[tuple[str, str]] = []
    functions: dict[tuple[Tensor, ...], Function] = {}
    for regime in program.regimes:
        if regime.tensors not in functions:
            name = "_parameters" + (f"_{identifier(regime.name)}" if functions else "")
            functions[regime.tensors] = parameter_function(name, regime.tensors, program)
        names.append((regime.name, functions[regime.tensors].name))
    return names, list(functions.values())


def parameter_function(name: str, tensors: Sequence[Tensor], program: Program) -> Function:
    """The function that counts elements by the names of parameters; those of one name together."""
    counts: dict[str, tuple[Formula, ...]] = {}
    for tensor in tensors:
        counts[tensor.name] = (*counts.get(tensor.name, ()), tensor.count)
    scope = Scope([tensor.count for tensor in tensors], program)
    table = shared(list(counts.items()), scope.taken)
    scope.share(count for cells in table.cells() for count in cells)

    def columns(path: str, cells: tuple[Formula, ...]) -> list[str]:
        return [f'"{path}":', f"{' + '.join(scope.printer.text(count) for count in cells)},"]

    doc = "Elements per parameter, all copies together."
    return function(name, doc, scope, table, columns, '**_inside("{}", {}),')


def trained(program: Program) -> list[tuple[str, str, list[str], str]]:
    """Per regime in which not all parameters train: it and its function's name, statements, and how many elements do."""
    found = []
    for regime in program.regimes:
        if not all(regime.trains):
            scope = Scope([regime.trainable], program)
            scope.share([regime.trainable])
            name = f"_trained_{identifier(regime.name)}"
            found.append((regime.name, name, scope.statements, scope.printer.text(regime.trainable)))
    return found
