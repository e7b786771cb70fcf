"""The work of all regimes in one table: a row says a contraction once, and how often each kind of regime runs it.

Regimes of one kind differ only in whether gradients are computed and whether work is recomputed. An adapter renames the module
that it wraps: a row stands under the module's own name, and says what stands behind it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from symflops.emit.code.sharing import shared
from symflops.emit.code.tables import Function, Scope, Tables, identifier, printed, short_names
from symflops.emit.grouping import grouped
from symflops.emit.python.tables import row
from symflops.emit.rendering import tuple_text
from symflops.model.formula import ZERO, Formula
from symflops.model.program import Line, Tensor
from symflops.runtime.module_sizes import tensors_of

WRAPPED = ".base_layer"
ADAPTER = ".lora_"

Key = tuple[str, str, Formula, str]
"""What a row says of all kinds: its module, what it runs over, FLOPs of one, and the contraction."""


@dataclass(frozen=True, slots=True)
class Cell:
    """How often a kind of regime runs a contraction, and what stands behind its module's name."""

    forward: Formula
    backward: tuple[Formula, ...]
    recomputed: Formula
    behind: str

    def formulas(self) -> tuple[Formula, ...]:
        """Its formulas."""
        return self.forward, *self.backward, self.recomputed


Kind = list[tuple[Key, Cell]]
Cells = tuple[str, Formula, str, tuple[Cell | None, ...]]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a regime takes of the table: a column, its gradients or none, and what is recomputed or nothing."""

    column: int
    gradients: bool
    recomputed: bool


@dataclass(frozen=True, slots=True)
class Work:
    """The work under some conventions (an empty name for those without rules of their own), and what each regime takes."""

    conventions: tuple[str, ...]
    function: Function
    regimes: Mapping[str, Chosen]


def kinds_of(work: Mapping[str, Sequence[Line]]) -> tuple[list[Kind], dict[str, Chosen]]:
    """The kinds of regimes, by the work of each regime, and what each regime takes of its kind."""
    kinds: list[Kind] = []
    chosen: dict[str, Chosen] = {}
    for regime, lines in work.items():
        own = [(key_of(line), cell_of(line)) for line in lines]
        for column, kind in enumerate(kinds):
            both = joined(kind, own)
            if both is not None:
                kinds[column] = both
                break
        else:
            column = len(kinds)
            kinds.append(own)
        chosen[regime] = Chosen(column, *runs(lines))
    return kinds, chosen


def runs(lines: Sequence[Line]) -> tuple[bool, bool]:
    """Whether a regime computes any gradient, and whether it recomputes anything."""
    gradients = any(count != ZERO for line in lines for count in line.backward)
    return gradients, any(line.recomputed != ZERO for line in lines)


def joined(one: Kind, two: Kind) -> Kind | None:
    """One kind for the regimes of both: each has all gradients or none, and all that is recomputed or nothing."""
    if [(key, cell.forward, len(cell.backward), cell.behind) for key, cell in one] != [
        (key, cell.forward, len(cell.backward), cell.behind) for key, cell in two
    ]:
        return None
    backward = either([cell.backward for _, cell in one], [cell.backward for _, cell in two])
    recomputed = either([(cell.recomputed,) for _, cell in one], [(cell.recomputed,) for _, cell in two])
    if backward is None or recomputed is None:
        return None
    return [
        (key, replace(cell, backward=gradients, recomputed=again))
        for (key, cell), gradients, (again,) in zip(one, backward, recomputed, strict=True)
    ]


def either(one: list[tuple[Formula, ...]], two: list[tuple[Formula, ...]]) -> list[tuple[Formula, ...]] | None:
    """The counts of both if they are equal, those of one if the other's are all 0, else None."""
    if one == two or not any(count != ZERO for counts in two for count in counts):
        return one
    return None if any(count != ZERO for counts in one for count in counts) else two


def key_of(line: Line) -> Key:
    """The part of a line that all kinds of regimes share."""
    return line.module.removesuffix(WRAPPED), line.amount.name, line.unit, line.contraction


def cell_of(line: Line) -> Cell:
    """The part of a line that belongs to its kind of regime."""
    behind = WRAPPED if line.module.endswith(WRAPPED) else ""
    return Cell(line.forward, line.backward, line.recomputed, behind)


def merged(kinds: Sequence[Kind]) -> list[tuple[str, Cells]]:
    """All kinds as one table that keeps the order of each: path, and cells."""
    rows: list[tuple[Key, list[Cell | None]]] = []
    for column, kind in enumerate(kinds):
        rows = list(beside(rows, kind, column))
    return [(path, (amount, unit, contraction, tuple(cells))) for (path, amount, unit, contraction), cells in rows]


