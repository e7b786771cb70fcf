"""Function bodies that evaluate formulas in any language, with common subexpressions and rows shared.

Modules with equal rows share one block; a repeated part of formulas is assigned to a variable.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Generic, TypeVar

from symflops.emit.code.infix import CodePrinter, Language
from symflops.formula.formula import Bracket, Formula, Num, Power, Sym, TallyOf, Text, brackets, parts, symbols, tallies, walk
from symflops.formula.terms import is_negative
from symflops.ir.program import Program, needed

T = TypeVar("T")
LEAST = 8
"""Minimum number of nodes of a common subexpression that gets a variable."""


@dataclass(frozen=True, slots=True)
class Row(Generic[T]):
    """One row of a table: its cells, and the path of the module or parameter that it describes."""

    path: str
    cells: T


@dataclass(frozen=True, slots=True)
class Use:
    """Reference to a shared block: its rows stand in the table with ``path`` before their own paths."""

    path: str
    block: str


@dataclass(frozen=True, slots=True)
class Table(Generic[T]):
    """A table: its rows in order, and the blocks of rows that are shared, as (name, rows).

    A block comes before the blocks that refer to it.
    """

    blocks: tuple[tuple[str, tuple[Row[T] | Use, ...]], ...]
    rows: tuple[Row[T] | Use, ...]

    def cells(self) -> list[T]:
        """Return the cells of all rows that are printed; those of a shared block only once."""
        every = [*(entry for _, entries in self.blocks for entry in entries), *self.rows]
        return [entry.cells for entry in every if isinstance(entry, Row)]


def shared(rows: Sequence[tuple[str, T]], taken: set[str]) -> Table[T]:
    """Build a table from (path, cells) pairs, in which modules with equal rows share one block.

    Rows are equal if their cells and their paths within the module are. ``taken`` are reserved names, to which the names of
    the blocks are added.
    """
    return _Blocks(_Tree(rows), taken).table()


Item = tuple[str, bool, int]
"""An entry of a module: its name, whether it is a module, and the number of its node or of its cells."""


class _Tree(Generic[T]):
    """Tree of the modules of a table, in which modules with equal rows are one node with one number.

    A node has a higher number than the nodes inside it.
    """

    def __init__(self, rows: Sequence[tuple[str, T]]) -> None:
        self.cells: dict[T, int] = {}
        self.nodes: dict[tuple[Item, ...], int] = {}
        self.uses: Counter[int] = Counter()
        numbered = [(path.split("."), self.cells.setdefault(cells, len(self.cells))) for path, cells in rows]
        self.root = self.node(numbered)
        self.values = list(self.cells)
        self.items = list(self.nodes)

    def node(self, rows: Sequence[tuple[list[str], int]]) -> int:
        """Add the node that ``rows`` form and return its number; equal rows return the same number."""
        found = tuple(self.items_of(rows))
        if found not in self.nodes:
            self.nodes[found] = len(self.nodes)
            self.uses.update(number for _, module, number in found if module)
        return self.nodes[found]

    def items_of(self, rows: Sequence[tuple[list[str], int]]) -> Iterator[Item]:
        """Yield the entries of the node that ``rows`` form: rows, and modules inside it.

        A module with a single entry is one entry with a joined name, as in ``mlp.up``.
        """
        for (name, module), group in groupby(rows, lambda row: (row[0][0], len(row[0]) > 1)):
            if not module:
                yield from ((name, False, cells) for _, cells in group)
                continue
            inner = [(path[1:], cells) for path, cells in group]
            alone = list(self.items_of(inner)) if len({path[0] for path, _ in inner}) == 1 else []
            if len(alone) == 1:
                yield f"{name}.{alone[0][0]}", *alone[0][1:]
            else:
                yield name, True, self.node(inner)


class _Blocks(Generic[T]):
    """Turns nodes that several modules share into named blocks."""

    def __init__(self, tree: _Tree[T], taken: set[str]) -> None:
        self.tree = tree
        self.taken = taken
        self.names: dict[int, str] = {}
        self.blocks: list[tuple[str, tuple[Row[T] | Use, ...]]] = []
        self.sizes: list[int] = []
        for items in tree.items:
            self.sizes.append(sum(1 if not module or self.repeats(inner) else self.sizes[inner] for _, module, inner in items))

    def repeats(self, node: int) -> bool:
        """Whether a node becomes a block: several modules share it, and it has more than one row."""
        return self.tree.uses[node] > 1 and self.sizes[node] > 1

    def table(self) -> Table[T]:
        """Build the table."""
        rows = tuple(self.entries(self.tree.root, ""))
        return Table(tuple(self.blocks), rows)

    def entries(self, node: int, before: str) -> list[Row[T] | Use]:
        """Return the rows and the references to blocks of a node, with ``before`` before their paths."""
        found: list[Row[T] | Use] = []
        for name, module, number in self.tree.items[node]:
            path = f"{before}{name}"
            if not module:
                found.append(Row(path, self.tree.values[number]))
            elif self.repeats(number):
                found.append(Use(path, self.block(number, path)))
            else:
                found.extend(self.entries(number, f"{path}."))
        return found

    def block(self, node: int, path: str) -> str:
        """Return the name of the block for ``node``; the first call adds the block to the table.

        ``path`` is the path at which it is used first, from which the name is taken.
        """
        if node not in self.names:
            entries = tuple(self.entries(node, ""))
            words = [word for word in path.split(".") if word.isidentifier()]
            self.names[node] = unused(words[-1] if words else "module", self.taken)
            self.blocks.append((self.names[node], entries))
        return self.names[node]


def unused(word: str, taken: set[str]) -> str:
    """Return the first of ``word_1``, ``word_2``, ... that is not in ``taken``, and add it to ``taken``."""
    number = 1
    while f"{word}_{number}" in taken:
        number += 1
    taken.add(f"{word}_{number}")
    return f"{word}_{number}"


def named_parts(formulas: Iterable[Formula], printer: CodePrinter, taken: set[str]) -> list[tuple[str, str]]:
    """Assign common subexpressions of ``formulas`` to variables; return pairs (variable, expression).

    From then on ``printer`` prints the variables. Sums over iterations are not searched for subexpressions.
    """
    uses: Counter[Formula] = Counter()
    order: list[Formula] = []

    def count(formula: Formula) -> None:
        uses[formula] += 1
        if uses[formula] == 1 and not isinstance(formula, TallyOf):
            for part in parts(formula):
                count(part)
            order.append(formula)

    for formula in formulas:
        count(formula)
    found = []
    for formula in order:
        if uses[formula] > 1 and is_worth(formula):
            name = unused("case" if isinstance(formula, Bracket) else "part", taken)
            found.append((name, printer.alone(formula)))
            printer.named[formula] = name
    return found


def is_worth(formula: Formula) -> bool:
    """Whether a repeated part of formulas gets a variable: it is long, or a comparison with a string.

    Divisors and negative terms get none, because the surrounding product or sum prints them.
    """
    match formula:
        case Num() | Sym() | Text() | TallyOf():
            return False
        case Bracket() if any(isinstance(argument, Text) for argument in formula.arguments):
            return True
    is_divisor = isinstance(formula, Power) and formula.exponent < 0
    return not is_divisor and not is_negative(formula) and sum(1 for _ in walk(formula)) >= LEAST


def columns_aligned(table: Sequence[Sequence[str]], widest: int) -> list[str]:
    """Align the columns of ``table`` and return its lines.

    Cells longer than ``widest``, after the first column a quarter of that, do not widen their column.
    """
    widths = []
    for column in zip_longest(*table, fillvalue=""):
        widths.append(max((len(cell) for cell in column if len(cell) <= widest), default=0))
        widest = widest if len(widths) > 1 else widest // 4
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in table]


def identifier(regime: str) -> str:
    """Turn a regime's name into part of an identifier."""
    return re.sub(r"\W", "_", regime)


