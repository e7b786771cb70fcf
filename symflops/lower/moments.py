"""Moments (products of lengths, summed over a batch's items), amounts (sums of multiples of moments), and statistics.

A statistic is a number of a batch as a whole, such as its longest item; moments and conditions on a batch read it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from sympy import Expr, Symbol

from symflops.formula.formula import Formula
from symflops.formula.functions import Bracket, Longest, Together, Whole
from symflops.formula.polynomial import Polynomial, sorted_atoms
from symflops.formula.sparse import CONSTANT, Monomial
from symflops.formula.written import text_of
from symflops.ir.batch import BatchCondition, Moment, Statistic
from symflops.ir.graph import Derivation, Graph, Length, Work
from symflops.ir.index_sets import ONCE, PADDED, SAMPLES, padded_name
from symflops.ir.program import Amount
from symflops.lower.formulas import Formulas
from symflops.lower.names import Names, concise, distinct, last_words, moment_name, row_names, sum_name


class Key(NamedTuple):
    """What identifies a moment: the index set, and the product of lengths that is summed over its items.

    ``side`` is ``padded`` if the lengths are always padded ones, else empty.
    """

    items: str
    monomial: Monomial
    side: str = ""


Vector = dict[Key, Polynomial]
"""Moment -> its coefficient."""


class Moments:
    """All moments of a program, in order.

    Args:
        derivations: The work that most conventions count; names come from the first derivation.
        lengths: The batch variables.
        formulas: Prints expressions; afterwards it prints statistics of the whole batch as letters.
        taken: Letters that no statistic may have.
        own: Name of a convention -> its own work, if it counts other work; moments for only these conventions come last.
        tokens: (index set, rows) of tokens; they get moments even if no work runs on them.
    """

    def __init__(
        self,
        graph: Graph,
        derivations: Sequence[Derivation],
        lengths: Sequence[Length],
        formulas: Formulas,
        taken: Collection[str],
        own: Mapping[str, Sequence[Derivation]],
        tokens: Iterable[tuple[str, Expr]] = (),
    ) -> None:
        self.formulas = formulas
        self.lengths = frozenset(length.symbol for length in lengths)
        sets = dict.fromkeys([ONCE, SAMPLES, *(length.items for length in graph.lengths)])
        self.sets = {items: position for position, items in enumerate(sets)}
        self.vectors: dict[tuple[str, Expr, str], Vector] = {}
        found = {key for items, extent in tokens for key in self.vector(items, extent)}
        self.keys = sorted({*self.collect(derivations), *found}, key=self.order)
        self.only = self.further(own)
        self.keys += sorted(self.only, key=self.order)
        self.index = {key: position for position, key in enumerate(self.keys)}
        self.rows = row_names(derivations[0].work, self.products, graph.values)
        wholes = {whole for key in self.keys for atom, _ in key.monomial for whole in atom.atoms(Whole)}
        self.statistics = statistics(wholes, lengths, self.rows, taken, formulas)

    def vector(self, items: str, extent: Expr, side: str = "") -> Vector:
        """Write a number of runs per item as a sum of moments: moment -> coefficient in sizes.

        ``items`` is the index set, ``extent`` the number, ``side`` is ``padded`` if its lengths are always padded ones.
        """
        if (items, extent, side) not in self.vectors:
            of_batch = self.of_batch(extent) if items == ONCE else extent
            parts = Polynomial.of(of_batch).split_whole(self.varies)
            padded = PADDED if side == PADDED else ""
            self.vectors[items, extent, side] = {
                Key(items, monomial, padded if monomial else ""): coefficient for monomial, coefficient in parts.items()
            }
        return self.vectors[items, extent, side]

    def of_batch(self, extent: Expr) -> Expr:
        """The number of runs ``extent`` of once-per-batch work in lengths of the whole batch.

        A condition on the length of an item becomes one on the longest item.
        """
        brackets = {one for one in extent.atoms(Bracket) if one.free_symbols & self.lengths and not one.has(Whole)}
        longest = {symbol: Longest(symbol) for one in brackets for symbol in one.free_symbols & self.lengths}
        return extent.xreplace({one: one.xreplace(longest) for one in brackets}) if brackets else extent

    def products(self, items: str, extent: Expr) -> list[Monomial]:
        """The distinct products of lengths in the number of runs ``extent``."""
        return [key.monomial for key in self.vector(items, extent)]

    def further(self, own: Mapping[str, Sequence[Derivation]]) -> dict[Key, list[str]]:
        """Moment that only some conventions need -> the names of these conventions."""
        found: dict[Key, list[str]] = {}
        for name, derivations in own.items():
            for key in set(self.collect(derivations)).difference(self.keys):
                found.setdefault(key, []).append(name)
        return found

    def varies(self, atom: Expr) -> bool:
        """Whether the value of the factor ``atom`` depends on the batch, not only on sizes."""
        return bool(atom.free_symbols & self.lengths) or atom.has(Whole)

    def collect(self, derivations: Iterable[Derivation]) -> list[Key]:
        """The sorted moments of all work, and the number of items of each index set that occurs in it."""
        found: set[Key] = set()
        extents = {
            (work.contraction.items, extent, work.contraction.side)
            for derivation in derivations
            for work in derivation.work
            for extent in (work.contraction.extent.executed, work.contraction.extent.useful)
        }
        for items, extent, side in extents:
            found |= self.vector(items, extent, side).keys()
        found |= {Key(items, CONSTANT) for items in {key.items for key in found}.intersection(self.sets) - {ONCE}}
        return sorted(found, key=self.order)

    def order(self, key: Key) -> tuple[int, int, list[str], str]:
        """The sort key of a moment: (position of its index set, number of factors, letters, side).

        The position is that in the graph, and after all others for an unknown set; the letters are those of the factors;
        the side is ``padded`` for padded lengths, else empty.
        """
        items, monomial, side = key
        names = [text_of(atom) for atom, exponent in sorted_atoms(monomial) for _ in range(exponent)]
        degree = sum(exponent for _, exponent in monomial)
        return (self.sets.get(items, len(self.sets)), degree, names, side)

    def moment(self, key: Key) -> Moment:
        """The moment of a key as a program stores it."""
        items, monomial, side = key
        free = {symbol.name for atom, _ in monomial for symbol in atom.free_symbols - self.lengths}
        formula = self.formulas.term(monomial, Fraction(1))
        name = concise(moment_name(items, monomial, self.rows), monomial)
        name = padded_name(name) if side else name
        return Moment(name, items, formula, tuple(sorted(free)), side, tuple(self.only.get(key, ())))

    def listed(self) -> tuple[Moment, ...]:
        """All moments as a program stores them, with distinct names."""
        return distinct(map(self.moment, self.keys))


class Amounts:
    """The numbers of runs per batch that a program's lines share, in the order of first use."""

    def __init__(self, graph: Graph, moments: Moments, formulas: Formulas) -> None:
        self.moments = moments
        self.formulas = formulas
        self.known: dict[tuple[str, Expr, Expr, str], tuple[Amount, Fraction]] = {}
        self.names = Names()
        self.streams: dict[tuple[str, Polynomial], str] = {}
        for name, stream in graph.streams:
            self.streams.setdefault((stream.items, Polynomial.of(stream.rows)), name)

    def of(self, work: Work) -> tuple[Amount, Fraction]:
        """(Number of runs per batch with integer coefficients, factor that was taken out to make them so)."""
        contraction = work.contraction
        key = (contraction.items, contraction.extent.executed, contraction.extent.useful, contraction.side)
        if key not in self.known:
            vectors = [self.moments.vector(contraction.items, extent, contraction.side) for extent in (key[2], key[1])]
            denominators = [f.denominator for vector in vectors for part in vector.values() for f in part.terms.values()]
            factor = Fraction(1, lcm(1, *denominators))
            useful, executed = (self.terms(vector, factor) for vector in vectors)
            self.known[key] = (Amount(self.name(work), useful, executed), factor)
        return self.known[key]

    def terms(self, vector: Vector, factor: Fraction) -> tuple[tuple[int, Formula], ...]:
        """``vector / factor`` as (moment position, coefficient) pairs."""
        positions = self.moments.index
        terms = ((positions[key], self.formulas.plain(part.scale(1 / factor))) for key, part in vector.items())
        return tuple(sorted(terms, key=lambda term: term[0]))

    def name(self, work: Work) -> str:
        """A new name for the number of runs: a stream with as many rows, else words of the operator's path."""
        contraction = work.contraction
        rows = contraction.items, Polynomial.of(contraction.extent.executed)
        if contraction.kind == "linear" and rows in self.streams:
            return self.names.unused(padded_name(self.streams[rows]) if contraction.side == PADDED else self.streams[rows])
        last = last_words(str(work.operator.path)) or work.operator.kind
        last = last if last.isidentifier() else f"{work.operator.kind}_{last}".strip("_")
        name = f"{last}_{'pairs' if contraction.kind == 'attention' else 'rows'}"
        return self.names.unused(padded_name(name) if contraction.side == PADDED else name)

    def listed(self) -> tuple[Amount, ...]:
        """All numbers of runs as a program stores them."""
        return tuple(amount for amount, _ in self.known.values())


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
    lengths = [length for group in measures.values() for length in group]
    for limit in graph.limits:
        if limit.items == ONCE and decoded.isdisjoint(limit.condition.expr.free_symbols):
            read = [limit.condition.expr, *limit.values]
            wholes = {whole for expr in read for whole in expr.atoms(Whole)}
            names = {whole: formulas.letter(whole) for whole in wholes}
            old = [one for one in known if one.name in names.values()]
            unnamed = [whole for whole, name in names.items() if not name]
            new = statistics(unnamed, lengths, {}, {*taken, *(one.name for one in known)}, formulas)
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
