"""Batches in any language: streams, their columns of lengths, and plans for the sums over them."""

from __future__ import annotations

from dataclasses import dataclass

from symflops.emit.grouping import grouped
from symflops.formula.formula import Formula, Sym, symbols
from symflops.ir.batch import Moment, Statistic
from symflops.ir.index_sets import ONCE
from symflops.ir.program import Program

StreamRow = tuple[str, str, tuple[str, ...], bool]


@dataclass(frozen=True, slots=True)
class Summed:
    """Plan of a sum or maximum of ``formula`` over the items of a batch.

    Attributes:
        kind: ``once``: a formula of the batch as a whole, without a sum; ``count``: a constant times the number of items;
            ``column``: the sum of one column; ``items``: the formula is evaluated for each item.
        columns: The columns of lengths in the formula; for ``count`` a column with one entry per item, if there is one.
        formula: The formula.
    """

    kind: str
    columns: tuple[str, ...]
    formula: Formula


def summed(what: Moment | Statistic, program: Program) -> Summed:
    """Plan the computation of a moment or statistic from the columns of a batch."""
    if what.items == ONCE:
        return Summed("once", (), what.formula)
    wanted = lengths_in(what.formula, program)
    if not wanted:
        group = next((group for group in stream_groups(program) if group[0][1] == what.items), None)
        return Summed("count", columns_of(group[0])[:1] if group else (), what.formula)
    return Summed("column" if what.formula == Sym(wanted[0]) else "items", tuple(wanted), what.formula)


def stream_rows(program: Program) -> list[StreamRow]:
    """Return the streams that a batch gives: (name, index set, length variables, is optional)."""
    return [(stream.name, stream.items, stream.variables, stream.optional) for stream in program.streams if stream.given]


def stream_groups(program: Program) -> list[list[StreamRow]]:
    """Return the rows of :func:`stream_rows`, in one list per index set."""
    return list(grouped((row[1], row) for row in stream_rows(program)).values())


def columns(program: Program) -> list[str]:
    """Return the names of all columns of a batch, by index set and stream."""
    return [column for group in stream_groups(program) for row in group for column in columns_of(row)]


def columns_of(row: StreamRow) -> tuple[str, ...]:
    """Return the columns of a stream: its length variables, or without any the name of the stream."""
    return row[2] or (row[0],)


def lengths_in(formula: Formula, program: Program) -> list[str]:
    """Return the length variables in ``formula``, in the order in which they occur."""
    variables = {name for stream in program.streams for name in stream.variables}
    return [name for name in dict.fromkeys(symbols(formula)) if name in variables]
