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
    """``work`` with its useful extent at the items' own lengths, without padding."""
    contraction = work.contraction
    useful = unpadded(contraction.extent.useful, contraction.items != ONCE)
    if useful == contraction.extent.useful:
        return work
    return replace(work, contraction=replace(contraction, extent=replace(contraction.extent, useful=useful)))


def wholes_in(moments: Iterable[Monomial]) -> set[Expr]:
    """Batch statistics (sums, longest items) that ``moments`` contain, as expressions."""
    return {whole for monomial in moments for atom, _ in monomial for whole in atom.atoms(Whole)}


def batch_conditions(
    graph: Graph,
    measures: Mapping[Symbol, Sequence[Length]],
    known: Sequence[Statistic],
    taken: Collection[str],
    formulas: Formulas,
) -> Iterator[BatchCondition]:
    """Yield conditions on a whole batch, none on decoded streams; ``known``: statistics in moments."""
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
    """Name the statistics ``found``, inner ones first; ``formulas`` prints them as letters afterwards.

    ``rows`` names products of lengths; ``taken`` are letters that no statistic may have.
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
