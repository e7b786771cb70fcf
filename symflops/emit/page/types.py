"""The types of the tables and formulas of a derivation page, free of markup."""

from __future__ import annotations

from dataclasses import dataclass

from symflops.evaluate.item_analysis import Against, Analysis
from symflops.evaluate.step import Inserted
from symflops.evaluate.typical_values import LevelLengths
from symflops.evaluate.units import NAMES
from symflops.evaluate.worked_figures import Worked
from symflops.formula.formula import Formula, symbols
from symflops.formula.terms import Terms
from symflops.ir.batch import StreamInfo
from symflops.ir.program import Field, Program
from symflops.ir.verification import Verification

LONG = 24
"""Length of a name above which tables print the moments instead."""


@dataclass(frozen=True, slots=True)
class AmountRow:
    """An amount that contractions run over, in moments: useful work, and all executed work."""

    name: str
    useful: Formula
    executed: Formula


@dataclass(frozen=True, slots=True)
class Cell:
    """Number of times that a gradient is computed, and the letter of the note if that is not always."""

    count: Formula
    note: str


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """A contraction in both passes, by its number on the page."""

    number: int
    group: str
    module: str
    contraction: str
    amount: str
    unit: Formula
    forward: Formula
    inputs: tuple[Cell, ...]
    weights: tuple[Cell, ...]
    seen: bool


@dataclass(frozen=True, slots=True)
class SumRow:
    """Sum of the contractions over one amount: their numbers, and the work of both passes per unit."""

    number: int
    amount: str
    rows: tuple[int, ...]
    forward: Formula
    backward: Formula


@dataclass(frozen=True, slots=True)
class Note:
    """Note on gradients that are not always computed, with the reason.

    ``groups`` are (times computed, forward executions, clauses), each clause (operands, block, modules). ``missing`` is the
    useful work that these gradients save. If the note is ``assumed``, the convention assumes their cost.
    """

    letter: str
    reason: str
    groups: tuple[tuple[Formula, Formula, tuple[tuple[str, str, tuple[str, ...]], ...]], ...]
    missing: Formula
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """Numbered closed form; ``same`` is the number of an equal earlier form or 0; ``moments`` are letters."""

    name: str
    number: int
    terms: Terms
    same: int = 0
    moments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FormGroup:
    """Closed forms that several conventions share."""

    conventions: tuple[str, ...]
    forms: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class RegimePage:
    """One regime: both passes by operator, and the closed forms.

    ``everything``: all parameters train; ``trains``: some gradient is computed; ``assumed``: the convention assumes the cost of
    all gradients. ``ratios`` are coefficients at the default sizes: (moment, forward, backward, backward / forward).
    """

    name: str
    doc: str
    trainable: Formula
    everything: bool
    trains: bool
    rows: tuple[OperatorRow, ...]
    sums: tuple[SumRow, ...]
    notes: tuple[Note, ...]
    groups: tuple[FormGroup, ...]
    ratios: tuple[tuple[str, int, int, str], ...]
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class TensorRow:
    """A parameter: the shape of one copy, the number of copies, and the elements of all."""

    group: str
    name: str
    shape: tuple[Formula, ...]
    copies: Formula
    count: Formula


@dataclass(frozen=True, slots=True)
class Page:
    """Contents of a derivation page in order; ``streams`` come with their input tensors and layouts.

    ``analysis`` is of the first regime and convention; ``letters`` are its letters that the program lacks, with their LaTeX.
    ``active`` are the parameters that one token goes through, None for all.
    ``worked`` are figures of a typical batch, if all sizes have defaults.
    ``levels`` defines letters for the lengths of levels.
    ``against`` compares the model's cost with its baseline.
    ``inserted`` are the values of a measured case.
    ``offered`` are all regimes of the model with their docs, ``left_out`` the parts that each omits.
    """

    program: Program
    streams: tuple[tuple[StreamInfo, tuple[tuple[str, str], ...]], ...]
    amounts: tuple[AmountRow, ...]
    regimes: tuple[RegimePage, ...]
    tensors: tuple[TensorRow, ...]
    default_parameters: int | None
    active: Formula | None
    default_active: int | None
    pairs_differ: bool
    unseen: bool
    verified: tuple[Verification, ...]
    analysis: Analysis
    letters: tuple[tuple[str, str], ...]
    worked: Worked | None = None
    fixed: tuple[tuple[str, str], ...] = ()
    offered: tuple[tuple[str, str], ...] = ()
    left_out: tuple[tuple[str, Field], ...] = ()
    inserted: Inserted | None = None
    levels: LevelLengths | None = None
    against: Against | None = None

    @property
    def replaced(self) -> dict[str, Formula]:
        """Amounts with long names that tables replace by their moments: few symbols, useful equal to executed."""
        rows = (row for row in self.amounts if len(row.name) > LONG and row.useful == row.executed)
        return {row.name: row.useful for row in rows if sum(1 for _ in symbols(row.useful)) <= 2}

    @property
    def of_one_config(self) -> bool:
        """Whether all sizes are fixed, so that figures refer to this config instead of the defaults."""
        return len(self.fixed) == len(self.program.fields) > 0

    @property
    def unit(self) -> str:
        """Unit of the first convention, which all tables use, as a word."""
        return self.unit_of(self.program.conventions[0])

    def unit_of(self, convention: str) -> str:
        """Unit of a convention as a word."""
        return NAMES[self.counted_in(convention)]

    def counted_in(self, convention: str) -> str:
        """Key of the unit of a convention; ``flops`` if the program does not have the convention."""
        return next((row.unit for row in self.program.rows if row.name == convention), "flops")
