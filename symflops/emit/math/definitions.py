"""Definitions that shorten closed forms: letters for repeated parts and for choices of a config.

A definition is a sum that recurs, a number of iterations, or a value that depends on conditions of a config; the last is
printed by cases. A greedy search adds the definition that shortens forms and definitions most, until none shortens them.
On pages, counts too long for a table cell get letters, too, and parameters of other activations are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from symflops.emit.math.printer import LatexPrinter, letters, width
from symflops.emit.math.shortest import (
    COUNT,
    PART,
    ROUNDS,
    Measured,
    atoms,
    joined,
    measured,
    multiplied_out,
    normalised,
    plainer,
    shared,
    weight,
)
from symflops.formula.formula import (
    MINUS,
    ZERO,
    Apply,
    Bracket,
    Formula,
    Prod,
    Sum,
    Sym,
    TallyOf,
    Text,
    brackets,
    operators,
    parts,
    symbols,
    walk,
)
from symflops.formula.sparse import Factor, Monomial, Poly, ratio, reduced
from symflops.formula.terms import Rewriting, plus, times
from symflops.ir.program import Definition, Field, Program
from symflops.ops.elementwise import LEARNED

LEAST, MOST = 14, 300  # operators up to which a form needs no letters, and terms above which it is too long for a paper
TRIED, CASES, FEW = 8, 4, 5
HEADS, PARTS = ("N", "K", "M", "C", "R", "Z"), ("A", "Q", "U", "Y", "X")


@dataclass(frozen=True)
class Made:
    """A definition that shortens formulas: a new letter for a polynomial."""

    letter: Sym
    value: Poly

    @cached_property
    def identity(self) -> Poly:
        """The value minus the letter: a polynomial that equals 0."""
        return self.value - Poly.atom(self.letter)

    def put_into(self, poly: Poly) -> Poly:
        """Substitute the letter into ``poly`` wherever that makes it shorter."""
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
    """Polynomials that are printed together, and the definitions ``made`` for them so far."""

    writer: Measured
    polys: tuple[Poly, ...]
    made: tuple[Made, ...] = ()

    @cached_property
    def cost(self) -> int:
        """Effort to read the polynomials and the definitions, as operators in their shortest forms."""
        return sum(map(self.writer.cost, self.polys)) + sum(self.writer.worth(each.value) for each in self.made)

    @cached_property
    def weight(self) -> int:
        """Quick estimate of :attr:`cost` from the terms of the polynomials and the definitions."""
        return sum(weight(part) for poly in (*self.polys, *(each.value for each in self.made)) for part in poly.terms)

    def using(self, made: Made) -> Forms:
        """Return the forms with a further definition, its letter substituted wherever that is shorter.

        It is not substituted into definitions that it depends on.
        """
        read = self.read_by(made)
        earlier = (each if each.letter in read else replace(each, value=made.put_into(each.value)) for each in self.made)
        return Forms(self.writer, tuple(map(made.put_into, self.polys)), (*earlier, made))

    def read_by(self, made: Made) -> set[Formula]:
        """Return the letters of the definitions that ``made`` depends on, directly or through others."""
        found, left = set[Formula](), [made]
        while left:
            names = {name for atom in atoms(left.pop().value) for name in symbols(atom)}
            further = [each for each in self.made if each.letter.name in names and each.letter not in found]
            found |= {each.letter for each in further}
            left += further
        return found

    def shortened(self) -> Forms:
        """Return the forms with the definition that shortens them most; the forms themselves if none does."""
        further = []
        for value in dict.fromkeys(map(normalised, self.writer.candidates(self.polys))):
            cases = self.writer.cases(value)
            if value and len(cases) <= CASES and (len(value.terms) <= FEW if len(cases) == 1 else not shared(cases)):
                counting = all(atom in self.writer.counts or isinstance(atom, Bracket) for atom in atoms(value))
                further.append(self.using(Made(Sym(f"{COUNT if counting else PART}{len(self.made) + 1}"), value)))
        return min((self, *sorted(further, key=lambda forms: forms.weight)[:TRIED]), key=lambda forms: forms.cost)


def defined(program: Program) -> Program:
    """Add definitions to ``program`` if its closed forms and the definitions together become shorter."""
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


def by_choices(program: Program) -> Program:
    """Write each derived size with several conditions by cases, or in a shorter form if there is one."""
    writer = Measured(program)

    def shorter(definition: Definition) -> Definition:
        if definition.letter.startswith((COUNT, PART)) or len(set(brackets([definition.formula]))) < 2:
            return definition
        poly = multiplied_out(definition.formula)
        rows = writer.cases(poly)
        forms = [plainer(writer.shortest(poly)), definition.formula]
        if len(rows) <= CASES:
            forms.append(joined(tuple((conditions, plainer(writer.shortest(value))) for conditions, value in rows)))
        return replace(definition, formula=min(forms, key=measured))

    return replace(program, definitions=tuple(map(shorter, program.definitions)))


class Opening:
    """Function that replaces the letters of made definitions in a formula by their values."""

    def __init__(self, program: Program) -> None:
        self.values: dict[Formula, Formula] = {}
        for definition in program.definitions:
            if definition.letter.startswith((COUNT, PART)):
                self.values[Sym(definition.letter)] = self(definition.formula)

    def __call__(self, formula: Formula) -> Formula:
        opened: Formula = Rewriting(lambda part: self.values.get(part) if isinstance(part, Sym) else None)(formula)
        return opened


def in_letters(program: Program) -> Callable[[Formula], Formula]:
    """Return a function that rewrites a formula as short as possible, with letters of :func:`defined`."""
    writer, opening = Measured(program), Opening(program)
    known: list[Made] = []
    for definition in program.definitions:
        if definition.letter.startswith((COUNT, PART)):
            value = multiplied_out(opening(definition.formula))
            counts = definition.letter.startswith(COUNT) and bool(value)
            if counts or any(isinstance(atom, Bracket) for atom in atoms(value)):
                for earlier in known:
                    value = earlier.put_into(value)
                known.append(Made(Sym(definition.letter), value))

    @cache
    def written(formula: Formula) -> Formula:
        poly = multiplied_out(opening(formula))
        if not poly or len(poly.terms) > MOST:
            return formula
        for identity in identities(poly):
            poly = reduced(poly, identity, weight)
        for made in known:
            poly = made.put_into(poly)
        return min((plainer(writer.shortest(poly)), formula), key=measured)

    return written


def in_counts(write: Callable[[Formula], Formula]) -> Callable[[Formula], Formula]:
    """Return ``write`` of :func:`in_letters`, changed to leave formulas alone that would get part letters.

    Such a letter, which stands for a part of a closed form, may cancel in a difference.
    """

    def written(formula: Formula) -> Formula:
        found = write(formula)
        return formula if any(name.startswith(PART) for name in symbols(found)) else found

    return written


def identities(poly: Poly) -> Iterator[Poly]:
    """Yield polynomials ``max(0, a - b) + min(a, b) - a``, which equal 0, if ``poly`` has both functions."""
    found = atoms(poly)
    for atom in found:
        match atom:
            case Apply("min", (one, other)):
                for a, b in ((one, other), (other, one)):
                    over = Apply("excess", (plus([a, times(MINUS, b)]),))
                    if over in found:
                        yield Poly.atom(atom) + Poly.atom(over) - multiplied_out(a)


def with_definitions(program: Program, shown: Sequence[Formula], found: Forms) -> Program:
    """Return the program with the definitions ``found``, used in ``shown`` and all other formulas."""
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
    """Return a function that renumbers the letters of definitions in formulas, in order, by kind."""
    new: dict[Formula, Formula] = {}
    for head in (COUNT, PART):
        mine = [each.letter for each in in_order(made) if each.letter.name.startswith(head)]
        new |= {letter: Sym(f"{head}{number}") for number, letter in enumerate(mine, 1)}
    return Rewriting(lambda formula: new.get(formula) if isinstance(formula, Sym) else None)


def in_order(made: Sequence[Made]) -> Iterator[Made]:
    """Yield the definitions in an order in which each follows those that it depends on."""
    left = list(made)
    while left:
        names = {each.letter.name for each in left}
        ready = next(each for each in left if names.isdisjoint(name for atom in atoms(each.value) for name in symbols(atom)))
        left.remove(ready)
        yield ready


def listed(program: Program, found: Forms, names: Rewriting) -> Iterator[Definition]:
    """Yield the definitions ``found`` as definitions of a program, with letters renamed by ``names``."""
    heads = {COUNT: head_of(program, HEADS), PART: head_of(program, PARTS)}
    for made in in_order(found.made):
        letter = names(made.letter).name
        head, _, number = letter.partition("@")
        rows = tuple(
            (conditions, plainer(found.writer.shortest(value))) for conditions, value in found.writer.cases(made.value)
        )
        yield Definition(letter, names(joined(rows)), f"{heads[f'{head}@']}_{{{number}}}")


def head_of(program: Program, heads: Sequence[str]) -> str:
    """Return the first of the letters ``heads`` that the program does not use, else the first of all.

    Definitions are named by this letter with a number.
    """
    taken = {text for text in letters(program).values() if "_" not in text}
    return next((head for head in heads if head not in taken), heads[0])


def with_plain_words(program: Program) -> Program:
    """Return the program without parameters that only activations other than the default ones have.

    The descriptions of the sizes that choose activations then mention the omission.
    """
    defaults = {field.letter: field.default for field in program.fields}
    left_out: dict[str, dict[str, None]] = {}

    def absent(formula: Formula) -> bool:
        match formula:
            case Bracket("equal", (Sym(letter), Text(word)) | (Text(word), Sym(letter))) if word in LEARNED:
                return word != defaults.get(letter) and left_out.setdefault(letter, {}).setdefault(word) is None
        return False

    def plainly(formula: Formula) -> Formula:
        if not any(map(absent, walk(formula))):
            return formula
        match formula:
            case Sum(terms):
                return plus([plainly(term) for term in terms])
            case Prod(factors):
                return times(*map(plainly, factors))
        return ZERO if absent(formula) else Rewriting(lambda part: None if part is formula else plainly(part))(formula)

    plain: Program = Rewriting(lambda formula: plainly(formula) if parts(formula) else None)(program)
    if not left_out:
        return program
    tensors = tuple(tensor for tensor in plain.tensors if tensor.count != ZERO)
    return replace(plain, tensors=tensors, fields=tuple(noted(field, left_out.get(field.letter)) for field in plain.fields))


def noted(field: Field, words: dict[str, None] | None) -> Field:
    """Return a size whose description says that parameters of activations ``words`` are omitted."""
    return replace(field, doc=f"{field.doc}; parameters of {' and '.join(words)} are left out here") if words else field


TALLY, CELL, UNIT = 60.0, 130.0, 260.0  # maximum widths in points in a cell: iteration sum, count, FLOPs
WORD = 10  # maximum letters of a string in a narrow cell, where it cannot break


def abbreviated(program: Program) -> Program:
    """Add definitions that shorten closed forms, and one for each count too long for a table."""
    program = by_choices(defined(program))
    for long in (long_parts, long_counts):
        program = named(program, list(dict.fromkeys(long(program))))
    return program


def long_parts(program: Program) -> Iterator[Formula]:
    """Yield the sums over iterations and functions of sizes in tables that are too wide for a cell.

    Of nested ones only the outermost is yielded.
    """
    printer = LatexPrinter(letters(program))

    def outermost(formula: Formula) -> Iterator[Formula]:
        if isinstance(formula, (TallyOf, Apply)):
            yield formula
            return
        for part in parts(formula):
            yield from outermost(part)

    found = (part for formula in distinct([*counts(program), *units(program)]) for part in outermost(formula))
    yield from (part for part in found if width(printer.text(part)) > (TALLY if isinstance(part, TallyOf) else CELL))


def long_counts(program: Program) -> Iterator[Formula]:
    """Yield numbers of executions and FLOPs per product that are too wide for a table cell."""
    printer = LatexPrinter(letters(program))
    for formula in distinct(counts(program)):
        stiff = any(isinstance(part, Text) and len(part.value) > WORD for part in walk(formula))
        if stiff or width(printer.text(formula)) > CELL:
            yield formula
    yield from (unit for unit in distinct(units(program)) if width(printer.text(unit)) > UNIT)


def distinct(formulas: Iterable[Formula]) -> Iterable[Formula]:
    """Return the formulas in order, each object once (not compared by value, which is slow)."""
    return {id(formula): formula for formula in formulas}.values()


def counts(program: Program) -> Iterator[Formula]:
    """Yield the number of executions of each contraction and gradient, and of copies of each tensor."""
    for regime in program.regimes:
        for line in regime.lines:
            yield from (line.forward, *line.backward)
    yield from (tensor.copies for tensor in program.tensors)


def units(program: Program) -> Iterator[Formula]:
    """Return the FLOPs of one product, per contraction."""
    return (line.unit for regime in program.regimes for line in regime.lines)


def named(program: Program, formulas: list[Formula]) -> Program:
    """Replace each of ``formulas`` in ``program`` by a new letter with a definition."""
    if not formulas:
        return program
    head = head_of(program, HEADS)
    first = 1 + sum(definition.letter.startswith("count@") for definition in program.definitions)
    made = tuple(
        Definition(letter=f"count@{number}", latex=f"{head}_{{{number}}}", formula=formula)
        for number, formula in enumerate(formulas, first)
    )
    symbols = {definition.formula: Sym(definition.letter) for definition in made}
    kinds = frozenset(map(type, symbols))  # saves most hashes of formulas
    rewriting = Rewriting(lambda formula: symbols.get(formula) if type(formula) in kinds else None)
    changed = {name: rewriting(getattr(program, name)) for name in ("amounts", "tensors", "parameters", "regimes", "cases")}
    return replace(program, definitions=(*program.definitions, *made), **changed)
