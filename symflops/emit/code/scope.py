"""The body of a function that evaluates formulas, in any language: the letters that it reads, counts, and shared parts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from symflops.emit.code.printer import Language
from symflops.emit.code.sharing import named_parts
from symflops.model.formula import Bracket, Formula, Sym, brackets, symbols, tallies
from symflops.model.program import Program


def identifier(regime: str) -> str:
    """A regime as part of the name of a function."""
    return re.sub(r"\W", "_", regime)


def needed(formulas: Iterable[Formula], program: Program) -> list[str]:
    """The letters in ``formulas`` and in the derived sizes that they read, in the program's order."""
    wanted = {name for formula in formulas for name in symbols(formula)}
    for definition in reversed(program.definitions):
        if definition.letter in wanted:
            wanted |= set(symbols(definition.formula))
    return [field.letter for field in program.fields if field.letter in wanted] + [
        item.letter for item in program.definitions if item.letter in wanted
    ]


def letters_read(program: Program, language: Language, formulas: Collection[Formula]) -> list[str]:
    """Statements that read the letters of ``formulas`` from ``sizes``."""
    wanted = needed(formulas, program)
    inside = [*formulas, *(item.formula for item in program.definitions if item.letter in wanted)]
    tested = {formula.arguments[0] for formula in brackets(inside) if formula.kind == "given"}
    valued = {name for formula in inside for name in symbols(formula, given=False)}
    lines, printer = [], language.printer()
    for size in program.fields:
        if size.letter in wanted and size.letter in valued:
            lines.append(language.assigned(printer.symbol(size.letter), language.size(size)))
        if size.nullable and Sym(size.letter) in tested:
            lines.append(language.assigned(printer.text(Bracket("given", (Sym(size.letter),))), language.given(size)))
    definitions = [item for item in program.definitions if item.letter in wanted]
    return lines + [language.assigned(printer.symbol(item.letter), printer.text(item.formula)) for item in definitions]


class Scope:
    """The body of a function that evaluates formulas: its statements, the names in it, and a printer that uses the names."""

    def __init__(self, program: Program, language: Language, formulas: Iterable[Formula]) -> None:
        self.language, self.printer = language, language.printer()
        formulas = tuple(dict.fromkeys(formulas))
        names, counts = self.tallied(formulas, program)
        self.statements = [*letters_read(program, language, formulas), *counts]
        self.printer.named |= names
        letters = {size.letter for size in program.fields} | {item.letter for item in program.definitions}
        self.taken = letters | set(names.values())

    def tallied(self, formulas: Iterable[Formula], program: Program) -> tuple[dict[Formula, str], list[str]]:
        """A name for each count over a list of layers, and the statements that count."""
        labels, lines = dict(program.loops), []
        names: dict[Formula, str] = {}
        for tally in dict.fromkeys(tally for formula in formulas for tally in tallies(formula)):
            label = labels.get(tally.index, "sum" if tally.index.endswith("@") else "layers")
            names[tally] = f"{label}_{sum(name.rpartition('_')[0] == label for name in names.values()) + 1}"
            lines.append(self.language.assigned(names[tally], self.printer.text(tally)))
        return names, lines

    def share(self, formulas: Iterable[Formula]) -> None:
        """Assign names to the parts that several of ``formulas`` have in common."""
        self.statements += [self.language.assigned(*part) for part in named_parts(formulas, self.printer, self.taken)]
