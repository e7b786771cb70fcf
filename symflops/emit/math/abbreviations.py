"""Programs as pages print them: symbols for counts that are too long for a table, and plain words for our functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from symflops.emit.math.definitions import HEADS, by_choices, defined, head_of
from symflops.emit.math.lines import width
from symflops.emit.math.printer import LatexPrinter, letters
from symflops.formula.formula import ZERO, Apply, Bracket, Formula, Prod, Sum, Sym, TallyOf, Text, parts, walk
from symflops.formula.terms import Rewriting, plus, times
from symflops.ir.program import Definition, Field, Program
from symflops.ops.activation import LEARNED


def with_plain_words(program: Program) -> Program:
    """``program`` without the parameters of activations that are no default; its sizes say so."""
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
    """A size with a note on the words whose parameters are left out."""
    return replace(field, doc=f"{field.doc}; parameters of {' and '.join(words)} are left out here") if words else field


TALLY, CELL, UNIT = 60.0, 130.0, 260.0  # points of a sum over iterations, a count, and a product in a narrow cell
WORD = 10  # letters of a text that fits in one line of a narrow cell; it cannot break there


def abbreviated(program: Program) -> Program:
    """``program`` with definitions: those that shorten closed forms, and one for each long count that a table would show."""
    program = by_choices(defined(program))
    for long in (long_parts, long_counts):
        program = named(program, list(dict.fromkeys(long(program))))
    return program


def long_parts(program: Program) -> Iterator[Formula]:
    """The wide sums over iterations and functions of sizes; of nested ones, the outer."""
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
    """The counts that are still wide, and the wide FLOPs of one product."""
    printer = LatexPrinter(letters(program))
    for formula in distinct(counts(program)):
        stiff = any(isinstance(part, Text) and len(part.value) > WORD for part in walk(formula))
        if stiff or width(printer.text(formula)) > CELL:
            yield formula
    yield from (unit for unit in distinct(units(program)) if width(printer.text(unit)) > UNIT)


def distinct(formulas: Iterable[Formula]) -> Iterable[Formula]:
    """Each object once, in order; many lines share one."""
    return {id(formula): formula for formula in formulas}.values()


def counts(program: Program) -> Iterator[Formula]:
    """The numbers of executions and copies that tables show."""
    for regime in program.regimes:
        for line in regime.lines:
            yield from (line.forward, *line.backward)
    yield from (tensor.copies for tensor in program.tensors)


def units(program: Program) -> Iterator[Formula]:
    """The FLOPs of one product."""
    return (line.unit for regime in program.regimes for line in regime.lines)


def named(program: Program, formulas: list[Formula]) -> Program:
    """``program`` with a letter in place of each of ``formulas``."""
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