def letters_read(program: Program, language: Language, formulas: Collection[Formula]) -> list[str]:
    """Return statements that assign to each letter in ``formulas`` its value from ``sizes``.

    Letters of definitions are assigned after the sizes.
    """
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


class Scope:
    """Body of a generated function that evaluates formulas.

    ``statements`` assign the variables, ``taken`` are their names, and ``printer`` prints formulas in terms of them.
    """

    def __init__(self, program: Program, language: Language, formulas: Iterable[Formula]) -> None:
        self.language, self.printer = language, language.printer()
        formulas = tuple(dict.fromkeys(formulas))
        names, counts = self.tallied(formulas, program)
        self.statements = [*letters_read(program, language, formulas), *counts]
        self.printer.named |= names
        letters = {size.letter for size in program.fields} | {item.letter for item in program.definitions}
        self.taken = letters | set(names.values())

    def tallied(self, formulas: Iterable[Formula], program: Program) -> tuple[dict[Formula, str], list[str]]:
        """Assign each sum over iterations to a variable; return (variable by formula, assignments)."""
        labels, lines = dict(program.loops), []
        names: dict[Formula, str] = {}
        for tally in dict.fromkeys(tally for formula in formulas for tally in tallies(formula)):
            label = labels.get(tally.index, "sum" if tally.index.endswith("@") else "layers")
            names[tally] = f"{label}_{sum(name.rpartition('_')[0] == label for name in names.values()) + 1}"
            lines.append(self.language.assigned(names[tally], self.printer.text(tally)))
        return names, lines

    def share(self, formulas: Iterable[Formula]) -> None:
        """Add statements that assign common subexpressions of ``formulas`` to variables."""
        self.statements += [self.language.assigned(*part) for part in named_parts(formulas, self.printer, self.taken)]
