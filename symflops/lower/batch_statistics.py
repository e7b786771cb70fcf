"""Statistics of a batch as a whole, such as its longest item, and work without the padding to that item."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sympy import Expr, Symbol

from symflops.formula.functions import Together, Whole, unpadded
from symflops.formula.polynomial import Polynomial
from symflops.formula.sparse import CONSTANT, Monomial
from symflops.formula.written import text_of
from symflops.ir.batch import BatchCondition, Statistic
from symflops.ir.graph import Graph, Length, Work
from symflops.ir.index_sets import ONCE
from symflops.lower.formulas import Formulas
from symflops.lower.names import Names, moment_name, sum_name


def without_padding(work: Work) -> Work:
    """``work`` with the useful runs counted at each item's own length instead of the padded one."""
    contraction = work.contraction
    useful = unpadded(contraction.extent.useful, contraction.items != ONCE)
    if useful == contraction.extent.useful:
        return work
    return replace(work, contraction=replace(contraction, extent=replace(contraction.extent, useful=useful)))


def wholes_in(moments: Iterable[Monomial]) -> set[Expr]:
    """The statistics of a whole batch (sums, longest items) that occur in ``moments``, as expressions."""
    return {whole for monomial in moments for atom, _ in monomial for whole in atom.atoms(Whole)}


def batch_conditions(
    graph: Graph,
    measures: Mapping[Symbol, Sequence[Length]],
    known: Sequence[Statistic],
    taken: Collection[str],
    formulas: Formulas,
) -> Iterator[BatchCondition]:
    """Yield the conditions of a graph on whole batches, except those that read a decoded length.

    Args:
        graph: The graph.
        measures: Length -> its batch variables, two if it is decoded token by token.
        known: Statistics that have a name because moments read them.
        taken: Letters that no further statistic may have.
        formulas: Prints the conditions, and statistics as letters.
    """
    decoded = {symbol for symbol, group in measures.items() if len(group) > 1}
    for limit in graph.limits:
        if limit.items == ONCE and decoded.isdisjoint(limit.condition.expr.free_symbols):
            read = [limit.condition.expr, *limit.values]
            wholes = {whole for expr in read for whole in expr.atoms(Whole)}
            names = {whole: formulas.letter(whole) for whole in wholes}
            old = [one for one in known if one.name in names.values()]
            unnamed = [whole for whole, name in names.items() if not name]
            new = statistics(unnamed, graph.lengths, {}, {*taken, *(one.name for one in known)}, formulas)
            yield BatchCondition(
                formulas.of(limit.condition.expr), (*old, *new), limit.text, tuple(map(formulas.of, limit.values))
            )
            known = (*known, *new)


def statistics(
    found: Iterable[Expr],
    lengths: Iterable[Length],
    rows: Mapping[Monomial, str],
    taken: Collection[str],
    formulas: Formulas,
) -> tuple[Statistic, ...]:
    """Give names to statistics of a whole batch, and make ``formulas`` print them as letters from here on.

    Args:
        found: The statistics as expressions.
        lengths: The batch variables.
        rows: Product of lengths -> the name of a value with that many rows, to be used in names.
        taken: Letters that no statistic may have.
        formulas: Prints expressions.

    Returns:
        The statistics, each after those that it reads.
    """
    sets = {length.symbol: length.items for length in lengths}
    made: list[Statistic] = []
    names = Names(taken)
    for whole in sorted(set(found), key=lambda atom: (len(atom.atoms(Whole)), text_of(atom))):
        value = whole.args[-1]
        if isinstance(whole, Together):
            kind, items = "sum", whole.args[0].name
            base = moment_name(items, CONSTANT, {}) if value == 1 else f"total_{sum_name(Polynomial.of(value), rows)}"
        else:
            kind, items = "max", next(sets[symbol] for symbol in sorted(value.free_symbols, key=str) if symbol in sets)
            base = f"longest_{sum_name(Polynomial.of(value), rows)}"
        name = names.unused(base)
        made.append(Statistic(name, kind, items, formulas.of(value)))
        formulas.assign_letter(whole, name)
    return tuple(made)
