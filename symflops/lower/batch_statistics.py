"""Statistics of a batch as a whole, such as its longest item, and work without the padding to that item."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from symflops.algebra.functions import Together, Whole, unpadded
from symflops.algebra.polynomial import CONSTANT, Monomial, Polynomial
from symflops.algebra.written import text_of
from symflops.lower.formulas import Formulas
from symflops.lower.names import Names, moment_name, sum_name
from symflops.model.derivation import Work
from symflops.model.graph import Length
from symflops.model.index_sets import ONCE
from symflops.model.sums import Statistic


def without_padding(work: Work) -> Work:
    """``work`` whose useful extent is that of items at their own length, without padding."""
    contraction = work.contraction
    useful = unpadded(contraction.extent.useful, contraction.items != ONCE)
    if useful == contraction.extent.useful:
        return work
    return replace(work, contraction=replace(contraction, extent=replace(contraction.extent, useful=useful)))


def statistics(
    moments: Iterable[Monomial],
    lengths: Iterable[Length],
    rows: Mapping[Monomial, str],
    taken: Collection[str],
    formulas: Formulas,
) -> tuple[Statistic, ...]:
    """The statistics of a batch that ``moments`` contain, inner ones first; ``formulas`` prints them as letters from here on.

    ``rows`` names products of lengths; ``taken`` are letters that no statistic may have.
    """
    sets = {length.symbol: length.items for length in lengths}
    found = {whole for monomial in moments for atom, _ in monomial for whole in atom.atoms(Whole)}
    made: list[Statistic] = []
    names = Names(taken)
    for whole in sorted(found, key=lambda atom: (len(atom.atoms(Whole)), text_of(atom))):
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
