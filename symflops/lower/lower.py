"""lower: derivations of one graph, conventions -> :class:`~symflops.model.program.Program`.

The cost of an item is expanded in its lengths: each distinct product of lengths becomes a moment, and what stands before it, an
expression of sizes, its coefficient.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lcm
from operator import itemgetter
from types import MappingProxyType

from sympy import Expr

from symflops.algebra.functions import Whole
from symflops.algebra.polynomial import CONSTANT, Monomial, Polynomial, sorted_atoms
from symflops.derive.token_loops import executions
from symflops.lower.batch_statistics import statistics
from symflops.lower.formulas import Formulas
from symflops.lower.graph_queries import labels, loop_counts, measures, merged, repeated, spread_all
from symflops.lower.inputs import input_infos, stream_infos
from symflops.lower.names import definition_infos, distinct, last_words, moment_name, row_names, size_fields
from symflops.lower.parameters import Held
from symflops.model.convention import Convention
from symflops.model.derivation import Derivation, ParameterCount, Work
from symflops.model.formula import Formula
from symflops.model.graph import Graph
from symflops.model.index_sets import ONCE, SAMPLES
from symflops.model.needs_size import or_needs_size
from symflops.model.path import running_texts
from symflops.model.program import (
    Amount,
    Case,
    GradientLine,
    Line,
    Moment,
    Program,
    RegimeLines,
)  # fmt: skip
from symflops.model.roles import regions_of, role_of
from symflops.syntax.plain_values import frozen

Key = tuple[str, Monomial]
Vector = dict[Key, Polynomial]


@or_needs_size
def lower(
    derivations: Sequence[Derivation],
    conventions: Sequence[Convention],
    counted: Mapping[str, Sequence[Derivation]] = MappingProxyType({}),
) -> Program:
    """The program of ``derivations``, which are of one graph under different regimes, under each of ``conventions``.

    ``counted`` are the derivations of conventions, by name, that count other work than those.
    """
    return _Lower(derivations[0].graph, derivations, conventions, counted).program()


class _Lower:
    def __init__(
        self,
        graph: Graph,
        derivations: Sequence[Derivation],
        conventions: Sequence[Convention],
        counted: Mapping[str, Sequence[Derivation]],
    ) -> None:
        self.graph = graph
        symbols = frozenset(length.symbol for length in graph.lengths)
        self.derivations = [spread_all(derivation, symbols) for derivation in derivations]
        self.counted = {name: [spread_all(one, symbols) for one in ones] for name, ones in counted.items()}
        self.all = [*self.derivations, *(one for ones in self.counted.values() for one in ones)]
        self.conventions = conventions
        counts = loop_counts(graph.body)
        letters = [*(str(symbol) for count in counts for symbol in sorted(count.free_symbols, key=str))]
        letters += [definition.name for definition, _ in graph.definitions]
        letters += [name for name, _ in graph.sizes] + [length.symbol.name for length in graph.lengths]
        self.formulas = Formulas({letter: rank for rank, letter in reversed(list(enumerate(letters)))})
        self.measures = measures(graph, self.derivations[0])
        lengths = [length for group in self.measures.values() for length in group]
        self.lengths = frozenset(length.symbol for length in lengths)
        counts_of_work = {expr for derivation in self.all for work in derivation.work for expr in executions(work)}
        self.count_atoms = frozenset(
            atom for expr in counts_of_work for monomial in Polynomial.of(expr).terms for atom, _ in monomial
        )
        self.counts: dict[Expr, Formula] = {}
        self.units: dict[tuple[Expr, Fraction], Formula] = {}
        self.held = Held(self.formulas)
        self.vectors: dict[tuple[str, Expr], Vector] = {}
        self.moments = self.collect_moments()
        self.index = {key: position for position, key in enumerate(self.moments)}
        self.rows = row_names(self.derivations[0].work, self.vector, graph.values)
        self.statistics = statistics(self.moments, lengths, self.rows, letters, self.formulas)
        self.amounts: dict[tuple[str, Expr, Expr], tuple[Amount, Fraction]] = {}

    # moments and amounts

    def vector(self, items: str, extent: Expr) -> Vector:
        """An extent as multiples of moments: the part of each product that varies with the batch, and what stands before it."""
        if (items, extent) not in self.vectors:
            parts = Polynomial.of(extent).split_whole(self.varies)
            self.vectors[items, extent] = {(items, monomial): coefficient for monomial, coefficient in parts.items()}
        return self.vectors[items, extent]

    def varies(self, atom: Expr) -> bool:
        """Whether a batch decides what ``atom`` is."""
        return bool(atom.free_symbols & self.lengths) or atom.has(Whole)

    def collect_moments(self) -> list[Key]:
        found: set[Key] = set()
        works = (work for derivation in self.all for work in derivation.work)
        for items, extent in {(work.contraction.items, extent) for work in works for extent in self.extents(work)}:
            found |= self.vector(items, extent).keys()
        sets = list(dict.fromkeys([ONCE, SAMPLES, *(length.items for length in self.graph.lengths)]))
        for items in sets:
            if items in (key[0] for key in found) and items != ONCE:
                found.add((items, CONSTANT))

        def order(key: Key) -> tuple[int, int, list[str]]:
            degree = sum(exponent for _, exponent in key[1])
            names = [str(atom) for atom, exponent in sorted_atoms(key[1]) for _ in range(exponent)]
            return (sets.index(key[0]) if key[0] in sets else len(sets), degree, names)

        return sorted(found, key=order)

    def extents(self, work: Work) -> list[Expr]:
        """The extents of a contraction, executed and useful."""
        return [work.contraction.extent.executed, work.contraction.extent.useful]

    def amount(self, work: Work) -> tuple[Amount, Fraction]:
        """What a contraction runs over, with whole multiples, and the fraction that was taken out for that."""
        contraction = work.contraction
        key = (contraction.items, contraction.extent.executed, contraction.extent.useful)
        if key not in self.amounts:
            vectors = [self.vector(contraction.items, extent) for extent in (key[2], key[1])]
            denominators = [f.denominator for vector in vectors for part in vector.values() for f in part.terms.values()]
            factor = Fraction(1, lcm(1, *denominators))
            useful, executed = (
                tuple(
                    (self.index[moment], self.formulas.plain(part.scale(1 / factor)))
                    for moment, part in sorted(vector.items(), key=lambda item: self.index[item[0]])
                )
                for vector in vectors
            )
            self.amounts[key] = (Amount(self.amount_name(work), useful, executed), factor)
        return self.amounts[key]

    def amount_name(self, work: Work) -> str:
        """The stream whose rows it is, else a name after the operator."""
        contraction = work.contraction
        used = {amount.name for amount, _ in self.amounts.values()}
        if contraction.kind == "linear":
            for name, stream in self.graph.streams:
                if stream.items == contraction.items and Polynomial.of(stream.rows) == Polynomial.of(
                    contraction.extent.executed
                ):
                    return name
        last = last_words(str(work.operator.path)) or work.operator.kind
        last = last if last.isidentifier() else f"{work.operator.kind}_{last}".strip("_")
        base = f"{last}_{'pairs' if contraction.kind == 'attention' else 'rows'}"
        name, number = base, 1
        while name in used:
            number += 1
            name = f"{base}_{number}"
        return name

    # lines and forms

    def line(self, work: Work) -> Line:
        amount, factor = self.amount(work)
        size = (work.contraction.size, factor)
        if size not in self.units:
            self.units[size] = self.formulas.plain(Polynomial.of(size[0]).scale(2 * factor))
        gradients = tuple(
            GradientLine(gradient.operand, gradient.kind, self.count(gradient.count), gradient.reason)
            for gradient in work.gradients
        )
        return Line(
            str(work.operator.path), work.contraction.name, work.operator.kind, work.operator.caption,
            self.units[size], amount, self.count(work.forward), gradients,
            self.count(work.recomputed),
            work.contraction.seen,
            running_texts(work.operator.path, work.operator.visits), work.contraction.side,
            role_of(work.operator), regions_of(work.operator),
        )  # fmt: skip

    def count(self, expr: Expr) -> Formula:
        if expr not in self.counts:
            self.counts[expr] = self.formulas.factored(Polynomial.of(expr), self.count_atoms)
        return self.counts[expr]

    def form(self, works: Sequence[tuple[Work, Expr]], convention: Convention) -> tuple[tuple[int, Formula], ...]:
        """A closed form: the sum of ``size * extent * executions``, by moment."""
        alike: Counter[tuple[Expr, Expr, str, Expr]] = Counter()
        for work, times in works:
            contraction = work.contraction
            if contraction.seen or convention.unseen:
                extent = contraction.extent.useful if convention.pairs == "useful" else contraction.extent.executed
                alike[times, contraction.size, contraction.items, extent] += 1
        parts: dict[Key, list[Polynomial]] = {}
        for (times, size, items, extent), number in alike.items():
            cost = Polynomial.of(times) * Polynomial.of(size).scale(2 * number)
            for key, part in self.vector(items, extent).items():
                parts.setdefault(key, []).append(part * cost)
        totals = {self.index[key]: Polynomial.total(some) for key, some in parts.items()}
        formulas = {position: self.formulas.factored(total, self.count_atoms) for position, total in totals.items() if total}
        return tuple(sorted(formulas.items(), key=itemgetter(0)))

    def case(self, derivation: Derivation, convention: Convention) -> Case:
        forward = [(work, work.forward) for work in derivation.work]
        backward = [(work, gradient.count) for work in derivation.work for gradient in work.gradients]
        recomputed = [(work, work.recomputed) for work in derivation.work]
        forms = (self.form(executions, convention) for executions in (forward, backward, recomputed))
        return Case(derivation.regime.name, convention.name, *forms)

    def total(self, entries: Sequence[ParameterCount]) -> Formula:
        return self.formulas.factored(self.held.total(entries), self.count_atoms)

    # the program

    def program(self) -> Program:
        spec, graph = self.graph.spec, self.graph
        regimes = tuple(
            RegimeLines(
                derivation.regime.name, derivation.regime.doc, tuple(self.line(work) for work in merged(derivation.work)),
                tuple(self.held.tensor(derivation, entry) for entry in derivation.parameters),
                tuple(entry.trains for entry in derivation.parameters),
                self.total(derivation.parameters),
                self.total([entry for entry in derivation.parameters if entry.trains]),
            )
            for derivation in self.derivations
        )  # fmt: skip
        cases = tuple(
            self.case(self.counted.get(convention.name, self.derivations)[position], convention)
            for position in range(len(self.derivations))
            for convention in self.conventions
        )
        return Program(
            name=spec.name, title=spec.title, references=spec.references,
            model_types=spec.model_types, pipelines=spec.pipelines,
            sources=tuple((source.path, hashlib.sha256(source.text.encode()).hexdigest()) for source in spec.sources),
            fields=size_fields(spec, self.formulas, repeated(self.graph)),
            definitions=definition_infos(graph, self.formulas),
            streams=stream_infos(graph, self.formulas, self.measures),
            inputs=input_infos(graph, self.formulas),
            moments=distinct(self.moment(key) for key in self.moments),
            amounts=tuple(amount for amount, _ in self.amounts.values()),
            tensors=regimes[0].tensors,
            parameters=regimes[0].parameters,
            regimes=regimes, cases=cases,
            conventions=tuple(convention.name for convention in self.conventions),
            pairs=tuple((convention.name, convention.pairs) for convention in self.conventions),
            loops=tuple(labels(graph.body)), fixed=tuple((letter, frozen(value)) for letter, value in graph.fixed),
            unseen=tuple((convention.name, convention.unseen) for convention in self.conventions),
            lengths=tuple((convention.name, convention.length) for convention in self.conventions),
            statistics=self.statistics,
            units=tuple((convention.name, convention.unit) for convention in self.conventions),
        )  # fmt: skip

    def moment(self, key: Key) -> Moment:
        items, monomial = key
        formula = self.formulas.term(monomial, Fraction(1))
        free = {symbol.name for atom, _ in monomial for symbol in atom.free_symbols - self.lengths}
        return Moment(moment_name(items, monomial, self.rows), items, formula, tuple(sorted(free)))
