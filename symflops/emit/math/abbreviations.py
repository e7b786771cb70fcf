"""Abbreviations for pages: symbols for counts too long for a table cell, and simplified activations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from symflops.emit.math.definitions import HEADS, by_choices, defined, head_of
from symflops.emit.math.printer import LatexPrinter, letters, width
from symflops.formula.formula import ZERO, Apply, Bracket, Formula, Prod, Sum, Sym, TallyOf, Text, parts, walk
from symflops.formula.terms import Rewriting, plus, times
from symflops.ir.program import Definition, Field, Program
from symflops.ops.activation import LEARNED


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
