"""specialise: :class:`~symflops.ir.program.Program`, known sizes -> the program for these sizes (partial evaluation).

Known sizes are substituted and folded: conditions are decided, known loop lengths are evaluated, and zeros are removed. So are
moments, statistics and derived sizes that no formula uses any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from symflops.evaluate.folding import NO_VALUE, Folding, constant
from symflops.evaluate.growth import writer_of
from symflops.evaluate.sizes import MissingSize
from symflops.evaluate.stored import config_value
from symflops.formula.factoring import expanded
from symflops.formula.formula import ONE, ZERO, Apply, Formula, Num, Sym, TallyOf, evaluate, symbols, walk
from symflops.formula.terms import Rewriting, Terms, plus, times
from symflops.ir.batch import Moment, Requirement
from symflops.ir.program import Amount, Case, Definition, Field, Line, Program, RegimeLines, with_definitions
from symflops.support.errors import SymflopsError

WHOLE = ("count", "number")
"""The kinds of sizes that are non-negative integers."""


def specialise(program: Program, values: Mapping[str, Any], numbers: Collection[str] = ()) -> Program:
    """Specialise a program to the sizes ``values``, by letter; null is None.

    The letters in ``numbers`` are replaced by their values. Other known letters stay, and only decide conditions. ``values``
    may also contain lengths, of streams that no batch has.

    Raises:
        SymflopsError: the sizes do not fit each other.
    """
    fields = {field.letter: field for field in program.fields}
    given = {
        name: config_value(value) for name, value in values.items() if name in fields and not isinstance(value, MissingSize)
    }
    known, replaced = dict(given), {*numbers, *(_counted(program, fields, given) if given else ())}
    known |= {name: values[name] for stream in program.streams for name in stream.variables if name in values}
    for one in program.definitions:
        letters = set(symbols(one.formula))
        replaced |= {one.letter} if letters <= replaced else set()
        if letters <= known.keys():
            try:
                known[one.letter] = evaluate(one.formula, known)
            except NO_VALUE:
                continue
    whole = {name for name, field in fields.items() if field.kind in WHOLE}
    lengths = [name for stream in program.streams for name in stream.variables]
    writer = writer_of(program, (line for regime in program.regimes for line in regime.lines), lengths)
    return _Specialised(program, given, Folding(known, replaced, whole.union(lengths), writer)).program()


def _counted(program: Program, fields: Mapping[str, Field], given: Mapping[str, Any]) -> set[str]:
    """The letters of known layer counts that occur in numbers of iterations or in functions."""
    found: set[str] = set()

    def noted(formula: Formula) -> Formula:
        for part in walk(formula):
            if isinstance(part, TallyOf) or (isinstance(part, Apply) and part.function not in ("min", "max", "excess")):
                letters = set(symbols(part))
                found.update(letters if letters <= given.keys() else ())
        return formula

    Rewriting(noted)((program.cases, program.parameters))
    return {name for name in found if fields[name].kind == "count"}


class _Specialised:
    """Folds all formulas of a program, and merges and renumbers moments that vanish or become equal."""

    def __init__(self, program: Program, given: Mapping[str, Any], folding: Folding) -> None:
        self.whole, self.given, self.folding = program, given, folding
        self.moments: list[Moment] = []
        self.amounts: dict[Amount, Amount] = {}
        self.places = [self.placed(self.folding.rewritten(moment)) for moment in program.moments]

    def placed(self, moment: Moment) -> tuple[int, Formula]:
        """Add a folded moment to the new ones; returns (its new position, constant factor), with the factor 0 for a zero."""
        poly = expanded(moment.formula)
        if not poly:
            return 0, ZERO
        factor: Formula = ONE
        if len(poly.terms) == 1:
            ((term, number),) = poly.terms.items()
            factor, formula = Num(Fraction(number)), self.folding.writer.term(term, 1)
            moment = moment if formula == moment.formula else replace(moment, formula=formula)
        letters = set(symbols(moment.formula))
        moment = replace(moment, sizes=tuple(name for name in moment.sizes if name in letters))
        for place, other in enumerate(self.moments):
            if (other.items, other.formula, other.side) == (moment.items, moment.formula, moment.side):
                only = (*other.only, *moment.only) if other.only and moment.only else ()
                self.moments[place] = replace(other, only=tuple(dict.fromkeys(only)))
                return place, factor
        self.moments.append(moment)
        return len(self.moments) - 1, factor

    def terms(self, terms: Terms) -> Terms:
        """Fold coefficients by moment position, and move them to the new positions; zeros are dropped."""
        found: dict[int, list[Formula]] = {}
        for position, formula in terms:
            place, factor = self.places[position]
            found.setdefault(place, []).append(times(factor, self.folding.folded(formula)))
        sums = ((place, some[0] if len(some) == 1 else self.folding.short(plus(some))) for place, some in sorted(found.items()))
        return tuple((place, formula) for place, formula in sums if formula != ZERO)

    def program(self) -> Program:
        """Assemble the specialised program."""
        whole, folded = self.whole, self.folding.rewritten
        regimes = tuple(map(self.regime, whole.regimes))
        cases = tuple(map(self.case, whole.cases))
        lines = [line for regime in regimes for some in (regime.lines, *(own for _, own in regime.own)) for line in some]
        fixed = dict(whole.fixed) | dict(self.given)
        made = replace(
            whole, fields=tuple(map(self.field, whole.fields)), definitions=folded(whole.definitions),
            streams=folded(whole.streams), inputs=folded(whole.inputs), moments=tuple(self.moments),
            amounts=tuple(dict.fromkeys(line.amount for line in lines)), tensors=regimes[0].tensors,
            parameters=regimes[0].parameters, regimes=regimes, cases=cases,
            fixed=tuple(fixed.items()), statistics=folded(whole.statistics), inner=folded(whole.inner),
            conditions=folded(whole.conditions), expected=folded(whole.expected),
            requirements=tuple(self.requirements()),
        )  # fmt: skip
        return without_idle(made)

    def field(self, field: Field) -> Field:
        """Copy the field of a size with the known value as its default; unchanged if it is unknown."""
        if field.letter not in self.given:
            return field
        value = self.given[field.letter]
        default = value if value is None or isinstance(value, (bool, str, tuple)) else constant(value)
        return replace(field, default=default, required=False)

    def requirements(self) -> Iterable[Requirement]:
        """Fold the requirements, and drop those that hold.

        Raises:
            SymflopsError: the known sizes do not fit each other.
        """
        for one in self.whole.requirements:
            formula = self.folding.folded(one.formula)
            if isinstance(formula, Num) and formula != ZERO:
                raise SymflopsError(f"the sizes do not fit the model: {one.text}")
            if formula != ZERO:
                yield replace(one, formula=formula)

    def case(self, case: Case) -> Case:
        """Fold the closed forms of a regime under a convention."""
        forward, backward, recomputed = map(self.terms, (case.forward, case.backward, case.recomputed))
        return replace(case, forward=forward, backward=backward, recomputed=recomputed)

    def regime(self, regime: RegimeLines) -> RegimeLines:
        """Fold the work and the parameters of one regime."""
        folded = self.folding.rewritten
        pairs = [(folded(tensor), trains) for tensor, trains in zip(regime.tensors, regime.trains, strict=True)]
        kept = [(tensor, trains) for tensor, trains in pairs if tensor.count != ZERO]
        return replace(
            regime, lines=self.lines(regime.lines), own=tuple((name, self.lines(lines)) for name, lines in regime.own),
            tensors=tuple(tensor for tensor, _ in kept), trains=tuple(trains for _, trains in kept),
            parameters=folded(regime.parameters), trainable=folded(regime.trainable),
            active=None if regime.active is None else folded(regime.active), tokens=self.terms(regime.tokens),
            cache=tuple((kind, self.terms(terms)) for kind, terms in regime.cache),
        )  # fmt: skip

    def lines(self, lines: Iterable[Line]) -> tuple[Line, ...]:
        """Fold the formulas of contractions, and drop contractions that never run."""
        found = []
        for line in lines:
            made: Line = self.folding.rewritten(replace(line, amount=NOTHING))
            amount = self.amount(line.amount)
            runs = any(count != ZERO for count in (made.forward, made.recomputed, *made.backward))
            if runs and made.unit != ZERO and (amount.useful or amount.executed):
                found.append(replace(made, amount=amount))
        return tuple(found)

    def amount(self, amount: Amount) -> Amount:
        """Fold an amount: the useful and executed extent of a contraction, by moment (cached)."""
        if amount not in self.amounts:
            self.amounts[amount] = replace(amount, useful=self.terms(amount.useful), executed=self.terms(amount.executed))
        return self.amounts[amount]


NOTHING = Amount("", (), ())


def without_idle(program: Program) -> Program:
    """Copy a program without moments, statistics and derived sizes that no formula of the program uses."""
    used = {place for form in forms(program) for place, _ in form}
    made = renumbered(program, {place: number for number, place in enumerate(sorted(used))})
    read = {name for moment in made.moments for name in symbols(moment.formula)}
    made = replace(made, statistics=tuple(one for one in made.statistics if one.name in read))
    return replace(made, definitions=tuple(reversed(list(needed(made)))))


def forms(program: Program) -> Iterator[Terms]:
    """Iterate over all vectors in a program that have a coefficient per moment."""
    for case in program.cases:
        yield from (case.forward, case.backward, case.recomputed)
    for amount in program.amounts:
        yield from (amount.useful, amount.executed)
    for regime in program.regimes:
        yield from (regime.tokens, *(terms for _, terms in regime.cache))


def renumbered(program: Program, places: Mapping[int, int]) -> Program:
    """Copy a program with only the moments in ``places`` (old position -> new one), in all its vectors."""

    def moved(terms: Terms) -> Terms:
        return tuple((places[place], formula) for place, formula in terms)

    amounts = {
        amount: replace(amount, useful=moved(amount.useful), executed=moved(amount.executed)) for amount in program.amounts
    }

    def lines(some: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(replace(line, amount=amounts[line.amount]) for line in some)

    regimes = []
    for regime in program.regimes:
        own = tuple((name, lines(some)) for name, some in regime.own)
        cache = tuple((kind, moved(terms)) for kind, terms in regime.cache)
        regimes.append(replace(regime, lines=lines(regime.lines), own=own, tokens=moved(regime.tokens), cache=cache))
    cases = tuple(
        replace(case, forward=moved(case.forward), backward=moved(case.backward), recomputed=moved(case.recomputed))
        for case in program.cases
    )
    moments = tuple(program.moments[place] for place in places)
    return replace(program, amounts=tuple(amounts.values()), regimes=tuple(regimes), cases=cases, moments=moments)


def needed(program: Program) -> Iterator[Definition]:
    """Iterate over the derived sizes that formulas of a program use, in reverse order of definition."""
    letters: set[str] = set()

    def noted(formula: Formula) -> Formula:
        letters.update(part.name for part in walk(formula) if isinstance(part, Sym))
        return formula

    Rewriting(noted)(replace(program, definitions=()))
    wanted = with_definitions(letters, program)
    return (one for one in reversed(program.definitions) if one.letter in wanted)
