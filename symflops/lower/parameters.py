"""Lowers the parameters of a derivation; equal parameters share cached formulas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sympy import Expr

from symflops.count.per_parameter import shares
from symflops.derive.analyses import ParameterReaders
from symflops.formula.formula import ONE, ZERO, Formula
from symflops.formula.polynomial import Polynomial
from symflops.ir.graph import Derivation, ParameterCount
from symflops.ir.nodes import Loop
from symflops.ir.program import Tensor
from symflops.lower.formulas import Formulas


class Measure(NamedTuple):
    """Formulas that parameters share if shape, number of copies and condition are equal.

    Attributes:
        elements: Number of elements of all copies, as a polynomial.
        shape: The shape of one copy.
        copies: Number of copies.
        total: ``elements`` as a formula.
        exists: 1 if the model has the parameter, else 0.
    """

    elements: Polynomial
    shape: tuple[Formula, ...]
    copies: Formula
    total: Formula
    exists: Formula


class Parameters:
    """Converts the parameters of derivations to those of a program, and adds up their elements."""

    def __init__(self, formulas: Formulas) -> None:
        self.formulas = formulas
        self.known: dict[object, Measure] = {}

    def tensor(self, readers: ParameterReaders, entry: ParameterCount) -> Tensor:
        """A parameter as a program stores it; ``readers`` finds the loops around the operators that read it."""
        path, one, of = entry.parameter.path, self.measure(entry), self.formulas.of
        template = tuple(part if isinstance(part, str) else of(part) for part in path.parts)
        loops = tuple(
            (loop.index.name, of(loop.offset), of(loop.offset + loop.count), of(bracket))
            for loop, bracket in enclosing(readers, entry)
        )
        lists = tuple((index.name, ZERO, of(count), ONE) for index, count in entry.parameter.lists)
        return Tensor(str(path), one.shape, one.copies, one.total, template, one.exists, loops + lists)

    def total(self, entries: Sequence[ParameterCount]) -> Formula:
        """The number of elements of all ``entries`` together."""
        times = Counter(map(identity, entries))
        some = {identity(entry): entry for entry in entries}
        elements = (self.measure(some[equal]).elements.scale(number) for equal, number in times.items())
        return self.formulas.simplified(Polynomial.total(elements))

    def active(self, derivation: Derivation) -> Formula:
        """The number of parameters that one token uses: all but the experts that it is not routed to."""
        parts = list(shares(derivation))
        if all(times == 1 for _, times in parts):
            return self.total(derivation.parameters)
        alike = Counter((identity(entry), times) for entry, times in parts)
        some = {identity(entry): entry for entry, _ in parts}
        elements = (self.measure(some[equal]).elements * Polynomial.of(times).scale(n) for (equal, times), n in alike.items())
        return self.formulas.simplified(Polynomial.total(elements))

    def measure(self, entry: ParameterCount) -> Measure:
        """The formulas of a parameter's shape, numbers of copies and elements, and condition.

        They are cached for all parameters with the same :func:`identity`.
        """
        key = identity(entry)
        if key not in self.known:
            parameter, exists, of = entry.parameter, entry.exists.expr, self.formulas.of
            elements = Polynomial.of(parameter.count) * Polynomial.of(entry.copies) * Polynomial.of(exists)
            shape = tuple(map(of, parameter.shape))
            self.known[key] = Measure(elements, shape, of(entry.copies), self.formulas.plain(elements), of(exists))
        return self.known[key]


def enclosing(readers: ParameterReaders, entry: ParameterCount) -> Iterator[tuple[Loop, Expr]]:
    """Yield the loops whose index is in the path of a parameter, outermost first.

    Each comes with the condition on the index under which the body that reads the parameter runs.
    """
    indices = entry.parameter.path.indices
    for loop, bracket in readers.classes(entry.parameter) if indices else ():
        if loop.index in indices and (entry.within is None or (loop.index, bracket) in entry.within):
            yield loop, bracket.expr


def identity(entry: ParameterCount) -> object:
    """What decides the formulas of a parameter: its shape, number of copies and condition."""
    return entry.parameter.shape, entry.copies, entry.exists
