"""The parameters of a derivation as a program lists them; what equal ones have in common is computed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from symflops.algebra.polynomial import Polynomial
from symflops.lower.formulas import Formulas
from symflops.lower.graph_queries import enclosing
from symflops.model.derivation import Derivation, ParameterCount
from symflops.model.formula import ONE, ZERO, Formula
from symflops.model.program import Tensor


class Measure(NamedTuple):
    """What parameters of one shape, number of copies and condition have in common."""

    elements: Polynomial
    shape: tuple[Formula, ...]
    copies: Formula
    total: Formula
    exists: Formula


class Parameters:
    """Lowers parameters and sums their elements."""

    def __init__(self, formulas: Formulas) -> None:
        self.formulas = formulas
        self.known: dict[object, Measure] = {}

    def tensor(self, derivation: Derivation, entry: ParameterCount) -> Tensor:
        """One parameter: its path with the range of each index, its shape, and the elements of all copies."""
        path, one, of = entry.parameter.path, self.measure(entry), self.formulas.of
        template = tuple(part if isinstance(part, str) else of(part) for part in path.parts)
        loops = tuple(
            (loop.index.name, of(loop.offset), of(loop.offset + loop.count), of(bracket))
            for loop, bracket in enclosing(derivation.graph.body, entry)
        )
        lists = tuple((index.name, ZERO, of(count), ONE) for index, count in entry.parameter.lists)
        return Tensor(str(path), one.shape, one.copies, one.total, template, one.exists, loops + lists)

    def total(self, entries: Sequence[ParameterCount]) -> Formula:
        """The elements of all ``entries``."""
        times = Counter(map(identity, entries))
        some = {identity(entry): entry for entry in entries}
        elements = (self.measure(some[equal]).elements.scale(number) for equal, number in times.items())
        return self.formulas.factored(Polynomial.total(elements))

    def measure(self, entry: ParameterCount) -> Measure:
        """The measure of a parameter, from the cache if an equal one has come before."""
        key = identity(entry)
        if key not in self.known:
            parameter, exists, of = entry.parameter, entry.exists.expr, self.formulas.of
            elements = Polynomial.of(parameter.count) * Polynomial.of(entry.copies) * Polynomial.of(exists)
            shape = tuple(map(of, parameter.shape))
            self.known[key] = Measure(elements, shape, of(entry.copies), self.formulas.plain(elements), of(exists))
        return self.known[key]


def identity(entry: ParameterCount) -> object:
    """What the measure of a parameter depends on."""
    return entry.parameter.shape, entry.copies, entry.exists
