"""Computes the analysis of a regime: the cost of one item as a polynomial in its lengths, by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

from symflops.evaluate.item_analysis import (
    ATTENTION,
    BOTH,
    FORWARD,
    PASSES,
    Analysis,
    Crossover,
    Growth,
    ItemAnalysis,
    Order,
    Orders,
    Powers,
    Share,
    crossover,
    difference,
    first_from,
    merged,
    part_of,
    sides,
)
from symflops.evaluate.length_polynomials import LONG, SHORT, Assumption, Lengths, NotPolynomialError, Unknown
from symflops.evaluate.typical import optional_streams
from symflops.evaluate.typical_values import TypicalValues, in_tokens, product_of, typical_lengths
from symflops.formula.factoring import Writer, expanded
from symflops.formula.formula import Formula, Sym, symbols
from symflops.formula.sparse import Monomial, Poly
from symflops.formula.terms import sum_of
from symflops.ir.batch import Moment
from symflops.ir.index_sets import ONCE
from symflops.ir.program import Line, Program


def analysis(program: Program, regime: str, convention: str, sizes: Mapping[str, Any] | None) -> Analysis:
    """Analyse the cost of one item in a regime; ``sizes`` are the default sizes, None if one is missing.

    Raises:
        KeyError: there is no such regime.
    """
    return _Analyser(program, regime, convention, sizes).analysis()


def writer_of(program: Program, lines: Iterable[Line], lengths: Iterable[str]) -> Writer:
    """Create a writer with the letters in order: run counts of ``lines``, derived sizes, sizes, ``lengths``."""
    counts = {id(line.forward): line.forward for line in lines}.values()  # many lines share one count
    letters = [name for count in counts for name in symbols(count)]
    letters += [definition.letter for definition in program.definitions] + [field.letter for field in program.fields]
    return Writer(
        [*letters, *lengths], frozenset(atom for count in counts for term in expanded(count).terms for atom, _ in term)
    )


class _Analyser:
    def __init__(self, program: Program, regime: str, convention: str, sizes: Mapping[str, Any] | None) -> None:
        self.program = program
        self.regime = regime
        self.convention = convention
        self.lengths = typical_lengths(program)
        without = {stream.name for stream in optional_streams(program.streams)}
        self.streams = [stream for stream in program.streams if stream.variables and stream.name not in without]
        lines = program.regime(regime).under(convention)
        self.writer = writer_of(program, lines, self.lengths)
        self.stands = {statistic.name: statistic.formula for statistic in program.statistics}
        self.products = list(filter(None, (product_of(program, stream) for stream in self.streams)))
        self.values = TypicalValues(sizes, self.lengths, self.products)
        self.costs = {work: self.cost(lines, work) for work in PASSES}

    def cost(self, lines: Sequence[Line], work: str) -> dict[str, Powers]:
        """Map each part of the model to its FLOPs, moment position -> coefficient; ``work`` is ``forward`` or ``both``."""
        rules = self.program.row(self.convention)
        alike: Counter[tuple[str, Formula, tuple[Formula, ...], tuple[tuple[int, Formula], ...]]] = Counter()
        for line in lines:
            if line.seen or rules.unseen:
                counts = (line.forward, *(line.backward if work == BOTH else ()))
                alike[part_of(line), line.unit, counts, line.amount.under(rules.pairs)] += 1
        found: dict[str, Powers] = {}
        for (name, unit, counts, amount), number in alike.items():
            times = (expanded(unit) * reduce(Poly.__add__, map(expanded, counts))).scale(number)
            part = found.setdefault(name, {})
            for position, factor in amount:
                part[position] = part.get(position, Poly({})) + times * expanded(factor)
        return found

    def analysis(self) -> Analysis:
        """Analyse one item of each index set."""
        sets = dict.fromkeys(stream.items for stream in self.program.streams if stream.variables)
        found = tuple(item for items in sets for item in self.of_items(items))
        return Analysis(self.regime, self.convention, found, tuple(self.lengths.items()), tuple(self.products))

    def of_items(self, items: str) -> Iterator[ItemAnalysis]:
        """Yield the analysis of one index set, or nothing if its items cost nothing."""
        growth = tuple(found for unknowns in self.unknowns(items) for found in self.first_of(unknowns))
        orders = tuple(self.orders(items))
        if growth or orders:
            yield ItemAnalysis(items, growth, orders)

    def unknowns(self, items: str) -> Iterator[tuple[Sequence[Unknown], ...]]:
        """Yield the lengths to vary, each as a tuple of alternatives, best first (see :meth:`first_of`).

        For example, the alternatives for an image are its number of tokens, and its height and width one by one.
        """
        streams = [stream for stream in self.streams if stream.items == items]
        for stream in streams:
            axes = [Unknown(items, "axis", (stream.name,), (name,), name) for name in stream.variables]
            plain = tuple(Sym(name) for name in stream.variables)
            product = Unknown(items, "tokens", (stream.name,), stream.variables, f"tokens@{stream.name}", plain)
            exact = [found for found in self.products if found.streams == (stream.name,)]
            yield (exact, [product], axes) if len(axes) > 1 else (axes,)
        if len(streams) > 1 and all(len(stream.variables) == 1 for stream in streams):
            names = tuple(stream.variables[0] for stream in streams)
            yield ([Unknown(items, "equal", tuple(stream.name for stream in streams), names, f"equal@{items}")],)

    def first_of(self, alternatives: Sequence[Sequence[Unknown]]) -> list[Growth]:
        """The growth in the first of ``alternatives`` with polynomials as costs; empty if there is none."""
        return next(filter(None, ([one for each in some for one in self.growths(each)] for some in alternatives)), [])

    # one length

    def growths(self, unknown: Unknown) -> Iterator[Growth]:
        """Yield the cost as a polynomial of one length: in long sequences, then in short ones if they differ.

        Short sequences differ if a formula has a bound on the length, such as a window.
        """
        for reach in (LONG, SHORT):
            same = {name: Sym(unknown.letter) for name in unknown.variables} if unknown.kind == "equal" else {}
            varying = frozenset({*unknown.variables, unknown.letter})
            products = [found for found in self.products if found is unknown or found.streams != unknown.streams]
            lengths = Lengths(varying, reach, self.writer, {**self.stands, **same}, products=products)
            try:
                costs = {work: self.by_power(self.costs[work], unknown, lengths) for work in PASSES}
            except NotPolynomialError:
                continue
            if self.matters(merged(costs[BOTH].values())):
                yield self.growth(unknown, reach if lengths.bounded else "", lengths.assumptions(), costs)
            if not lengths.bounded:
                return

    def matters(self, powers: Powers) -> bool:
        """Whether a cost, by power of a length, depends on the length; True if a coefficient has no value."""
        grows = [self.values.of(self.writer.plain(poly)) for power, poly in powers.items() if power > 0]
        return any(value is None or value for value in grows)

    def by_power(self, cost: Mapping[str, Powers], unknown: Unknown, lengths: Lengths) -> dict[str, Powers]:
        """Map each part to its cost as a polynomial of the length ``unknown``: power -> coefficient.

        Raises:
            NotPolynomialError: the cost is no polynomial of this length.
        """
        found = {}
        for part, terms in cost.items():
            total = self.total(terms, unknown.items, lengths).without(lengths.given)
            if unknown.kind == "tokens":
                total = in_tokens(total, unknown.axes, Sym(unknown.letter))
                if any(name in unknown.variables for monomial in total.terms for atom, _ in monomial for name in symbols(atom)):
                    raise NotPolynomialError
            powers = total.powers(Sym(unknown.letter))
            found[part] = {power: poly for power, poly in powers.items() if poly}
        return {part: powers for part, powers in found.items() if powers}

    def total(self, terms: Powers, items: str, lengths: Lengths) -> Poly:
        """The cost of one item as a polynomial; ``terms`` maps moment positions to coefficients."""
        found = Poly({})
        for position, coefficient in terms.items():
            moment = self.program.moments[position]
            if self.set_of(moment) == items:
                found = found + coefficient * lengths.of(moment.formula)
        for product in lengths.products:
            found = in_tokens(found, product.axes, Sym(product.letter))
        return found

    def set_of(self, moment: Moment) -> str:
        """The index set over whose items a moment sums; ``once`` if there is none, or more than one."""
        if moment.items != ONCE:
            return moment.items
        names = set(symbols(moment.formula))
        sets = {statistic.items for statistic in self.program.statistics if statistic.name in names}
        return sets.pop() if len(sets) == 1 else ONCE

    def growth(
        self, unknown: Unknown, reach: str, assumed: tuple[Assumption, ...], costs: Mapping[str, Mapping[str, Powers]]
    ) -> Growth:
        """How the FLOPs of both passes grow with one length: crossovers, shares of attention, and the cost of one more token.

        Args:
            unknown: The length that grows, or several that are equal.
            reach: ``LONG`` or ``SHORT``: whether windows are shorter than the length.
            assumed: The values of the other lengths.
            costs: Pass -> part of the model -> power of the length -> coefficient in FLOPs.
        """
        attention, others = sides(costs[FORWARD])
        crossovers = tuple(
            self.crossover(work, *sides(costs[work]), unknown, assumed) for work in PASSES if ATTENTION in costs[work]
        )
        marginal = tuple(self.marginal(work, merged(costs[work].values()), unknown, assumed) for work in PASSES)
        return Growth(unknown, reach, assumed, self.written(attention), self.written(others), crossovers, marginal)

    def written(self, powers: Powers) -> tuple[tuple[int, Formula], ...]:
        """Convert a polynomial (power -> coefficient) to pairs of power and formula, greatest power first."""
        return tuple((power, self.writer.factored(powers[power])) for power in sorted(powers, reverse=True))

    def marginal(
        self, work: str, powers: Powers, unknown: Unknown, assumed: Sequence[Assumption]
    ) -> tuple[str, Formula, int | None]:
        """The cost of one more token, ``p(z + 1) - p(z)``, for a cost ``p`` (``powers``) of the length ``z``.

        Returns:
            ``work``, the formula, and its value at the default sizes and typical lengths: None if unknown, or if ``assumed``
            does not hold there.
        """
        z = Poly.atom(Sym(unknown.letter))
        steps = [poly * ((z + Poly.constant(1)) ** power - z**power) for power, poly in powers.items()]
        formula = self.ordered(reduce(Poly.__add__, steps, Poly({})), frozenset([unknown.letter]))
        first = self.lengths[unknown.variables[0]]
        here = {unknown.letter: (self.values.product(unknown.axes) or 0) if unknown.kind == "tokens" else first}
        value = self.values.of(formula, here) if self.values.hold(assumed, here) else None
        return work, formula, None if value is None else round(value)

    def ordered(self, poly: Poly, lengths: frozenset[str]) -> Formula:
        """Group a polynomial by products of lengths, greatest degree first."""
        parts = poly.split(lambda atom: any(name in lengths for name in symbols(atom)))

        def order(monomial: Monomial) -> tuple[int, list[tuple[int, str]]]:
            return (-sum(exponent for _, exponent in monomial), sorted(self.writer.key(atom) for atom, _ in monomial))

        return sum_of(self.writer.factored(parts[each] * Poly({each: Fraction(1)})) for each in sorted(parts, key=order))

    # crossovers at the default sizes

    def crossover(
        self, work: str, attention: Powers, others: Powers, unknown: Unknown, assumed: Sequence[Assumption]
    ) -> Crossover:
        """Compute the length from which attention costs at least as much as all other parts (``others``)."""
        powers = difference(attention, others)
        values = {power: self.values.of(self.writer.plain(poly)) for power, poly in powers.items()}
        known = {power: value for power, value in values.items() if value is not None}
        first = first_from(known) if len(known) == len(powers) and max(powers, default=0) <= 2 else None
        return crossover(work, attention, others, self.writer, self.values.first_within(first, unknown, assumed))

    # all lengths

    def orders(self, items: str) -> Iterator[Orders]:
        """Yield the forward work of one item by power of its tokens, with all its streams scaled alike.

        Long sequences come first, then short ones if they differ.
        """
        weights = self.weights(items)
        varying = frozenset(name for atom in weights for name in symbols(atom))
        for reach in (LONG, SHORT):
            lengths = Lengths(varying, reach, self.writer, self.stands, products=self.products)
            try:
                degrees = self.by_degree(items, weights, lengths)
            except NotPolynomialError:
                continue
            found = tuple(self.order(degree, degrees[degree]) for degree in sorted(degrees))
            if found:
                yield Orders(reach if lengths.bounded else "", lengths.assumptions(), found if reach == LONG else found[:1])
            if not lengths.bounded:
                return

    def weights(self, items: str) -> dict[Formula, Fraction]:
        """Map each length of an item to its power of the tokens: 1 for a sole axis, 1/2 for each of two axes."""
        found: dict[Formula, Fraction] = {}
        for stream in self.streams:
            if stream.items == items:
                found |= {Sym(name): Fraction(1, len(stream.variables)) for name in stream.variables}
        for product in self.products:
            if product.items == items:
                found |= {Sym(product.letter): Fraction(1)} | {axis: Fraction(1, len(product.axes)) for axis in product.axes}
        return found

    def by_degree(self, items: str, weights: Mapping[Formula, Fraction], lengths: Lengths) -> dict[Fraction, dict[str, Poly]]:
        """Map each power of the tokens to the forward FLOPs of an item that grow with it: part -> polynomial of the lengths.

        ``weights`` has, for each length that grows with the tokens, the power of the tokens with which it grows.

        Raises:
            NotPolynomialError: the work is no polynomial of its lengths.
        """
        found: dict[Fraction, dict[str, Poly]] = {}
        for part, terms in self.costs[FORWARD].items():
            for chosen, poly in self.total(terms, items, lengths).without(lengths.given).split(weights.__contains__).items():
                parts = found.setdefault(sum((weights[atom] * power for atom, power in chosen), Fraction(0)), {})
                parts[part] = parts.get(part, Poly({})) + poly * Poly({chosen: Fraction(1)})
        return found

    def order(self, power: Fraction, parts: Mapping[str, Poly]) -> Order:
        """Assemble the :class:`Order` of one power of the tokens; ``parts`` maps each part to its work."""
        names = frozenset([*self.lengths, *(product.letter for product in self.products)])
        shown = {part: self.ordered(poly, names) for part, poly in parts.items() if poly}
        work = self.ordered(reduce(Poly.__add__, parts.values()), names)
        whole = self.values.of(work)
        values = {part: self.values.of(formula) for part, formula in shown.items()}
        shares = {part: value / whole if whole and value is not None else None for part, value in values.items()}
        return Order(power, work, tuple(Share(part, formula, shares[part]) for part, formula in shown.items()))
