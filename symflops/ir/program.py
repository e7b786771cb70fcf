"""The one program that every target prints: sizes, moments, work and closed forms, as formulas in a fixed order."""

# Annotations are types here, not strings: serialisation reads them, and never evaluates text.
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symflops.formula.formula import ZERO, Formula, symbols
from symflops.ir.batch import BatchCondition, InnerLength, InputInfo, Moment, Requirement, Statistic, StreamInfo
from symflops.ir.index_sets import ONCE, PADDED, padded_name
from symflops.ir.regime import Recompute


@dataclass(frozen=True, slots=True)
class Field:
    """A size: its letter, its name in code, where a config holds it, and what it is when absent.

    ``kind`` is ``number``, ``count`` (of iterations, at most 100,000), ``rational``, ``flag``, ``text`` or ``list``;
    ``default`` is a formula of the sizes above, a plain value for flags, texts and lists, or None where a config must have
    it. ``null`` is the size of a config that has null there; a ``nullable`` size is null then. ``items`` is the kind of the
    items of a list. ``part`` names the part of the model that it counts, if only some regimes run it.
    """

    letter: str
    attribute: str
    keys: tuple[str, ...]
    kind: str
    default: Formula | bool | str | tuple[object, ...] | None
    required: bool
    doc: str
    latex: str
    nullable: bool = False
    null: Formula | bool | str | tuple[object, ...] | None = None
    items: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """A derived size and the formula that it stands for."""

    letter: str
    formula: Formula
    latex: str


@dataclass(frozen=True, slots=True)
class Amount:
    """What a contraction runs over, as multiples of the moments: one vector per convention that it differs under."""

    name: str
    useful: tuple[tuple[int, Formula], ...]
    executed: tuple[tuple[int, Formula], ...]

    def under(self, pairs: str) -> tuple[tuple[int, Formula], ...]:
        """The vector that a convention's ``pairs`` asks for."""
        return self.useful if pairs == "useful" else self.executed


@dataclass(frozen=True, slots=True)
class GradientLine:
    """The gradient of one operand: how often it is computed, and why not always."""

    operand: str
    kind: str
    count: Formula
    reason: str


