"""Letters for the lengths of the levels of a model that halves its input: ``h_1`` is half of ``h``, ``h_2`` half of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from symflops.model.formula import Apply, Formula, Sym, operators, symbols, walk
from symflops.model.program import Program
from symflops.model.rewriting import Rewriting

FEWEST = 3
"""Lengths of levels that get letters; fewer stand as they are."""
ROUNDED = ("floordiv", "ceildiv")


@dataclass(frozen=True, slots=True)
class LevelLength:
    """The letter of the length of a level, the length of the input, its number, and what it is in letters before it."""

    letter: str
    length: str
    number: int
    formula: Formula


class LevelLengths:
    """The lengths of levels in the moments of a program."""

    def __init__(self, program: Program) -> None:
        lengths = {name for stream in program.streams for name in stream.variables}
        found = dict.fromkeys(
            part
            for moment in program.moments
            for part in walk(moment.formula)
            if isinstance(part, Apply) and part.function in ROUNDED and len(set(symbols(part)) & lengths) == 1
        )
        levels = [part for part in found if set(symbols(part)) <= lengths]
        self.letters: dict[Formula, Sym] = {}
        self.rows: list[LevelLength] = []
        for part in sorted(levels, key=operators) if len(levels) >= FEWEST else ():
            (length,) = set(symbols(part))
            number = 1 + sum(row.length == length for row in self.rows)
            row = LevelLength(f"{length}@{number}", length, number, self.short(part))
            self.rows.append(row)
            self.letters[part] = Sym(row.letter)

    def short(self, node: Any) -> Any:
        """A part of a page with the letters of levels."""
        return Rewriting(self.letters.get)(node) if self.letters else node

    def latex(self, known: Mapping[str, str]) -> dict[str, str]:
        """The LaTeX of the letters."""
        return {row.letter: f"{known[row.length]}_{{{row.number}}}" for row in self.rows}
