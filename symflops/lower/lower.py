"""lower: derivations of one graph, conventions -> :class:`~symflops.ir.program.Program`.

The cost of an item is expanded in its lengths: each distinct product of lengths becomes a moment, and the expression of sizes
before it the moment's coefficient.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm
from operator import itemgetter
from types import MappingProxyType
from typing import TypeVar

from sympy import Expr, Symbol

from symflops.count.per_parameter import tokens
from symflops.derive.analyses import ParameterReaders
from symflops.derive.decode import added, executions, sides, spread, variables
from symflops.formula.formula import Formula
from symflops.formula.functions import unpadded
from symflops.formula.identifiers import latex_symbol
from symflops.formula.identities import fewest_terms
from symflops.formula.polynomial import Polynomial
from symflops.formula.truth import NO
from symflops.ir.batch import Requirement
from symflops.ir.convention import Convention, inferred_of, regions_of, role_of
from symflops.ir.graph import Derivation, Graph, Length, Work
from symflops.ir.index_sets import ONCE
from symflops.ir.nodes import Loop, Node, walk
from symflops.ir.patterns import running_texts
from symflops.ir.program import Case, ConventionRow, Definition, Field, GradientLine, Line, Program, RegimeLines
from symflops.lower.formulas import Formulas
from symflops.lower.inputs import Parameters, input_infos, stream_infos
from symflops.lower.moments import Amounts, Key, Moments, batch_conditions
from symflops.lower.names import read_fields, size_fields
from symflops.lower.requirements import inner_lengths, requirements
from symflops.read.yaml_nodes import frozen
from symflops.support.findings import SymflopsError

T = TypeVar("T")


def lower(
    derivations: Sequence[Derivation],
    conventions: Sequence[Convention],
    counted: Mapping[str, Sequence[Derivation]] = MappingProxyType({}),
    forms: bool = True,
) -> Program:
    """Lower a graph under several regimes and conventions to one program.

    Args:
        derivations: The graph derived under each regime.
        conventions: The conventions of the program.
        counted: Name of a convention -> the work that it counts, one derivation per regime, if that is not ``derivations``.
        forms: Whether the program gets closed forms in addition to its lines.
    """
    return _Lowering(derivations[0].graph, derivations, conventions, counted).program(forms)


class _Lowering:
    def __init__(
        self,
        graph: Graph,
        derivations: Sequence[Derivation],
        conventions: Sequence[Convention],
        counted: Mapping[str, Sequence[Derivation]],
    ) -> None:
        self.graph = graph
        self.measures = same_batches(derivations)
        symbols = frozenset(length.symbol for length in graph.lengths)
        self.derivations = [in_lines(derivation, symbols) for derivation in derivations]
        self.counted = {
            name: [in_lines(one, symbols) for one in ones] for name, ones in counted.items() if ones[0] is not derivations[0]
        }
        self.plain = len(self.counted) == len(counted)  # whether ``derivations`` are as derived, with whole numbers of FLOPs
        self.conventions = conventions
        every = [*self.derivations, *(one for ones in self.counted.values() for one in ones)]
        atoms = count_atoms(every)
        letters = letters_in_order(graph)
        self.formulas = Formulas({letter: rank for rank, letter in reversed(list(enumerate(letters)))}, atoms)
        lengths = [length for group in self.measures.values() for length in group]
        self.parameters = Parameters(self.formulas)
        sided = any(work.contraction.side for derivation in derivations for work in derivation.work)
        counted_rows = [found for one in derivations if sided and (found := tokens(one))]
        counted_rows += [(items, elements) for one in derivations for _, items, elements in one.kept]
        self.letters = letters
        self.moments = Moments(graph, self.derivations, lengths, self.formulas, letters, self.counted, counted_rows)
        self.amounts = Amounts(graph, self.moments, self.formulas)
        self.counts: dict[Expr, Formula] = {}
        self.forms: dict[object, tuple[tuple[int, Formula], ...]] = {}
        self.units: dict[tuple[Expr, Fraction], Formula] = {}
        self.shares: dict[str, int] = {}  # parts of a FLOP, by convention

    # lines and closed forms

    def lines(self, derivations: Sequence[Derivation], plain: bool) -> tuple[list[tuple[Line, ...]], int]:
        """(Program lines of each regime, number of parts of one FLOP in which these lines count).

        A convention may count fractions of a FLOP; such parts make all numbers whole. Work as derived (``plain``) has 1 part.
        """
        works = [merged(derivation.work) for derivation in derivations]
        if plain:
            return [tuple(map(self.line, some)) for some in works], 1
        times = [[lcm(1, *map(denominator, executions(work))) for work in some] for some in works]
        pairs = [list(zip(some, numbers, strict=True)) for some, numbers in zip(works, times, strict=True)]
        factors = {(work.contraction.size, 2 * self.amounts.of(work)[1] / number) for some in pairs for work, number in some}
        parts = lcm(1, *(denominator(size, factor) for size, factor in factors))
        return [tuple(self.line(work, number, parts) for work, number in some) for some in pairs], parts

    def line(self, work: Work, times: int = 1, parts: int = 1) -> Line:
        """The program line of a contraction, with its run counts and the FLOPs of one run as formulas.

        Run counts are multiplied by ``times`` and FLOPs by ``parts / times``, so that fractions in either become whole numbers.
        """
        amount, factor = self.amounts.of(work)
        size = (work.contraction.size, factor * Fraction(parts, times))
        if size not in self.units:
            self.units[size] = self.formulas.plain(Polynomial.of(size[0]).scale(2 * size[1]))
        gradients = tuple(
            GradientLine(gradient.operand, gradient.kind, self.count(gradient.count * times), gradient.reason)
            for gradient in work.gradients
        )
        return Line(
            str(work.operator.path), work.contraction.name, work.operator.kind, work.operator.caption,
            self.units[size], amount, self.count(work.forward * times), gradients,
            self.count(work.recomputed * times),
            work.contraction.seen,
            running_texts(work.operator.path, work.operator.visits),
            role_of(work.operator), regions_of(work.operator), inferred_of(work.operator),
        )  # fmt: skip

    def count(self, expr: Expr) -> Formula:
        """The formula of a run count, cached."""
        if expr not in self.counts:
            self.counts[expr] = self.formulas.simplified(Polynomial.of(expr))
        return self.counts[expr]

    def form(self, works: Sequence[tuple[Work, Expr]], convention: Convention) -> tuple[tuple[int, Formula], ...]:
        """The closed form of work with its run counts: (moment position, coefficient) pairs."""
        useful = convention.pairs == "useful"
        alike = Counter(
            (times, part.size, part.items, part.extent.useful if useful else part.extent.executed, part.side)
            for part, times in ((work.contraction, times) for work, times in works)
            if part.seen or convention.unseen
        )
        key = frozenset(alike.items())  # several regimes run one forward pass
        if key not in self.forms:
            self.forms[key] = self.summed(alike)
        return self.forms[key]

    def summed(self, alike: Mapping[tuple[Expr, Expr, str, Expr, str], int]) -> tuple[tuple[int, Formula], ...]:
        """The closed form of contractions, of which ``alike`` has the number of each equal kind.

        A key of ``alike`` is (runs, size, index set, extent, side). The result has (moment position, coefficient) pairs.
        """
        parts: dict[Key, list[Polynomial]] = {}
        for (times, size, items, extent, side), number in alike.items():
            cost = Polynomial.of(times) * Polynomial.of(size).scale(2 * number)
            for key, part in self.moments.vector(items, extent, side).items():
                parts.setdefault(key, []).append(part * cost)
        totals = {self.moments.index[key]: Polynomial.total(some) for key, some in parts.items()}
        formulas = {position: self.formulas.simplified(total) for position, total in totals.items() if total}
        return tuple(sorted(formulas.items(), key=itemgetter(0)))

    def case(self, derivation: Derivation, convention: Convention) -> Case:
        """The closed forms of all passes of one regime under one convention."""
        forward = [(work, work.forward) for work in derivation.work]
        backward = [(work, gradient.count) for work in derivation.work for gradient in work.gradients]
        recomputed = [(work, work.recomputed) for work in derivation.work]
        forms = (self.form(executions, convention) for executions in (forward, backward, recomputed))
        return Case(derivation.regime.name, convention.name, *forms)

    # the program

    def regime(self, derivation: Derivation, lines: tuple[Line, ...]) -> RegimeLines:
        """Return one regime as the program stores it: its ``lines``, parameters and tokens."""
        entries, readers = derivation.parameters, ParameterReaders(derivation.graph.body)
        return RegimeLines(
            derivation.regime.name, derivation.regime.doc, lines,
            tuple(self.parameters.tensor(readers, entry) for entry in entries),
            tuple(entry.trains for entry in entries),
            self.parameters.total(entries),
            self.parameters.total([entry for entry in entries if entry.trains]),
            derivation.regime.recompute, self.parameters.active(derivation), self.tokens(derivation),
            self.left_out(derivation.graph), cache=self.cache(derivation),
        )  # fmt: skip

    def tokens(self, derivation: Derivation) -> tuple[tuple[int, Formula], ...]:
        """Number of tokens in a batch as (moment position, coefficient) pairs; empty if it is unknown.

        If work runs only on whole chunks of tokens, the rows that fill the last chunk are counted as tokens.
        """
        places = self.moments.index
        for filled in (False, True):
            found = tokens(derivation, filled)
            vector = self.moments.vector(*found) if found else {}
            if vector.keys() <= places.keys():
                return tuple((places[key], self.formulas.plain(part)) for key, part in vector.items())
        return ()

    def cache(self, derivation: Derivation) -> tuple[tuple[str, tuple[tuple[int, Formula], ...]], ...]:
        """Elements that a batch keeps for further tokens: (kind, (moment position, coefficient) pairs)."""
        found: dict[str, list[tuple[int, Formula]]] = {}
        for kind, items, elements in derivation.kept:
            vector = self.moments.vector(items, elements)
            terms = ((self.moments.index[key], self.formulas.simplified(part)) for key, part in vector.items() if part)
            found.setdefault(kind, []).extend(terms)
        return tuple((kind, tuple(sorted(terms, key=itemgetter(0)))) for kind, terms in found.items())

    def left_out(self, graph: Graph) -> tuple[Field, ...]:
        """The sizes of the parts of the model that the regime of ``graph`` does not run."""
        spec = replace(graph.spec, sizes=(*graph.spec.sizes, *graph.spec.apart))
        found = size_fields(spec, self.formulas) if graph.left_out else ()
        return tuple(field for field in found if field.letter in graph.left_out)

    def regimes(self) -> tuple[RegimeLines, ...]:
        """Return all regimes as the program stores them; conventions that count equal work share lines."""
        lines, parts = self.lines(self.derivations, self.plain)
        found = list(map(self.regime, self.derivations, lines))
        if parts > 1:
            self.shares = {convention.name: parts for convention in self.conventions if convention.name not in self.counted}
        for name, derivations in self.counted.items():
            own, parts = self.lines(derivations, False)
            if parts > 1:
                self.shares[name] = parts
            found = [replace(regime, own=(*regime.own, (name, some))) for regime, some in zip(found, own, strict=True)]
        return tuple(found)

    def cases(self) -> Iterator[Case]:
        """Yield the closed forms of each regime under each convention."""
        for position in range(len(self.derivations)):
            for convention in self.conventions:
                yield self.case(self.counted.get(convention.name, self.derivations)[position], convention)

    def row(self, convention: Convention) -> ConventionRow:
        """Return the rules of ``convention`` as the program stores them."""
        name, shares = convention.name, self.shares.get(convention.name, 1)
        rules = convention.pairs, convention.length, convention.unseen, convention.unit
        return ConventionRow(name, *rules, convention.because, shares, convention.digest)

    def program(self, forms: bool) -> Program:
        """Make the program; it gets closed forms only if ``forms``."""
        graph = self.graph
        spec = max((one.graph.spec for one in self.derivations), key=lambda spec: len(spec.sizes))
        regimes = self.regimes()
        cases = tuple(self.cases()) if forms else ()
        program = Program(
            name=spec.name, title=spec.title, references=spec.alike,
            model_types=spec.model_types, pipelines=spec.pipelines,
            sources=tuple((source.path, hashlib.sha256(source.text.encode()).hexdigest()) for source in spec.sources),
            fields=size_fields(spec, self.formulas, repeat_letters(graph), dict(graph.fixed)),
            definitions=tuple(
                Definition(one.name, self.formulas.of(value), latex_symbol(one.name)) for one, value in graph.definitions
            ),
            streams=stream_infos(graph, self.formulas, self.measures),
            inputs=input_infos(graph, self.formulas),
            moments=self.moments.listed(),
            amounts=self.amounts.listed(),
            tensors=regimes[0].tensors,
            parameters=regimes[0].parameters,
            regimes=regimes, cases=cases,
            rows=tuple(map(self.row, self.conventions)),
            loops=tuple(labels(graph.body)), fixed=tuple((letter, frozen(value)) for letter, value in graph.fixed),
            statistics=self.moments.statistics,
            reading=spec.reading or None,
            inner=inner_lengths(graph, self.formulas, self.measures),
            conditions=tuple(batch_conditions(graph, self.measures, self.moments.statistics, self.letters, self.formulas)),
            requirements=requirements(graph, self.formulas),
            expected=tuple(
                Requirement(self.formulas.of((~holds).expr), text) for holds, text in graph.expected if holds is not NO
            ),
        )  # fmt: skip
        return replace(program, fields=read_fields(program)) if spec.decided else program


def denominator(expr: Expr, factor: Fraction = Fraction(1)) -> int:
    """The least positive integer whose product with ``expr * factor`` has integer coefficients."""
    return lcm(1, *(part.denominator for part in Polynomial.of(expr).scale(factor).terms.values()))


def count_atoms(derivations: Sequence[Derivation]) -> frozenset[Expr]:
    """The symbols and conditions in all run counts, by which terms of closed forms are grouped."""
    counts = {Polynomial.of(expr) for derivation in derivations for work in derivation.work for expr in executions(work)}
    every = (one for count in counts for one in (count, fewest_terms(count)))
    atoms = frozenset(atom for count in every for monomial in count.terms for atom, _ in monomial)
    return atoms | {symbol for loop in walk(derivations[0].graph.body, Loop) for symbol in loop.count.free_symbols}


def letters_in_order(graph: Graph) -> list[str]:
    """All letters in the order of the factors of a term: loop counts, derived sizes, sizes, lengths.

    A letter may occur twice; its first position counts.
    """
    letters = [str(symbol) for loop in walk(graph.body, Loop) for symbol in sorted(loop.count.free_symbols, key=str)]
    letters += [definition.name for definition, _ in graph.definitions]
    return letters + [name for name, _ in graph.sizes] + [length.symbol.name for length in graph.lengths]


def repeat_letters(graph: Graph) -> frozenset[str]:
    """Letters of the sizes that decide how often loops run, directly or through derived sizes."""
    found = {symbol for loop in walk(graph.body, Loop) for symbol in loop.count.free_symbols}
    for symbol, value in reversed(graph.definitions):
        if symbol in found:
            found |= value.free_symbols
    return frozenset(symbol.name for symbol in found)


def measures(graph: Graph, derivation: Derivation) -> dict[Symbol, tuple[Length, ...]]:
    """Symbol of a length -> the lengths that a batch gives for it.

    That is the length itself, or two lengths (such as past and new tokens) if the regime decodes it token by token.
    """
    mode, tokens = derivation.regime.decode, derivation.decodes
    return {length.symbol: variables(mode, length) if length.symbol in tokens else (length,) for length in graph.lengths}


def same_batches(derivations: Sequence[Derivation]) -> dict[Symbol, tuple[Length, ...]]:
    """The lengths that a batch gives under each regime, as :func:`measures` returns them.

    Raises:
        SymflopsError: batches have another form under another regime.
    """
    first, *others = ((one.regime.name, measures(one.graph, one)) for one in derivations)
    for name, found in others:
        if found != first[1]:
            raise SymflopsError(f"batches of the regimes '{first[0]}' and '{name}' have different forms: derive each by itself")
    return first[1]


def labels(nodes: tuple[Node, ...]) -> Iterator[tuple[str, str]]:
    """Yield (letter of the index, name of the module list) for each loop."""
    for loop in walk(nodes, Loop):
        words = [word for word in str(loop.path).split(".") if word.isidentifier()]
        yield loop.index.name, words[-1] if words else "layers"


def in_lines(derivation: Derivation, lengths: frozenset[Symbol]) -> Derivation:
    """``derivation`` with its work split so that each part can be a line of a program.

    No part has one of ``lengths`` in its run counts, and PyTorch's counter counts all of a part or nothing of it. Useful runs
    are those at each item's own length, not at the padded one.
    """
    parts = (side for work in derivation.work for part in spread(work, lengths) for side in sides(part))
    return replace(derivation, work=tuple(map(without_padding, parts)))


def without_padding(work: Work) -> Work:
    """``work`` with the useful runs counted at each item's own length instead of the padded one."""
    contraction = work.contraction
    useful = unpadded(contraction.extent.useful, contraction.items != ONCE)
    if useful == contraction.extent.useful:
        return work
    return replace(work, contraction=replace(contraction, extent=replace(contraction.extent, useful=useful)))


def merged(works: Sequence[Work]) -> list[Work]:
    """Add the run counts of equal contractions of one module, such as those of several segments of a loop."""
    found: dict[tuple[object, ...], Work] = {}
    for work in works:
        contraction = work.contraction
        operands = tuple(gradient.kind for gradient in work.gradients)
        modules = running_texts(work.operator.path, work.operator.visits)
        key = (modules, contraction.name, contraction.seen, contraction.size, contraction.extent, contraction.items, operands)
        found[key] = _added(found[key], work) if key in found else work
    return list(found.values())


def _added(one: Work, two: Work) -> Work:
    gradients = []
    for first, second in zip(one.gradients, two.gradients, strict=True):
        reasons = dict.fromkeys(reason for both in (first.reason, second.reason) for reason in both.split("; ") if reason)
        gradients.append(replace(first, count=added(first.count, second.count), reason="; ".join(reasons)))
    recomputed = added(one.recomputed, two.recomputed)
    return replace(one, forward=added(one.forward, two.forward), gradients=tuple(gradients), recomputed=recomputed)
