"""Batches as a whole: work without the padding of items to the longest of a batch, and the letters of their figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from symflops.algebra.functions import Together, Whole, unpadded
from symflops.algebra.polynomial import CONSTANT, Monomial, Polynomial
from symflops.lower.formulas import Formulas
from symflops.lower.names import moment_name, sum_name
from symflops.model.derivation import Work
from symflops.model.graph import Length
from symflops.model.index_sets import ONCE
from symflops.model.program import Statistic


def without_padding(work: Work) -> Work:
    """``work`` whose useful part is that of items as long as they are themselves."""
    contraction = work.contraction
    useful = unpadded(contraction.extent.useful, contraction.items != ONCE)
    if useful == contraction.extent.useful:
        return work
    return replace(work, contraction=replace(contraction, extent=replace(contraction.extent, useful=useful)))


def statistics(
    moments: Iterable[tuple[str, Monomial]],
    lengths: Iterable[Length],
    rows: Mapping[Monomial, str],
    taken: Collection[str],
    formulas: Formulas,
) -> tuple[Statistic, ...]:
    """What ``moments`` hold that is of a batch as a whole, one inside another first; from here on ``formulas`` has a letter
    for each, which is none of those ``taken``.
    """
    sets = {length.symbol: length.items for length in lengths}
    found = {whole for _, monomial in moments for atom, _ in monomial for whole in atom.atoms(Whole)}
    made: list[Statistic] = []
    for whole in sorted(found, key=lambda atom: (len(atom.atoms(Whole)), str(atom))):
        value = whole.args[-1]
        if isinstance(whole, Together):
            kind, items = "sum", whole.args[0].name
            base = moment_name(items, CONSTANT, {}) if value == 1 else f"total_{sum_name(Polynomial.of(value), rows)}"
        else:
            kind, items = "max", next(sets[symbol] for symbol in sorted(value.free_symbols, key=str) if symbol in sets)
            base = f"longest_{sum_name(Polynomial.of(value), rows)}"
        name, number = base, 1
        while name in taken or name in (statistic.name for statistic in made):
            number += 1
            name = f"{base}_{number}"
        made.append(Statistic(name, kind, items, formulas.of(value)))
        formulas.call(whole, name)
    return tuple(made)
