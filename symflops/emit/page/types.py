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
"""Letters of a name beyond which a table shows the moments that it stands for."""


@dataclass(frozen=True, slots=True)
class AmountRow:
    """What contractions run over, in moments: the useful part, and the executed whole."""

    name: str
    useful: Formula
    executed: Formula


@dataclass(frozen=True, slots=True)
class Cell:
    """How often a gradient is computed, and the letter of the note on why not always."""

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
    """The contractions that run over one amount, by their numbers: the work of both passes per unit of the amount."""

    number: int
    amount: str
    rows: tuple[int, ...]
    forward: Formula
    backward: Formula


@dataclass(frozen=True, slots=True)
class Note:
    """Why some gradients are not always computed.

    ``groups`` are (times computed, of how many, whose), and the last are (operands, block, modules). ``missing`` is the useful
    work that these gradients save. If the note is ``assumed``, the convention assumes their cost.
    """

    letter: str
    reason: str
    groups: tuple[tuple[Formula, Formula, tuple[tuple[str, str, tuple[str, ...]], ...]], ...]
    missing: Formula
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """A numbered closed form; ``same`` is the number of an equal form before it, or 0; ``moments`` are letters of its sums."""

    name: str
    number: int
    terms: Terms
    same: int = 0
    moments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FormGroup:
    """The closed forms of conventions that count alike."""

    conventions: tuple[str, ...]
    forms: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class RegimePage:
    """One regime: both passes by operator, and the closed forms.

    ``everything`` says whether all parameters train, ``trains`` whether any gradient is computed, ``assumed`` whether the
    convention assumes the cost of all gradients. ``ratios`` are coefficients at the default sizes: (moment, forward, backward,
    backward / forward).
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
    """The contents of a derivation page, in order; streams come with the inputs that carry them and their layouts.

    ``analysis`` is of the first regime and convention; ``letters`` are its letters that the program lacks, with their LaTeX.
    ``active`` are the parameters that one token goes through, None for all.
    ``worked`` are figures of a typical batch, if all sizes have defaults.
    ``levels`` have letters for the lengths of levels.
    ``against`` is what it costs beside its baseline.
    ``inserted`` are the values of a measured case.
    ``offered`` are all regimes of the model, with their docs, ``left_out`` the parts that each leaves out.
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
        """Amounts of long names that their moments stand for in tables: those of one or two moments, masks or no masks."""
        rows = (row for row in self.amounts if len(row.name) > LONG and row.useful == row.executed)
        return {row.name: row.useful for row in rows if sum(1 for _ in symbols(row.useful)) <= 2}

    @property
    def of_one_config(self) -> bool:
        """Whether all sizes are known: then figures are of them, not of defaults."""
        return len(self.fixed) == len(self.program.fields) > 0

    @property
    def unit(self) -> str:
        """The unit of the first convention, which all tables follow, as a word."""
        return self.unit_of(self.program.conventions[0])

    def unit_of(self, convention: str) -> str:
        """The unit of a convention as a word."""
        return NAMES[self.counted_in(convention)]

    def counted_in(self, convention: str) -> str:
        """The unit of a convention as its page has it."""
        return next((row.unit for row in self.program.rows if row.name == convention), "flops")
