"""Amounts: what contractions run over, as vectors of whole multiples of moments, each under a name."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

from sympy import Expr

from symflops.algebra.polynomial import Polynomial
from symflops.lower.formulas import Formulas
from symflops.lower.moments import Moments, Vector
from symflops.lower.names import last_words, unused
from symflops.model.contraction import Contraction
from symflops.model.derivation import Work
from symflops.model.formula import Formula
from symflops.model.graph import Graph
from symflops.model.program import Amount


class Amounts:
    """The amounts of a program, in the order of the work that runs over them."""

    def __init__(self, graph: Graph, moments: Moments, formulas: Formulas) -> None:
        self.graph = graph
        self.moments = moments
        self.formulas = formulas
        self.known: dict[tuple[str, Expr, Expr], tuple[Amount, Fraction]] = {}

    def of(self, work: Work) -> tuple[Amount, Fraction]:
        """What a contraction runs over, in whole multiples of moments, and the fraction taken out to make them whole."""
        contraction = work.contraction
        key = (contraction.items, contraction.extent.executed, contraction.extent.useful)
        if key not in self.known:
            vectors = [self.moments.vector(contraction.items, extent) for extent in (key[2], key[1])]
            denominators = [f.denominator for vector in vectors for part in vector.values() for f in part.terms.values()]
            factor = Fraction(1, lcm(1, *denominators))
            useful, executed = (self.terms(vector, factor) for vector in vectors)
            self.known[key] = (Amount(self.name(work), useful, executed), factor)
        return self.known[key]

    def terms(self, vector: Vector, factor: Fraction) -> tuple[tuple[int, Formula], ...]:
        """A vector divided by ``factor``: (position of a moment, multiple)."""
        positions = self.moments.index
        terms = ((positions[key], self.formulas.plain(part.scale(1 / factor))) for key, part in vector.items())
        return tuple(sorted(terms, key=lambda term: term[0]))

    def name(self, work: Work) -> str:
        """The stream whose rows it is, else a name after the operator."""
        contraction = work.contraction
        stream = self.stream(contraction) if contraction.kind == "linear" else None
        if stream is not None:
            return stream
        last = last_words(str(work.operator.path)) or work.operator.kind
        last = last if last.isidentifier() else f"{work.operator.kind}_{last}".strip("_")
        used = {amount.name for amount, _ in self.known.values()}
        return unused(f"{last}_{'pairs' if contraction.kind == 'attention' else 'rows'}", used)

    def listed(self) -> tuple[Amount, ...]:
        """All amounts as a program lists them."""
        return tuple(amount for amount, _ in self.known.values())

    def stream(self, contraction: Contraction) -> str | None:
        """The first stream that has as many rows as a contraction runs over; None if there is none."""
        rows = Polynomial.of(contraction.extent.executed)
        streams = (name for name, stream in self.graph.streams if stream.items == contraction.items)
        return next((name for name in streams if Polynomial.of(dict(self.graph.streams)[name].rows) == rows), None)
