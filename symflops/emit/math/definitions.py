"""Letters for what closed forms repeat, and for what a config chooses: of several forms with definitions, the shortest.

A definition is a sum that recurs, a number of iterations, or what depends on conditions of a config; the last is printed by
cases. Definitions are made one by one, each the one that shortens forms and definitions most, until none shortens them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from symflops.algebra.reduction import reduced
from symflops.algebra.sparse import Factor, ratio
from symflops.emit.math.cases import Rows, by_cases, joined, multiplied_out
from symflops.emit.math.printer import letters
from symflops.model.formula import MINUS, Bracket, Formula, Num, Prod, Sum, Sym, TallyOf, operators, parts, symbols, walk
from symflops.model.formula_writer import is_negative
from symflops.model.polynomials import Monomial, Poly, ShortWriter
from symflops.model.program import Definition, Program
from symflops.model.rewriting import Rewriting
from symflops.model.terms import times

LINE, ROW, CONDITION, TALLY = 3, 2, 3, 5
"""Operators that a definition, each of its cases, a condition in a form, and a sum over iterations are worth beside theirs."""
LEAST, MOST = 14, 300  # operators of a form that needs no letters, and terms of one that is no formula for a paper
ROUNDS, TRIED, CASES = 9, 8, 4
COUNT, PART = "count@", "part@"
HEADS, PARTS = ("N", "K", "M", "C", "R", "Z"), ("A", "Q", "U", "Y", "X")


@dataclass(frozen=True)
class Made:
    """A definition: its letter, and what it stands for."""

    letter: Sym
    value: Poly

    @cached_property
    def identity(self) -> Poly:
        """What is 0: the value less the letter."""
        return self.value - Poly.atom(self.letter)

    def put_into(self, poly: Poly) -> Poly:
        """``poly`` with the letter wherever that makes it shorter."""
        if len(self.value.terms) > 1:
            return reduced(poly, self.identity, weight)
        ((monomial, factor),) = self.value.terms.items()
        terms: dict[Monomial, Factor] = {}
        for part, number in poly.terms.items():
            here = monomial <= part
            place = Poly.product(part - monomial, frozenset(((self.letter, 1),))) if here else part
            terms[place] = terms.get(place, 0) + (ratio(number, factor) if here else number)
        return Poly(terms)


@dataclass(frozen=True)
class Forms:
    """Polynomials that are printed together, and the definitions that they are printed with."""

    writer: Measured
    polys: tuple[Poly, ...]
    made: tuple[Made, ...] = ()

    @cached_property
    def cost(self) -> int:
        """What the forms and the definitions cost a reader."""
        return sum(map(self.writer.cost, self.polys)) + sum(self.writer.worth(each.value) for each in self.made)

    @cached_property
    def weight(self) -> int:
        """What they cost multiplied out, which is quick to say."""
        return sum(weight(part) for poly in (*self.polys, *(each.value for each in self.made)) for part in poly.terms)

    def using(self, made: Made) -> Forms:
        """The forms, and earlier definitions, with one more."""
        earlier = (replace(each, value=made.put_into(each.value)) for each in self.made)
        return Forms(self.writer, tuple(map(made.put_into, self.polys)), (*earlier, made))

    def shortened(self) -> Forms:
        """The forms with the one more definition that shortens them most; the same forms if none does."""
        further = []
        for value in dict.fromkeys(map(normalised, self.writer.candidates(self.polys))):
            cases = self.writer.cases(value)
            if value and len(cases) <= CASES and (len(cases) == 1 or not shared(cases)):
                counting = all(atom in self.writer.counts or isinstance(atom, Bracket) for atom in atoms(value))
                further.append(self.using(Made(Sym(f"{COUNT if counting else PART}{len(self.made) + 1}"), value)))
        return min((self, *sorted(further, key=lambda forms: forms.weight)[:TRIED]), key=lambda forms: forms.cost)


class Measured(ShortWriter):
    """Writes the forms of a program, and measures what a reader reads."""

    def __init__(self, program: Program) -> None:
        lines = [line for regime in program.regimes for line in regime.lines]
        found = dict.fromkeys(count for line in lines for count in (line.forward, *line.backward, line.recomputed))
        counts = {atom for formula in found for atom in atoms(multiplied_out(formula)) if not isinstance(atom, Bracket)}
        made = [f"{COUNT}{number}" for number in range(1, ROUNDS + 1)]
        order = [name for formula in found for name in symbols(formula)]
        order = [*made, *sorted(set(order), key=order.index), *(one.letter for one in program.definitions)]
        super().__init__([*order, *(one.letter for one in program.fields)], frozenset(counts | set(map(Sym, made))))
        self.costs: dict[Poly, int] = {}

    def cost(self, poly: Poly) -> int:
        """The operators of the shortest form, conditions counted as often as they interrupt a reader."""
        if poly not in self.costs:
            self.costs[poly] = measured(self.shortest(poly))
        return self.costs[poly]

    def cases(self, value: Poly) -> Rows[Poly]:
        """What a definition is in each case."""
        return by_cases(value, self.key)

    def worth(self, value: Poly) -> int:
        """What a definition costs."""
        rows = self.cases(value)
        return LINE + sum(self.cost(each) for _, each in rows) + (ROW * len(rows) if len(rows) > 1 else 0)

    def candidates(self, polys: Sequence[Poly]) -> Iterator[Poly]:
        """What may get a letter."""
        for poly in polys:
            yield from self.numbers(poly)
            yield from self.choices(poly)
            for part in walk(self.shortest(poly)):
                if isinstance(part, Sum):
                    yield multiplied_out(part)
                elif isinstance(part, TallyOf):
                    yield Poly.atom(part)

    def numbers(self, poly: Poly) -> Iterator[Poly]:
        """How often products of sizes run, where conditions or several counts say so."""
        for count in poly.split(lambda atom: not (atom in self.counts or self.is_choice(atom))).values():
            _, common, rest = self.extracted(count)
            conditions = frozenset(pair for pair in common if self.is_choice(pair[0]))
            yield Poly({frozenset(pair for pair in common if isinstance(pair[0], (Bracket, TallyOf))): 1})
            if len(rest.terms) > 1:
                yield rest
                yield rest * Poly({conditions: 1})
                yield from (rest * Poly.atom(condition) for condition, _ in conditions)

    def choices(self, poly: Poly) -> Iterator[Poly]:
        """What a condition decides of the sizes that run equally often."""
        for sizes in poly.split(lambda atom: atom in self.counts).values():
            for condition in sorted({atom for atom in atoms(sizes) if self.is_choice(atom)}, key=self.key):
                powers = sizes.powers(condition)
                without, holds = (powers.get(exponent, Poly({})) for exponent in (0, 1))
                gone = {monomial: factor for monomial, factor in without.terms.items() if holds.terms.get(monomial) == -factor}
                yield self.extracted(holds * Poly.atom(condition) + Poly(gone))[2]


def shared(cases: Rows[Poly]) -> bool:
    """Whether all cases have a term in common, which then belongs outside of them."""
    return bool(set.intersection(*(set(value.terms.items()) for _, value in cases)))


def measured(formula: Formula) -> int:
    """The operators of a formula, conditions and sums counted as often as they interrupt a reader."""
    found = list(outside_tallies(formula))
    conditions, tallies = (sum(isinstance(part, kind) for part in found) for kind in (Bracket, TallyOf))
    return operators(formula) + CONDITION * conditions + TALLY * tallies


def outside_tallies(formula: Formula) -> Iterator[Formula]:
    """A formula and everything inside it, but what is inside of sums over iterations."""
    yield formula
    for part in () if isinstance(formula, TallyOf) else parts(formula):
        yield from outside_tallies(part)


def atoms(poly: Poly) -> dict[Formula, None]:
    """The atoms of a polynomial, in the order of its terms."""
    return {atom: None for monomial in poly.terms for atom, _ in monomial}


def weight(monomial: Monomial) -> int:
    """How much a reader reads of a product."""
    return 2 + sum(1 if isinstance(atom, Sym) else 2 + operators(atom) for atom, _ in monomial)


def normalised(poly: Poly) -> Poly:
    """The multiple of ``poly`` that all its multiples by numbers have."""
    _, number = poly.common
    positive = sum(1 if factor > 0 else -1 for factor in poly.terms.values())
    first = next(iter(poly.terms.values()), 1)
    return poly.scale(ratio(1 if positive > 0 or (positive == 0 and first > 0) else -1, number))


def defined(program: Program) -> Program:
    """``program`` with letters in its closed forms, if these and the definitions are shorter together."""
    shown = list(dict.fromkeys(form for case in program.cases for terms in (case.forward, case.backward) for _, form in terms))
    if max(map(operators, shown), default=0) <= LEAST:
        return program
    polys = {form: multiplied_out(form) for form in shown}
    polys = {form: poly for form, poly in polys.items() if len(poly.terms) <= MOST}
    found = Forms(Measured(program), tuple(dict.fromkeys(map(normalised, polys.values()))))
    for _ in range(ROUNDS):
        before, found = found, found.shortened()
        if found is before:
            break
    return with_definitions(program, shown, found) if found.made else program


def in_letters(program: Program) -> Callable[[Formula], Formula]:
    """Writes formulas of a program with the letters that :func:`defined` gave it, in their shortest form."""
    writer, known = Measured(program), []
    for definition in program.definitions:
        if definition.letter.startswith((COUNT, PART)):
            value = multiplied_out(definition.formula)
            known.append(Made(Sym(definition.letter), value))

    def written(formula: Formula) -> Formula:
        poly = multiplied_out(formula)
        if not poly or len(poly.terms) > MOST:
            return formula
        for made in known:
            poly = made.put_into(poly)
        return plainer(writer.shortest(poly))

    return written


def with_definitions(program: Program, shown: Sequence[Formula], found: Forms) -> Program:
    """``program`` with its closed forms, parameters and numbers of executions in terms of definitions."""
    names, writer = renamed(found.made), found.writer
    regimes = [(line.forward, *line.backward) for regime in program.regimes for line in regime.lines]
    shown = [*shown, *(count for counts in regimes for count in counts), program.parameters]
    shown += [formula for regime in program.regimes for formula in (regime.active, regime.trainable) if formula is not None]
    shown += [tensor.copies for tensor in program.tensors]
    new: dict[Formula, Formula] = {}
    for form in dict.fromkeys(shown):
        poly = old = multiplied_out(form)
        for made in found.made if len(old.terms) <= MOST else ():
            poly = made.put_into(poly)
        if poly != old:
            short = names(plainer(writer.shortest(poly)))
            new[form] = min((form, short), key=measured)
    rewriting = Rewriting(new.get)
    changed = {name: rewriting(getattr(program, name)) for name in ("cases", "parameters", "regimes", "tensors")}
    return replace(program, definitions=(*program.definitions, *listed(program, found, names)), **changed)


def renamed(made: Sequence[Made]) -> Rewriting:
    """Letters numbered by kind, in the order in which they are defined."""
    new: dict[Formula, Formula] = {}
    for head in (COUNT, PART):
        mine = [each.letter for each in in_order(made) if each.letter.name.startswith(head)]
        new |= {letter: Sym(f"{head}{number}") for number, letter in enumerate(mine, 1)}
    return Rewriting(lambda formula: new.get(formula) if isinstance(formula, Sym) else None)


def in_order(made: Sequence[Made]) -> Iterator[Made]:
    """Definitions, each below those that it reads."""
    left = list(made)
    while left:
        names = {each.letter.name for each in left}
        ready = next(each for each in left if names.isdisjoint(name for atom in atoms(each.value) for name in symbols(atom)))
        left.remove(ready)
        yield ready


def listed(program: Program, found: Forms, names: Rewriting) -> Iterator[Definition]:
    """The definitions as a program lists them."""
    heads = {COUNT: head_of(program, HEADS), PART: head_of(program, PARTS)}
    for made in in_order(found.made):
        letter = names(made.letter).name
        head, _, number = letter.partition("@")
        rows = tuple(
            (conditions, plainer(found.writer.shortest(value))) for conditions, value in found.writer.cases(made.value)
        )
        yield Definition(letter, names(joined(rows)), f"{heads[f'{head}@']}_{{{number}}}")


def head_of(program: Program, heads: Sequence[str]) -> str:
    """The first letter that no size has; definitions are numbered."""
    taken = {text for text in letters(program).values() if "_" not in text}
    return next((head for head in heads if head not in taken), heads[0])


def plainer(formula: Formula) -> Formula:
    """``-c*(a - b)`` as ``c*(b - a)``, at every depth."""

    def change(part: Formula) -> Formula | None:
        match part:
            case Prod((Num(value), *rest)) if value < 0:
                for place, factor in enumerate(rest):
                    if isinstance(factor, Sum) and turned(factor):
                        opposite = Sum(tuple(sorted((times(MINUS, term) for term in factor.terms), key=is_negative)))
                        return plainer(times(Num(-value), *rest[:place], opposite, *rest[place + 1 :]))
        return None

    changed: Formula = Rewriting(change)(formula)
    return changed


def turned(formula: Sum) -> bool:
    """Whether a sum of letters and products has as many negative terms as others."""
    return 2 * sum(map(is_negative, formula.terms)) == len(formula.terms) and not any(
        isinstance(one, Num) for one in formula.terms
    )