@dataclass(frozen=True, slots=True)
class Line:
    """One contraction: ``unit`` FLOPs, over ``amount``, ``forward`` times, and the gradients of its operands.

    ``within`` are the modules that run while it does: those that lead to ``module``, unless one is called from another place;
    ``role`` and ``regions`` are what it is there for (``ir/convention.py``), of which ``inferred`` are not in the spec.
    """

    module: str
    contraction: str
    operator: str
    caption: str
    unit: Formula
    amount: Amount
    forward: Formula
    gradients: tuple[GradientLine, ...]
    recomputed: Formula = ZERO
    seen: bool = True
    within: tuple[str, ...] = ()
    role: str = ""
    regions: tuple[str, ...] = ()
    inferred: tuple[str, ...] = ()

    @property
    def backward(self) -> tuple[Formula, ...]:
        """How often each gradient is computed."""
        return tuple(gradient.count for gradient in self.gradients)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter with all its copies: ``shape`` of one, ``copies`` of it, ``count`` elements in all (0 where it is absent)."""

    name: str
    shape: tuple[Formula, ...]
    copies: Formula
    count: Formula
    template: tuple[str | Formula, ...]
    exists: Formula
    ranges: tuple[tuple[str, Formula, Formula, Formula], ...] = ()


@dataclass(frozen=True, slots=True)
class RegimeLines:
    """The work of one regime, its tensors (adapters among them), which of them train, what is recomputed, the parameters that
    one token goes through (``active``, None if unknown), the ``tokens`` of a batch in multiples of moments, the sizes of parts
    that are ``left_out``, and a rule of the regime that was ``unmeasured`` on an operator of the model. ``lines`` are the work
    of all conventions but those that count other work: ``own`` has theirs, by name.
    """

    name: str
    doc: str
    lines: tuple[Line, ...]
    tensors: tuple[Tensor, ...]
    trains: tuple[bool, ...]
    parameters: Formula
    trainable: Formula
    recompute: Recompute | None = None
    active: Formula | None = None
    tokens: tuple[tuple[int, Formula], ...] = ()
    left_out: tuple[Field, ...] = ()
    own: tuple[tuple[str, tuple[Line, ...]], ...] = ()
    unmeasured: str = ""

    def under(self, convention: str) -> tuple[Line, ...]:
        """The lines of a convention."""
        return dict(self.own).get(convention, self.lines)


@dataclass(frozen=True, slots=True)
class Case:
    """The closed forms of one regime under one convention: a coefficient per moment, zero ones left out."""

    regime: str
    convention: str
    forward: tuple[tuple[int, Formula], ...]
    backward: tuple[tuple[int, Formula], ...]
    recomputed: tuple[tuple[int, Formula], ...]

    def __repr__(self) -> str:
        return f"Case(regime='{self.regime}', convention='{self.convention}', moments={len(self.forward)})"


@dataclass(frozen=True, slots=True)
class ConventionRow:
    """How one convention counts the lines of a program."""

    name: str
    pairs: str  # whether ``useful`` pairs of masked attention count, or ``all``
    lengths: str  # whether ``real`` lengths count, or ``padded`` ones
    unseen: bool  # whether work counts that profilers do not see
    unit: str = "flops"  # the unit of figures, as :data:`symflops.evaluate.units.NAMES` lists them
    exception: str = ""  # why an exception of the convention applies to the model; empty if none does
    shares: int = 1  # into how many parts its lines divide a FLOP, so that all counts are whole
    page: str = ""  # the digest of the convention's page


def _column(name: str, usual: object = None) -> Any:
    """A column of the rows of conventions: (name, value) of each whose value is not the ``usual`` one."""
    return property(lambda made: tuple((row.name, getattr(row, name)) for row in made.rows if getattr(row, name) != usual))


@dataclass(frozen=True, slots=True)
class Program:
    """Everything that a target prints."""

    name: str  # the name of the spec
    title: str  # the title of the spec
    references: tuple[str, ...]  # the classes that it describes
    model_types: tuple[str, ...]  # the ``model_type`` of their configs
    pipelines: tuple[str, ...]  # the pipelines that have one of the classes
    sources: tuple[tuple[str, str], ...]  # the files that it is made from, each with its digest
    fields: tuple[Field, ...]  # the sizes, each after those that its default is made of
    definitions: tuple[Definition, ...]  # the derived sizes, each after those that it is made of
    streams: tuple[StreamInfo, ...]  # what a batch has entries of
    inputs: tuple[InputInfo, ...]  # the arguments of the class that carry lengths
    moments: tuple[Moment, ...]  # the sums over a batch, by position in closed forms
    amounts: tuple[Amount, ...]  # what the contractions of all regimes run over
    tensors: tuple[Tensor, ...]  # the parameters of the first regime
    parameters: Formula  # their elements
    regimes: tuple[RegimeLines, ...]  # the work of each regime
    cases: tuple[Case, ...]  # the closed forms of each regime under each convention; empty in a program for estimators
    rows: tuple[ConventionRow, ...]  # the conventions; pages and modules count by the first one
    loops: tuple[tuple[str, str], ...] = ()  # the repeats: index and label of each
    fixed: tuple[tuple[str, object], ...] = ()  # the sizes that decided the structure, by letter, with their values
    statistics: tuple[Statistic, ...] = ()  # the quantities of a whole batch that moments read
    variant: str = ""  # what a structure that sizes decided is called
    reading: Mapping[str, object] | None = None  # how the classes read a config (:mod:`symflops.evaluate.config`)
    inner: tuple[InnerLength, ...] = ()  # lengths inside of the model, at least 1; conditions on those of an item
    conditions: tuple[BatchCondition, ...] = ()  # the conditions on the lengths of a whole batch
    expected: tuple[Requirement, ...] = ()  # what configs usually have; an estimate of another one says so
    census: Mapping[str, object] | None = None  # by class, fields with other effects (:mod:`symflops.evaluate.classes`)
    requirements: tuple[Requirement, ...] = ()  # what a config must have

    pairs, lengths, unseen = _column("pairs"), _column("lengths"), _column("unseen")
    units, shares = _column("unit"), _column("shares", 1)

    @property
    def conventions(self) -> tuple[str, ...]:
        """The names of the conventions."""
        return tuple(row.name for row in self.rows)

    def row(self, convention: str) -> ConventionRow:
        """How a convention counts; KeyError if the program has none of that name."""
        return {row.name: row for row in self.rows}[convention]

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The fields of a config that each size is read from, by letter."""
        return {field.letter: field.keys for field in self.fields}

    @property
    def whole(self) -> tuple[str, ...]:
        """The moments that are of one batch as a whole."""
        own = {statistic.name for statistic in self.statistics}
        return tuple(moment.name for moment in self.moments if not own.isdisjoint(symbols(moment.formula)))

    def sum_name(self, position: int, convention: str) -> str:
        """The name of a moment as a convention counts it: of padded lengths or of real ones."""
        moment = self.moments[position]
        padded = self.row(convention).lengths == PADDED and not moment.side and any(True for _ in symbols(moment.formula))
        return padded_name(moment.name) if padded else moment.name

    def sum_key(self, position: int, convention: str) -> str:
        """The letter of a moment in the closed forms of a convention: ``moment@`` on the lengths of the first convention."""
        lengths = self.row(convention).lengths
        counts = not any(True for _ in symbols(self.moments[position].formula))  # items alone
        return f"{'moment' if counts or lengths == self.rows[0].lengths else lengths}@{position}"

    @property
    def own(self) -> tuple[str, ...]:
        """The conventions with rules of their own beside those that count lines as they are derived."""
        return tuple(dict.fromkeys(name for regime in self.regimes for name, _ in regime.own))

    def first(self) -> "Program":
        """The program with the lines that its first convention counts."""
        name = self.rows[0].name
        regimes = (replace(regime, lines=regime.under(name)) for regime in self.regimes)
        return replace(self, regimes=tuple(regimes)) if name in self.own else self

    def works(self) -> Iterator[tuple[str, RegimeLines]]:
        """The work of each regime by its name; then by its name and that of a convention with rules of its own."""
        yield from ((regime.name, regime) for regime in self.regimes)
        for name in self.own:
            yield from ((f"{regime.name} {name}", replace(regime, lines=regime.under(name), own=())) for regime in self.regimes)

    @property
    def padded_sums(self) -> tuple[str, ...]:
        """The moments that are of padded lengths in any case."""
        return tuple(moment.name for moment in self.moments if moment.side)

    @property
    def padded(self) -> bool:
        """Whether the model pads items to the longest of their batch."""
        largest = {statistic.name for statistic in self.statistics if statistic.kind == "max"}
        sums = [moment.formula for moment in self.moments if moment.items != ONCE]
        sums += [statistic.formula for statistic in self.statistics if statistic.kind == "sum"]
        return any(not largest.isdisjoint(symbols(formula)) for formula in sums)

    def showing(self, regimes: Sequence[str]) -> "Program":
        """The program with some of its regimes, for a page that shows no more."""
        kept = tuple(regime for regime in self.regimes if regime.name in regimes)
        return replace(self, regimes=kept, cases=tuple(case for case in self.cases if case.regime in regimes))

    def counting(self, names: Sequence[str]) -> "Program":
        """The program with some of its conventions, for texts that show no more."""
        if set(self.conventions) <= set(names):
            return self

        count = len(self.moments)  # what only some conventions have comes last
        counted = max((place for regime in self.regimes for place, _ in regime.tokens), default=-1)
        while count > counted + 1 and self.moments[count - 1].only and not set(self.moments[count - 1].only) & set(names):
            count -= 1
        regimes = tuple(replace(one, own=tuple(row for row in one.own if row[0] in names)) for one in self.regimes)
        amounts = {line.amount for regime in regimes for some in (regime.lines, *dict(regime.own).values()) for line in some}
        cases = tuple(case for case in self.cases if case.convention in names)
        kept = tuple(amount for amount in self.amounts if amount in amounts)
        rows = tuple(row for row in self.rows if row.name in names)
        return replace(self, regimes=regimes, moments=self.moments[:count], amounts=kept, cases=cases, rows=rows)

    def case(self, regime: str, convention: str) -> Case:
        """The closed forms of one regime under one convention; KeyError if there are none."""
        return {(case.regime, case.convention): case for case in self.cases}[regime, convention]

    def regime(self, name: str) -> RegimeLines:
        """The work of one regime; KeyError if there is none."""
        return {regime.name: regime for regime in self.regimes}[name]

    def __repr__(self) -> str:
        return f"Program('{self.name}', regimes={len(self.regimes)}, conventions={len(self.conventions)})"