def beside(rows: list[tuple[Key, list[Cell | None]]], kind: Kind, column: int) -> Iterator[tuple[Key, list[Cell | None]]]:
    """``rows`` with one more column."""
    matcher = SequenceMatcher(None, [key for key, _ in rows], [key for key, _ in kind], autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            pairs = zip(rows[start:end], kind[first:last], strict=True)
            yield from ((key, [*cells, cell]) for (key, cells), (_, cell) in pairs)
        else:
            yield from ((key, [*cells, None]) for key, cells in rows[start:end])
            yield from ((key, [*([None] * column), cell]) for key, cell in kind[first:last])


def work_tables(tables: Tables) -> list[Work]:
    """The functions that return the work of all regimes; conventions with rules of their own share one if they count alike."""
    regimes = tables.program.regimes
    names = ["", *tables.program.own]
    work = grouped((tuple((regime.name, regime.under(name)) for regime in regimes), name) for name in names)
    return [work_table(tables, dict(lines), tuple(some)) for lines, some in work.items()]


def work_table(tables: Tables, work: Mapping[str, Sequence[Line]], conventions: tuple[str, ...]) -> Work:
    """The function that returns ``work``, and what each regime takes of it."""
    program, language = tables.program, tables.language
    kinds, chosen = kinds_of(work)
    rows = merged(kinds)
    amounts = list(dict.fromkeys(line.amount for lines in work.values() for line in lines))
    vectors = [formula for amount in amounts for _, formula in (*amount.useful, *amount.executed)]
    scope = Scope(tables, [*vectors, *(formula for _, cells in rows for formula in formulas_of(cells))])
    table = shared(rows, scope.taken)
    scope.share([*vectors, *(formula for cells in table.cells() for formula in formulas_of(cells))])
    names = short_names(amounts, program)
    moments = ", ".join(moment.name for moment in program.moments)
    scope.statements.append(language.remark(f"what a contraction runs over, in multiples of ({moments})"))
    scope.statements += [language.assigned(names[amount.name], tables.amount(amount, scope.printer)) for amount in amounts]
    text = scope.printer.text

    def columns(path: str, cells: Cells) -> list[str]:
        amount, unit, contraction, counts = cells
        return row(path, [names[amount], text(unit), *told(counts, text)], contraction)

    doc = "The contractions of every regime; a column for each kind of regime says how often it runs them."
    name = "_work" if "" in conventions else f"_work_{identifier(conventions[0])}"
    doc = doc if "" in conventions else f"{doc[:-1]}, under {', '.join(conventions)}."
    return Work(conventions, printed(name, doc, scope, table, columns, language.lines_at), chosen)


def formulas_of(cells: Cells) -> list[Formula]:
    """The formulas in the cells of a row."""
    return [cells[1], *(formula for cell in cells[3] if cell for formula in cell.formulas())]


def told(cells: Sequence[Cell | None], text: Callable[[Formula], str]) -> list[str]:
    """The cells of the kinds of regimes as code: nothing behind the last kind that runs, no zeros at the end."""
    last = max(column for column, cell in enumerate(cells) if cell)
    found = []
    for cell in cells[: last + 1]:
        words = []
        if cell:
            words = [text(cell.forward), tuple_text([text(count) for count in cell.backward])]
            if cell.recomputed != ZERO or cell.behind:
                words.append(text(cell.recomputed))
            if cell.behind:
                words.append(json.dumps(cell.behind))
        found.append(tuple_text(words))
    return found


def tensor_tables(tables: Tables) -> tuple[list[Function], dict[str, list[str]]]:
    """The functions that count parameters, and per regime those that it takes: its own, and those of its adapters."""
    regimes = tables.program.regimes
    own = regimes[0].tensors
    functions: dict[tuple[Tensor, ...], Function] = {own: tables.tensors("_parameters", own)}
    names: dict[str, list[str]] = {}
    for regime in regimes:
        added = tuple(tensor for tensor in regime.tensors if ADAPTER in tensor.name)
        wrapped = bool(added) and list(tensors_of(counts(own), counts(added)).items()) == counts(regime.tensors)
        printed_ones = added if wrapped else regime.tensors
        if printed_ones not in functions:
            name = f"_{'adapters' if wrapped else 'parameters'}_{identifier(regime.name)}"
            functions[printed_ones] = tables.tensors(name, printed_ones)
        names[regime.name] = [*(["_parameters"] if wrapped else []), functions[printed_ones].name]
    return list(functions.values()), names


def counts(tensors: Sequence[Tensor]) -> list[tuple[str, Any]]:
    """The formulas of the elements by name."""
    return [(name, tuple(some)) for name, some in grouped((tensor.name, tensor.count) for tensor in tensors).items()]
