"""Counts that are too long for a table get a symbol of their own, which a page defines once among the derived sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from operator import is_
from typing import Any

from symflops.emit.math.lines import width
from symflops.emit.math.printer import LatexPrinter, letters
from symflops.model.formula import Apply, Formula, Sym, TallyOf, Text, parts, walk
from symflops.model.program import Definition, Program

TALLY, CELL, UNIT = 60.0, 130.0, 260.0  # points: a sum over iterations, a count, and a product, in the lines of a narrow cell
WORD = 10  # letters of a text that fits in one line of a narrow cell, which cannot break there
ATOMS = frozenset({str, int, bool, float, Fraction, type(None)})
HEADS = ("N", "K", "M", "C", "R", "Z")


def abbreviated(program: Program) -> Program:
    """``program`` with a definition for what is long: sums over iterations, functions of sizes, counts in tables."""
    for long in (long_parts, long_counts):
        program = named(program, list(dict.fromkeys(long(program))))
    return program


def long_parts(program: Program) -> Iterator[Formula]:
    """The sums over iterations, and the functions of sizes, that are wide; those within another one are a part of it."""
    printer = LatexPrinter(letters(program))

    def outermost(formula: Formula) -> Iterator[Formula]:
        if isinstance(formula, (TallyOf, Apply)):
            yield formula
            return
        for part in parts(formula):
            yield from outermost(part)

    for formula in distinct([*counts(program), *units(program)]):
        for part in outermost(formula):
            if width(printer.text(part)) > (TALLY if isinstance(part, TallyOf) else CELL):
                yield part


def long_counts(program: Program) -> Iterator[Formula]:
    """The counts that are still wide, and the FLOPs of one that are."""
    printer = LatexPrinter(letters(program))
    for formula in distinct(counts(program)):
        stiff = any(isinstance(part, Text) and len(part.value) > WORD for part in walk(formula))
        if stiff or width(printer.text(formula)) > CELL:
            yield formula
    yield from (unit for unit in distinct(units(program)) if width(printer.text(unit)) > UNIT)


def distinct(formulas: Iterable[Formula]) -> Iterable[Formula]:
    """Each object once, in order: many lines share one."""
    return {id(formula): formula for formula in formulas}.values()


def counts(program: Program) -> Iterator[Formula]:
    """How often things are done, as tables show it."""
    for regime in program.regimes:
        for line in regime.lines:
            yield from (line.forward, *line.backward)
    yield from (tensor.copies for tensor in program.tensors)


def units(program: Program) -> Iterator[Formula]:
    """The FLOPs of one product."""
    return (line.unit for regime in program.regimes for line in regime.lines)


def named(program: Program, formulas: list[Formula]) -> Program:
    """``program`` with a letter for each of ``formulas``, wherever one stands."""
    if not formulas:
        return program
    taken = {text for text in letters(program).values() if "_" not in text}
    head = next((head for head in HEADS if head not in taken), "N")
    first = 1 + sum(definition.letter.startswith("count@") for definition in program.definitions)
    made = tuple(
        Definition(letter=f"count@{number}", latex=f"{head}_{{{number}}}", formula=formula)
        for number, formula in enumerate(formulas, first)
    )
    rewriting = _Rewriting({definition.formula: Sym(definition.letter) for definition in made})
    return replace(
        program,
        definitions=(*program.definitions, *made),
        amounts=rewriting(program.amounts),
        tensors=rewriting(program.tensors),
        parameters=rewriting(program.parameters),
        regimes=rewriting(program.regimes),
        cases=rewriting(program.cases),
    )


class _Rewriting:
    """Replaces formulas wherever they stand in frozen types and tuples; what holds none of them stays the same object."""

    def __init__(self, table: dict[Formula, Formula]) -> None:
        self.table = table
        self.kinds = frozenset(map(type, table))
        self.fields: dict[type, tuple[str, ...]] = {}
        self.known: dict[int, tuple[Any, Any]] = {}  # by identity; the first is kept so that no other takes its place

    def __call__(self, value: Any) -> Any:
        if type(value) in ATOMS:
            return value
        found = self.known.get(id(value))
        if found is None:
            found = self.known[id(value)] = (value, self._made(value))
        return found[1]

    def _made(self, value: Any) -> Any:
        if type(value) in self.kinds and value in self.table:
            return self.table[value]
        if isinstance(value, tuple):
            items = [self(item) for item in value]
            return value if all(map(is_, items, value)) else tuple(items)
        changed = {}
        for name in self.names(type(value)):
            old = getattr(value, name)
            new = self(old)
            if new is not old:
                changed[name] = new
        return replace(value, **changed) if changed else value

    def names(self, kind: type) -> tuple[str, ...]:
        """The fields of a frozen type; nothing else has any."""
        if kind not in self.fields:
            self.fields[kind] = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
        return self.fields[kind]
