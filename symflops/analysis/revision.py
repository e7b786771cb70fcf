"""Differences between two derivations of a spec: of parameters and closed forms, and of figures at published sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

from symflops.analysis.difference import Forms, Work, in_place, renamed, shared
from symflops.analysis.explanation import default_batch
from symflops.emit.python.printer import PythonPrinter
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.evaluate.item_analysis import Change
from symflops.evaluate.stored import DamageTold, Stored
from symflops.formula.factoring import Writer, expanded
from symflops.formula.formula import Formula, Sum
from symflops.ir.program import Case, Program
from symflops.support.errors import SymflopsError

PASSES = ("forward", "backward", "recomputed")
LONG = 4096
"""The length of an item of the first stream, if it has one axis and the model accepts it."""
SAME = "the same formula"
Sizes = Mapping[str, Mapping[str, Any]]
Cell = tuple[str, str]
"""A regime and a convention."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A figure that moves.

    Attributes:
        figure: ``parameters``, ``active parameters``, or a pass.
        ways: The regimes and conventions under which it moves so; empty if these are all.
        formula: The difference as text, in the letters of the spec.
        sizes: (published size with its batch, relative change) pairs.
    """

    figure: str
    ways: str
    formula: str
    sizes: tuple[tuple[str, str], ...]


def moved(before: Mapping[str, Any], after: Mapping[str, Any], sizes: Sizes) -> list[Moved]:
    """Compare two stored programs of a spec; return the figures that move, empty if none does.

    ``sizes`` maps names of published sizes to configs; those of another structure are left out.

    Raises:
        SymflopsError: a program is damaged, or they share no regime and convention.
    """
    with DamageTold():
        return list(_Revision(Stored(before), Stored(after), sizes).rows())


class _Revision:
    def __init__(self, before: Stored, after: Stored, sizes: Sizes) -> None:
        self.stored, self.sizes = (before, after), sizes
        one, two = before.program, after.program
        if one.definitions != two.definitions:
            one, two = unfolded(one), unfolded(two)
        self.programs = renamed(one, two, shared(two, one)), two
        self.estimator = cache(self.estimator_of)

    def rows(self) -> Iterator[Moved]:
        """Yield what moves: parameters of the first regime, then each pass, by equal differences."""
        cells = [self.cells(program) for program in self.programs]
        common = [cell for cell in cells[1] if cell in cells[0]]
        if not common:
            raise SymflopsError("the two programs share no regime and convention")
        one, two = (program.regimes[0] for program in self.programs)
        yield from self.of(common[:1], "parameters", self.change(one.parameters, two.parameters), common[:1])
        if (one.active, two.active) != (one.parameters, two.parameters) and one.active and two.active:
            yield from self.of(common[:1], "active parameters", self.change(one.active, two.active), common[:1])
        for work in PASSES:
            groups: dict[str, list[Cell]] = {}
            for cell in common:
                before, after = (getattr(found[cell], work) for found in cells)
                same = before == after and self.programs[0].moments == self.programs[1].moments
                groups.setdefault("" if same else self.difference(cell, work), []).append(cell)
            for text, group in groups.items():
                yield from self.of(group, work, text, common)

    @staticmethod
    def cells(program: Program) -> dict[Cell, Case]:
        """Map each regime and convention of a program to its closed forms."""
        return {(case.regime, case.convention): case for case in program.cases}

    def of(self, group: Sequence[Cell], figure: str, text: str, common: Sequence[Cell]) -> Iterator[Moved]:
        """Yield the row of a figure under the regimes and conventions ``group``, unless neither formula nor numbers move."""
        sizes = tuple(self.at_sizes(group[0], figure))
        if text or any(change != "0 %" for _, change in sizes):
            yield Moved(figure, ways(group, common), text or SAME, sizes)

    # formulas

    def difference(self, cell: Cell, work: str) -> str:
        """Write the difference of a pass under a regime and a convention: ``+ 2*L*D*E*x``; empty if there is none."""
        forms = Forms(*(Work(program, self.cells(program)[cell]) for program in self.programs))
        return joined(forms.change(work))

    def change(self, before: Formula, after: Formula) -> str:
        """Write the difference of two formulas of sizes; empty if there is none."""
        poly = expanded(after) - expanded(before)
        return signed(Writer([*self.programs[1].keys]).shortest(poly)) if poly else ""

    # numbers

    def estimator_of(self, place: int, size: str, cell: Cell) -> InterpretedEstimator:
        """Create the estimator of the program ``place`` at a published size."""
        return InterpretedEstimator(self.stored[place].document, self.sizes[size], regime=cell[0], convention=cell[1])

    def at_sizes(self, cell: Cell, figure: str) -> Iterator[tuple[str, str]]:
        """Yield (published size with its batch, relative change of a figure) for each size that both programs accept."""
        for size in self.sizes:
            with suppress(SymflopsError):
                models = [self.estimator(place, size, cell) for place in (0, 1)]
                if "parameters" in figure:
                    name = figure.replace("active parameters", "parameters_active")
                    yield size, relative(*(getattr(model, name) for model in models))
                    continue
                batch = long_batch(models[1])
                values = [getattr(model, figure)(model.moments(**batch)) for model in models]
                yield f"{size} at {label(batch)}", relative(*values)


def unfolded(program: Program) -> Program:
    """Replace derived sizes by their formulas."""
    known: dict[str, Formula | None] = {}
    for one in program.definitions:
        known[one.letter] = in_place(one.formula, known)
    made: Program = in_place(replace(program, definitions=()), known)
    return made


def signed(formula: Formula) -> str:
    """Write a formula with its sign in front: ``+ 2*L*D``, ``- D``, ``+ (L*D + D)``."""
    text = PythonPrinter().text(formula)
    return f"+ ({text})" if isinstance(formula, Sum) else f"- {text[1:]}" if text.startswith("-") else f"+ {text}"


def joined(change: Change) -> str:
    """Write a difference of closed forms as a sum of terms: ``+ 2*L*D*x - 4*H*x**2``."""
    found = []
    for moment, formula in change:
        length = PythonPrinter().text(moment.formula)
        found.append(signed(formula) + (f"*({length})" if isinstance(moment.formula, Sum) else f"*{length}" * (length != "1")))
    return " ".join(found)


def ways(group: Sequence[Cell], common: Sequence[Cell]) -> str:
    """Name the regimes and conventions in ``group``; empty if these are all in ``common``."""
    if len(group) == len(common):
        return ""
    every, regimes = dict.fromkeys(convention for _, convention in common), {regime for regime, _ in common}
    alike: dict[tuple[str, ...], list[str]] = {}
    for regime in dict.fromkeys(regime for regime, _ in group):
        alike.setdefault(tuple(name for one, name in group if one == regime), []).append(regime)
    parts = []
    for conventions, some in alike.items():
        words = "" if set(some) == regimes else ", ".join(some)
        left = [name for name in every if name not in conventions]
        under = f"all but {', '.join(left)}" if len(left) < len(conventions) // 2 else ", ".join(conventions)
        parts.append(f"{words} under {under}".strip() if left else words)
    return "; ".join(parts)


def relative(before: int, after: int) -> str:
    """Format the relative change of a figure in percent, or as a factor from ten on."""
    if before == after:
        return "0 %"
    ratio = Fraction(after, before) if before else Fraction(0)
    return "new" if not before else f"x {float(ratio):.3g}" if ratio >= 10 else f"{float(100 * (ratio - 1)):+.3g} %"


def long_batch(model: InterpretedEstimator) -> dict[str, Any]:
    """Return a batch of one item per stream of typical lengths, the first one long if the model accepts that."""
    batch = default_batch(model)
    first = next(iter(batch), "")
    if isinstance(batch.get(first), list) and isinstance(batch[first][0], int):
        with suppress(SymflopsError):
            model.moments(**{**batch, first: [LONG]})
            return {**batch, first: [LONG]}
    return batch


def label(batch: Mapping[str, Any]) -> str:
    """Name a batch by the item of its first stream: ``text 4096``, ``latent 16 x 16``."""
    for name, items in batch.items():
        item = items[0] if isinstance(items, list) else items
        return f"{name} {' x '.join(map(str, item)) if isinstance(item, list) else item}"
    return "no lengths"
