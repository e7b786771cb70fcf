"""The tables of an estimator in any language: work and parameters, with the statements before them.

All languages share the letters that a function reads, the names of counts and parts, the blocks of equal modules and the
alignment of rows. A :class:`~symflops.emit.code.printer.Language` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from symflops.emit.code.printer import CodePrinter, Language
from symflops.emit.code.sharing import Row, Table, Use, columns_aligned, named_parts, shared
from symflops.emit.grouping import grouped
from symflops.model.formula import ONE, ZERO, Bracket, Formula, Sym, brackets, symbols, tallies
from symflops.model.program import Amount, Line, Program, RegimeLines, Tensor

T = TypeVar("T")
WIDEST = 72
"""The most characters of a cell that a column is aligned to."""

LONG = 24
"""The characters of a name beyond which a shorter one may replace it."""

Cells = tuple[str, Formula, Formula, tuple[Formula, ...], Formula, str]
"""A line's amount, FLOPs of one, times forward, times each gradient, times recomputed, and contraction."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function that returns a table, or the table of the function ``base`` without gradients."""

    name: str
    doc: str
    statements: list[str] = field(default_factory=list)
    blocks: list[tuple[str, list[str]]] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    base: str = ""


def identifier(regime: str) -> str:
    """A regime as part of the name of a function."""
    return re.sub(r"\W", "_", regime)


def needed(formulas: Iterable[Formula], program: Program) -> list[str]:
    """The letters in ``formulas`` and in the derived sizes that they read, in the program's order."""
    wanted = {name for formula in formulas for name in symbols(formula)}
    for definition in reversed(program.definitions):
        if definition.letter in wanted:
            wanted |= set(symbols(definition.formula))
    return [field.letter for field in program.fields if field.letter in wanted] + [
        item.letter for item in program.definitions if item.letter in wanted
    ]


