"""How any language says batches: the streams that a batch gives, their columns of lengths, and the sums over them."""

from __future__ import annotations

from dataclasses import dataclass

from symflops.model.formula import Formula, Sym, symbols
from symflops.model.index_sets import ONCE
from symflops.model.program import Moment, Program, Statistic

StreamRow = tuple[str, str, tuple[str, ...], bool]


@dataclass(frozen=True, slots=True)
class Summed:
    """What is summed, or of which the largest is taken: ``formula`` over the items of ``columns``.

    ``kind`` is ``once`` (the formula is of the batch as a whole), ``count`` (it is the same for every item of the one column,
    which is empty where no stream has such items), ``column`` (it is the one column itself) or ``items``.
    """

    kind: str
    columns: tuple[str, ...]
    formula: Formula


def summed(what: Moment | Statistic, program: Program) -> Summed:
    """How a moment or a statistic is read off the columns of a batch."""
    if what.items == ONCE:
        return Summed("once", (), what.formula)
    wanted = lengths_in(what.formula, program)
    if not wanted:
        group = next((group for group in stream_groups(program) if group[0][1] == what.items), None)
        return Summed("count", columns_of(group[0])[:1] if group else (), what.formula)
    return Summed("column" if what.formula == Sym(wanted[0]) else "items", tuple(wanted), what.formula)


def stream_rows(program: Program) -> list[StreamRow]:
    """The streams that a batch gives: name, index set, variables, and whether it may be left out."""
    return [(stream.name, stream.items, stream.variables, stream.optional) for stream in program.streams if stream.given]


def stream_groups(program: Program) -> list[list[StreamRow]]:
    """Those streams by index set."""
    groups: dict[str, list[StreamRow]] = {}
    for row in stream_rows(program):
        groups.setdefault(row[1], []).append(row)
    return list(groups.values())


def columns(program: Program) -> list[str]:
    """The variables in the order in which a batch hands over their columns."""
    return [column for group in stream_groups(program) for row in group for column in columns_of(row)]


def columns_of(row: StreamRow) -> tuple[str, ...]:
    """The columns of one stream: its variables, or its name where it only counts items."""
    return row[2] or (row[0],)


def lengths_in(formula: Formula, program: Program) -> list[str]:
    """The lengths of an item that a formula reads."""
    variables = {name for stream in program.streams for name in stream.variables}
    return [name for name in dict.fromkeys(symbols(formula)) if name in variables]
