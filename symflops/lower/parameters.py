"""The parameters of a derivation as a program lists them; what those of one shape have in common is worked out once."""

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
    """What is the same for parameters of one shape and as many copies, which exist under one condition."""

    elements: Polynomial
    shape: tuple[Formula, ...]
    copies: Formula
    total: Formula
    exists: Formula


class Held:
    """Writes down parameters, and adds them up."""

    def __init__(self, formulas: Formulas) -> None:
        self.formulas = formulas
        self.known: dict[object, Measure] = {}

    def tensor(self, derivation: Derivation, entry: ParameterCount) -> Tensor:
        """One parameter: its path and the indices in it, its shape, and how many elements all its copies have."""
        path, one = entry.parameter.path, self.measure(entry)
        template = tuple(part if isinstance(part, str) else self.formulas.of(part) for part in path.parts)
        ranges = tuple(
            (
                loop.index.name,
                self.formulas.of(loop.offset),
                self.formulas.of(loop.offset + loop.count),
                self.formulas.of(bracket),
            )
            for loop, bracket in enclosing(derivation.graph.body, entry)
        ) + tuple((index.name, ZERO, self.formulas.of(count), ONE) for index, count in entry.parameter.lists)
        return Tensor(str(path), one.shape, one.copies, one.total, template, one.exists, ranges)

    def total(self, entries: Sequence[ParameterCount]) -> Polynomial:
        """The elements of all ``entries``."""
        times = Counter(map(identity, entries))
        some = {identity(entry): entry for entry in entries}
        return Polynomial.total(self.measure(some[alike]).elements.scale(number) for alike, number in times.items())

    def measure(self, entry: ParameterCount) -> Measure:
        """The elements of all copies of a parameter, and what else a program says of it."""
        alike = identity(entry)
        if alike not in self.known:
            parameter, exists, of = entry.parameter, entry.exists.expr, self.formulas.of
            elements = Polynomial.of(parameter.count) * Polynomial.of(entry.copies) * Polynomial.of(exists)
            shape = tuple(map(of, parameter.shape))
            self.known[alike] = Measure(elements, shape, of(entry.copies), self.formulas.plain(elements), of(exists))
        return self.known[alike]


def identity(entry: ParameterCount) -> object:
    """What the elements of a parameter depend on."""
    return entry.parameter.shape, entry.copies, entry.exists
