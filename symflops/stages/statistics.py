"""Batches as a whole: work without the padding of items to the longest of a batch, and the letters that the longest have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from symflops.algebra.functions import Longest, unpadded
from symflops.algebra.polynomial import Monomial, Polynomial
from symflops.model.derivation import Work
from symflops.model.program import Statistic
from symflops.stages.formulas import Formulas
from symflops.stages.naming import sum_name


def without_padding(work: Work) -> Work:
    """``work`` whose useful part is that of items as long as they are themselves."""
    contraction = work.contraction
    useful = unpadded(contraction.extent.useful)
    if useful == contraction.extent.useful:
        return work
    return replace(work, contraction=replace(contraction, extent=replace(contraction.extent, useful=useful)))


def statistics(
    moments: Iterable[tuple[str, Monomial]], rows: Mapping[Monomial, str], taken: Collection[str], formulas: Formulas
) -> tuple[Statistic, ...]:
    """What ``moments`` hold that is of a batch as a whole, one inside another first; from here on ``formulas`` has a letter
    for each, which is none of those ``taken``.
    """
    found = {longest: items for items, monomial in moments for atom, _ in monomial for longest in atom.atoms(Longest)}
    made: list[Statistic] = []
    for longest in sorted(found, key=lambda atom: (len(atom.atoms(Longest)), str(atom))):
        base = name = f"longest_{sum_name(Polynomial.of(longest.args[0]), rows)}"
        number = 1
        while name in taken or name in (statistic.name for statistic in made):
            number += 1
            name = f"{base}_{number}"
        made.append(Statistic(name, found[longest], formulas.of(longest.args[0])))
        formulas.call(longest, name)
    return tuple(made)
