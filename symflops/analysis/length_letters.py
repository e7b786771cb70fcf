"""Letters for what the lengths of a batch become in a model: tokens of several axes, and the lengths of levels.

The tokens of a stream with two axes are the product of what the axes become, such as patches. In a model that halves its
input, ``h_1`` is half of ``h``, and ``h_2`` half of that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symflops.algebra.sparse import Factor, Monomial, Poly
from symflops.analysis.length_polynomials import Unknown
from symflops.model.formula import Apply, Formula, Power, Prod, Sum, Sym, operators, parts, symbols, walk
from symflops.model.program import Program
from symflops.model.rewriting import Rewriting
from symflops.model.sums import StreamInfo

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


def product_of(program: Program, stream: StreamInfo) -> Unknown | None:
    """The product of the axes of a stream, if each axis appears as one function in all moments; else None.

    None also for a stream with one axis.
    """
    axes: dict[str, set[Formula]] = {name: set() for name in stream.variables}
    for moment in program.moments:
        for atom in outermost(moment.formula, axes.keys()):
            for name in axes.keys() & set(symbols(atom)):
                axes[name].add(atom)
    atoms = tuple(atom for found in axes.values() for atom in found)
    if len(axes) < 2 or any(len(found) != 1 for found in axes.values()) or len(set(atoms)) < len(atoms):
        return None
    return Unknown(stream.items, "tokens", (stream.name,), stream.variables, f"tokens@{stream.name}", atoms)


def outermost(formula: Formula, names: Collection[str]) -> Iterator[Formula]:
    """The outermost atoms of a formula that contain one of ``names``."""
    if isinstance(formula, (Sum, Prod, Power)):
        for part in parts(formula):
            yield from outermost(part, names)
    elif any(name in names for name in symbols(formula)):
        yield formula


def in_tokens(total: Poly, axes: Sequence[Formula], letter: Sym) -> Poly:
    """``total`` with ``letter`` for the product of all axes; unchanged if a term has them at different powers."""
    found: dict[Monomial, Factor] = {}
    for monomial, factor in total.terms.items():
        powers = {dict(monomial).get(axis, 0) for axis in axes}
        if len(powers) > 1:
            return total
        power = powers.pop()
        kept = frozenset(pair for pair in monomial if pair[0] not in axes)
        key = kept | {(letter, power)} if power else kept
        found[key] = found.get(key, 0) + factor
    return Poly(found)