class Tables:
    """The functions of a program in one language."""

    def __init__(self, program: Program, language: Language) -> None:
        self.program = program
        self.language = language

    def letters(self, formulas: Iterable[Formula]) -> list[str]:
        """Statements that read the letters of ``formulas`` from ``sizes``."""
        formulas, language, program = list(formulas), self.language, self.program
        wanted = needed(formulas, program)
        inside = [*formulas, *(item.formula for item in program.definitions if item.letter in wanted)]
        tested = {formula.arguments[0] for formula in brackets(inside) if formula.kind == "given"}
        valued = {name for formula in inside for name in symbols(formula, given=False)}
        lines, printer = [], language.printer()
        for size in program.fields:
            if size.letter in wanted and size.letter in valued:
                lines.append(language.assigned(printer.symbol(size.letter), language.size(size)))
            if size.nullable and Sym(size.letter) in tested:
                lines.append(language.assigned(printer.text(Bracket("given", (Sym(size.letter),))), language.given(size)))
        definitions = [item for item in program.definitions if item.letter in wanted]
        return lines + [language.assigned(printer.symbol(item.letter), printer.text(item.formula)) for item in definitions]

    def regimes(self) -> list[Function]:
        """The functions of the regimes' work; a regime may be the first one without gradients."""
        found = []
        for key, regime in self.program.works():
            if regime.name == self.program.regimes[0].name:
                first, base = regime, f"_{identifier(key)}"
            under = f", convention '{key.removeprefix(regime.name + ' ')}'" if key != regime.name else ""
            doc = f"Regime '{regime.name}'{under}{': ' + regime.doc if regime.doc else ''}."
            if regime is not first and untrained(regime) and forward_only(regime) == forward_only(first):
                found.append(Function(f"_{identifier(key)}", doc, base=base))
            else:
                found.append(self.regime(f"_{identifier(key)}", regime, doc))
        return found

    def regime(self, name: str, regime: RegimeLines, doc: str) -> Function:
        """The function that returns the lines of a regime."""
        amounts = list(dict.fromkeys(line.amount for line in regime.lines))
        vectors = [formula for amount in amounts for _, formula in (*amount.useful, *amount.executed)]
        rows = [(line.module, cells_of(line)) for line in regime.lines]
        scope = Scope(self, [*vectors, *(formula for _, cells in rows for formula in formulas_of(cells))])
        table = shared(rows, scope.taken)
        scope.share([*vectors, *(formula for cells in table.cells() for formula in formulas_of(cells))])
        moments = ", ".join(moment.name for moment in self.program.moments)
        scope.statements.append(self.language.remark(f"what a contraction runs over, in multiples of ({moments})"))
        names = short_names(amounts, self.program)
        scope.statements += [
            self.language.assigned(names[amount.name], self.amount(amount, scope.printer)) for amount in amounts
        ]

        def columns(path: str, cells: Cells) -> list[str]:
            amount, unit, forward, backward, recomputed, contraction = cells
            text = scope.printer.text
            gradients, again = [text(count) for count in backward], text(recomputed)
            return self.language.line(path, names[amount], (text(unit), text(forward)), gradients, again, contraction)

        return printed(name, doc, scope, table, columns, self.language.lines_at)

    def amount(self, amount: Amount, printer: CodePrinter) -> str:
        """A vector over the moments; a choice of two vectors if conventions differ."""

        def vector(terms: tuple[tuple[int, Formula], ...]) -> str:
            places = [printer.text(ZERO)] * len(self.program.moments)
            for position, formula in terms:
                places[position] = printer.text(formula)
            return self.language.vector(places)

        useful, executed = vector(amount.useful), vector(amount.executed)
        return useful if useful == executed else self.language.choice(useful, executed)

    def parameters(self) -> tuple[list[tuple[str, str]], list[Function]]:
        """The name of each regime's function of parameters, and the distinct functions."""
        names: list[tuple[str, str]] = []
        functions: dict[tuple[Tensor, ...], Function] = {}
        for regime in self.program.regimes:
            if regime.tensors not in functions:
                name = "_parameters" + (f"_{identifier(regime.name)}" if functions else "")
                functions[regime.tensors] = self.tensors(name, regime.tensors)
            names.append((regime.name, functions[regime.tensors].name))
        return names, list(functions.values())

    def tensors(self, name: str, tensors: Sequence[Tensor]) -> Function:
        """The function that counts elements by name of parameter; tensors of one name are added."""
        counts = {path: tuple(some) for path, some in grouped((tensor.name, tensor.count) for tensor in tensors).items()}
        scope = Scope(self, [tensor.count for tensor in tensors])
        table = shared(list(counts.items()), scope.taken)
        scope.share(count for cells in table.cells() for count in cells)

        def columns(path: str, cells: tuple[Formula, ...]) -> list[str]:
            return self.language.count(path, " + ".join(scope.printer.text(count) for count in cells))

        doc = "Elements per parameter, all copies together."
        return printed(name, doc, scope, table, columns, self.language.counts_at)

    def trained(self) -> list[tuple[str, str, list[str], str]]:
        """For regimes that train only some parameters: name, function, its statements, and the number of trained elements."""
        found = []
        for regime in self.program.regimes:
            if not all(regime.trains):
                scope = Scope(self, [regime.trainable])
                scope.share([regime.trainable])
                name = f"_trained_{identifier(regime.name)}"
                found.append((regime.name, name, scope.statements, scope.printer.text(regime.trainable)))
        return found


def work_context(tables: Tables) -> dict[str, Any]:
    """The names of a template for the functions of work and parameters.

    ``hidden`` are the lines that PyTorch's counter does not see, ``work`` the functions of the regimes by key.
    """
    regimes = tables.program.regimes
    works = dict(tables.program.works())
    names, counts = tables.parameters()
    functions = tables.regimes()
    return {
        "regime_names": [regime.name for regime in regimes],
        "regimes": functions,
        "work": [(key, function.name) for key, function in zip(works, functions, strict=True)],
        "blocks": any(function.blocks for function in functions),
        "hidden": {
            key: tuple(position for position, line in enumerate(regime.lines) if not line.seen) for key, regime in works.items()
        },
        "parameters": counts,
        "parameter_names": names,
        "parameter_blocks": any(function.blocks for function in counts),
        "trained": tables.trained(),
    }


