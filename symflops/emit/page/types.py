"""The types of the tables and formulas of a derivation page, free of markup."""

from __future__ import annotations

from dataclasses import dataclass

from symflops.evaluate.item_analysis import Against, Analysis
from symflops.evaluate.step import Inserted
from symflops.evaluate.typical_values import LevelLengths
from symflops.evaluate.units import NAMES
from symflops.evaluate.worked_figures import Worked
from symflops.formula.formula import ZERO, Formula, symbols
from symflops.formula.terms import Terms
from symflops.ir.batch import StreamInfo
from symflops.ir.program import Field, Program
from symflops.ir.verification import Verification

LONG = 24
"""Length of a name above which tables print the moments instead."""


@dataclass(frozen=True, slots=True)
class AmountRow:
    """An amount that contractions run over, in moments: with useful pairs, and with all executed ones."""

    name: str
    useful: Formula
    executed: Formula


@dataclass(frozen=True, slots=True)
class Cell:
    """How often a gradient is computed, and the letter of the note on why not always (may be empty)."""

    count: Formula
    note: str


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """A row of the table of contractions.

    Attributes:
        number: The number of the row on the page.
        group: The repeated block that contains the module; empty outside.
        module: The name of the module within the block.
        contraction: The name of the contraction.
        amount: The name of the amount over which it runs.
        unit: The work of one product, per unit of the amount.
        forward: The number of executions in the forward pass.
        inputs: The gradients of inputs.
        weights: The gradients of weights.
        seen: Whether PyTorch's own counter sees the contraction.
    """

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
    """Sum of all contractions over one amount: ``rows`` are their numbers, the work is per unit of it."""

    number: int
    amount: str
    rows: tuple[int, ...]
    forward: Formula
    backward: Formula


@dataclass(frozen=True, slots=True)
class Note:
    """Note on gradients that are not always computed for one reason.

    Attributes:
        letter: The letter of the note.
        reason: The reason.
        groups: The gradients, as (times computed, executions of the forward pass, clauses), where a clause is (operands,
            block, modules of the block).
        missing: The useful work that is saved because they are not computed.
        assumed: Whether the convention assumes their cost.
    """

    letter: str
    reason: str
    groups: tuple[tuple[Formula, Formula, tuple[tuple[str, str, tuple[str, ...]], ...]], ...]
    missing: Formula
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """A closed form with its equation number.

    Attributes:
        name: The pass.
        number: The number of the equation.
        terms: Pairs (position of a moment, coefficient).
        same: The number of an earlier equation with an equal form; 0 without one.
        moments: The letter of the moment in each term.
    """

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
    """A regime on a page: both passes by contraction, and the closed forms.

    Attributes:
        name: The name of the regime.
        doc: Its description.
        trainable: The number of trained elements.
        everything: Whether all parameters train.
        trains: Whether some gradient is computed.
        rows: The contractions.
        sums: The sums of contractions over one amount.
        notes: The notes on gradients.
        groups: The closed forms by convention.
        ratios: Coefficients at the default sizes: (moment, forward, backward, backward divided by forward).
        assumed: Whether the convention assumes the cost of all gradients.
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
    """A parameter: ``shape`` is that of one copy, ``count`` the number of elements of all copies."""

    group: str
    name: str
    shape: tuple[Formula, ...]
    copies: Formula
    count: Formula


@dataclass(frozen=True, slots=True)
class ModuleRow:
    """A row of the table of modules: parameters and forward work of all copies of one module."""

    group: str
    module: str
    parameters: Formula
    term: Formula


@dataclass(frozen=True, slots=True)
class Page:
    """Contents of a derivation page, computed but not yet in words.

    Attributes:
        program: The program, a selection of regimes.
        streams: The streams, each with its input tensors as (name, layout).
        amounts: The amounts that contractions run over.
        regimes: The regimes.
        tensors: The parameters.
        default_parameters: The number of parameters at the default sizes; None if a size has no default.
        active: The number of parameters that one token uses; None if it uses all.
        default_active: The same at the default sizes.
        pairs_differ: Whether useful and executed work differ in an amount.
        unseen: Whether PyTorch's own counter does not see some contraction.
        verified: The measured records of the spec.
        analysis: How the cost grows, in the first regime and convention.
        letters: The letters of the analysis that the program does not have, with their LaTeX.
        worked: Figures of a typical batch; None if a size has no default.
        fixed: The config fields that decide the structure, with their values.
        offered: All regimes of the model, with their descriptions.
        left_out: (Regime, size of a part that the regime omits).
        inserted: The closed forms at a measured case.
        levels: Letters for the lengths of levels.
        against: A comparison with the baseline.
        opened: The closed forms by regime, without letters that were introduced to shorten them.
        parameters: The number of parameters in this form.
        modules: The modules that compute.
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
    opened: tuple[tuple[str, tuple[FormGroup, ...]], ...] = ()
    parameters: Formula = ZERO
    modules: tuple[ModuleRow, ...] = ()

    @property
    def replaced(self) -> dict[str, Formula]:
        """Map amounts with long names to the moments that tables show in their place.

        Only amounts of at most two symbols, with the same useful and executed work, are replaced.
        """
        rows = (row for row in self.amounts if len(row.name) > LONG and row.useful == row.executed)
        return {row.name: row.useful for row in rows if sum(1 for _ in symbols(row.useful)) <= 2}

    @property
    def of_one_config(self) -> bool:
        """Whether all sizes are fixed, so that figures refer to this config instead of the defaults."""
        return len(self.fixed) == len(self.program.fields) > 0

    @property
    def unit(self) -> str:
        """Unit of the figures under the first convention, which all tables use, such as ``FLOPs``."""
        return self.unit_of(self.program.conventions[0])

    def unit_of(self, convention: str) -> str:
        """Return the unit of the figures under a convention, such as ``FLOPs``."""
        return NAMES[self.counted_in(convention)]

    def counted_in(self, convention: str) -> str:
        """Return the unit under a convention as a key, such as ``macs``; ``flops`` for an unknown convention."""
        return next((row.unit for row in self.program.rows if row.name == convention), "flops")