class Scope:
    """The body of a function that evaluates formulas: its statements, the names in it, and a printer that uses the names."""

    def __init__(self, tables: Tables, formulas: Sequence[Formula]) -> None:
        self.language = tables.language
        self.printer = tables.language.printer()
        formulas = tuple(dict.fromkeys(formulas))
        names, counts = self.tallied(formulas, tables.program)
        self.statements = [*tables.letters(formulas), *counts]
        self.printer.named |= names
        letters = {size.letter for size in tables.program.fields} | {item.letter for item in tables.program.definitions}
        self.taken = letters | set(names.values())

    def tallied(self, formulas: Iterable[Formula], program: Program) -> tuple[dict[Formula, str], list[str]]:
        """A name for each count over a list of layers, and the statements that count."""
        labels, lines = dict(program.loops), []
        names: dict[Formula, str] = {}
        for tally in dict.fromkeys(tally for formula in formulas for tally in tallies(formula)):
            label = labels.get(tally.index, "sum" if tally.index.endswith("@") else "layers")
            names[tally] = f"{label}_{sum(name.rpartition('_')[0] == label for name in names.values()) + 1}"
            lines.append(self.language.assigned(names[tally], self.printer.text(tally)))
        return names, lines

    def share(self, formulas: Iterable[Formula]) -> None:
        """Assign names to the parts that several of ``formulas`` have in common."""
        self.statements += [self.language.assigned(*part) for part in named_parts(formulas, self.printer, self.taken)]


def untrained(regime: RegimeLines) -> bool:
    """Whether only the forward pass runs."""
    return all(count == ZERO for line in regime.lines for count in (*line.backward, line.recomputed))


def forward_only(regime: RegimeLines) -> list[object]:
    """The forward pass of a regime, for comparison."""
    return [(line.module, line.amount, line.unit, line.forward, line.contraction, len(line.backward)) for line in regime.lines]


def short_names(amounts: Sequence[Amount], program: Program) -> dict[str, str]:
    """The names of amounts in tables; a long name gives way to that of the amount's only moment."""
    names = {amount.name: f"{amount.name}_" for amount in amounts}
    for amount in amounts:
        alone = amount.useful if amount.useful == amount.executed and [count for _, count in amount.useful] == [ONE] else ()
        short = [f"{program.moments[position].name}_" for position, _ in alone]
        if len(amount.name) > LONG and short and len(short[0]) < len(amount.name) and short[0] not in names.values():
            names[amount.name] = short[0]
    return names


def cells_of(line: Line) -> Cells:
    """The cells of a line, without its module."""
    return line.amount.name, line.unit, line.forward, line.backward, line.recomputed, line.contraction


def formulas_of(cells: Cells) -> list[Formula]:
    """The formulas in the cells of a line."""
    _, unit, forward, backward, recomputed, _ = cells
    return [unit, forward, *backward, recomputed]


def printed(
    name: str,
    doc: str,
    scope: Scope,
    table: Table[T],
    columns: Callable[[str, T], list[str]],
    use: Callable[[str, str], str],
) -> Function:
    """The function that returns ``table``; ``columns`` prints the cells of a row, ``use`` the row for a block."""

    def rows(entries: Sequence[Row[T] | Use]) -> list[str]:
        aligned = iter(columns_aligned([columns(row.path, row.cells) for row in entries if isinstance(row, Row)], WIDEST))
        return [next(aligned) if isinstance(entry, Row) else use(entry.path, entry.block) for entry in entries]

    blocks = [(block, rows(entries)) for block, entries in table.blocks]
    return Function(name, doc, scope.statements, blocks, rows(table.rows))
