"""The lowered program that every target prints: sizes, moments, work and closed forms, in a fixed order."""

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
    """A size: its letter, its name in code, its keys in a config, and its default.

    ``kind`` is ``number``, ``count`` (of iterations, at most 100,000), ``rational``, ``flag``, ``text`` or ``list``;
    ``default`` is a formula of earlier sizes, a plain value for flags, texts and lists, or None if a config must have the
    key. ``null`` is the value if the config has null; a ``nullable`` size stays null. ``items`` is the kind of a list's
    items. ``part`` names the part of the model that the size belongs to, if only some regimes run that part.
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
    """A derived size and its formula."""

    letter: str
    formula: Formula
    latex: str


@dataclass(frozen=True, slots=True)
class Amount:
    """Runs of a contraction per batch, as coefficients of moments: ``useful`` and ``executed``."""

    name: str
    useful: tuple[tuple[int, Formula], ...]
    executed: tuple[tuple[int, Formula], ...]

    def under(self, pairs: str) -> tuple[tuple[int, Formula], ...]:
        """The ``useful`` coefficients if ``pairs`` is ``useful``, else the ``executed`` ones."""
        return self.useful if pairs == "useful" else self.executed


@dataclass(frozen=True, slots=True)
class GradientLine:
    """The gradient of one operand: the number of times it is computed, and the reason if not always."""

    operand: str
    kind: str
    count: Formula
    reason: str


@dataclass(frozen=True, slots=True)
class Line:
    """One contraction: ``unit`` FLOPs times ``amount`` times ``forward``, and gradients of operands.

    ``within`` are the modules on its call stack: the prefixes of ``module``, unless one is called from elsewhere. ``role`` and
    ``regions`` classify the work (:mod:`symflops.ir.convention`); ``inferred`` lists those that the spec does not give.
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
        """Number of times each operand's gradient is computed."""
        return tuple(gradient.count for gradient in self.gradients)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter: ``shape`` of one copy, number of ``copies``, total ``count`` of elements (0 if absent)."""

    name: str
    shape: tuple[Formula, ...]
    copies: Formula
    count: Formula
    template: tuple[str | Formula, ...]
    exists: Formula
    ranges: tuple[tuple[str, Formula, Formula, Formula], ...] = ()


@dataclass(frozen=True, slots=True)
class RegimeLines:
    """The work of one regime, its tensors, and which tensors train.

    ``tensors`` include adapters; ``active`` are the parameters that one token uses (None if unknown). ``tokens`` is the
    number of tokens in a batch, as coefficients of moments. ``left_out`` are sizes of parts that the regime does not run.
    ``unmeasured`` is a rule of the regime that no measurement covers for an operator of the model. ``own`` holds, by name,
    the lines of conventions that count other work than ``lines``.
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
        """The lines that ``convention`` counts."""
        return dict(self.own).get(convention, self.lines)


@dataclass(frozen=True, slots=True)
class Case:
    """The closed forms of one regime under one convention: (moment, nonzero coefficient) pairs."""

    regime: str
    convention: str
    forward: tuple[tuple[int, Formula], ...]
    backward: tuple[tuple[int, Formula], ...]
    recomputed: tuple[tuple[int, Formula], ...]

    def __repr__(self) -> str:
        return f"Case(regime='{self.regime}', convention='{self.convention}', moments={len(self.forward)})"


@dataclass(frozen=True, slots=True)
class ConventionRow:
    """Settings by which one convention counts the lines of a program."""

    name: str
    pairs: str  # pairs of masked attention that count: ``useful`` or ``all``
    lengths: str  # lengths that count: ``real`` or ``padded``
    unseen: bool  # whether work counts that profilers miss
    unit: str = "flops"  # the unit of figures, as :data:`symflops.evaluate.units.NAMES` lists them
    exception: str = ""  # reason of the exception that applies to the model; empty if none
    shares: int = 1  # its lines count in units of 1/shares FLOP, so that all counts are integers
    page: str = ""  # the digest of the convention's page


def _column(name: str, usual: object = None) -> Any:
    """Property: (convention, value of ``name``) for each row whose value differs from ``usual``."""
    return property(lambda made: tuple((row.name, getattr(row, name)) for row in made.rows if getattr(row, name) != usual))


@dataclass(frozen=True, slots=True)
class Program:
    """A lowered model: all sizes, moments, lines and closed forms that targets print."""

    name: str  # the name of the spec
    title: str  # the title of the spec
    references: tuple[str, ...]  # the classes that it describes
    model_types: tuple[str, ...]  # the ``model_type`` of their configs
    pipelines: tuple[str, ...]  # the pipelines that contain one of the classes
    sources: tuple[tuple[str, str], ...]  # the files that it was built from, each with its digest
    fields: tuple[Field, ...]  # the sizes, each after those that its default reads
    definitions: tuple[Definition, ...]  # the derived sizes, each after those that it reads
    streams: tuple[StreamInfo, ...]  # the streams of a batch
    inputs: tuple[InputInfo, ...]  # the arguments of the class that carry lengths
    moments: tuple[Moment, ...]  # the sums over a batch, by position in closed forms
    amounts: tuple[Amount, ...]  # the run counts of the contractions of all regimes
    tensors: tuple[Tensor, ...]  # the parameters of the first regime
    parameters: Formula  # their elements
    regimes: tuple[RegimeLines, ...]  # the work of each regime
    cases: tuple[Case, ...]  # the closed forms of each regime under each convention; empty in a program for estimators
    rows: tuple[ConventionRow, ...]  # the conventions; pages and modules count by the first one
    loops: tuple[tuple[str, str], ...] = ()  # the repeats: index and label of each
    fixed: tuple[tuple[str, object], ...] = ()  # the sizes that decided the structure, by letter, with their values
    statistics: tuple[Statistic, ...] = ()  # the quantities of a whole batch that moments read
    variant: str = ""  # the name of the structure, if sizes decided it
    reading: Mapping[str, object] | None = None  # how the classes read a config (:mod:`symflops.evaluate.config`)
    inner: tuple[InnerLength, ...] = ()  # lengths inside the model and conditions per item, each at least 1
    conditions: tuple[BatchCondition, ...] = ()  # the conditions on the lengths of a whole batch
    expected: tuple[Requirement, ...] = ()  # conditions under which the work is an expectation, and estimates say so
    census: Mapping[str, object] | None = None  # by class, fields with other effects (:mod:`symflops.evaluate.classes`)
    requirements: tuple[Requirement, ...] = ()  # what a config must have

    pairs, lengths, unseen = _column("pairs"), _column("lengths"), _column("unseen")
    units, shares = _column("unit"), _column("shares", 1)

    @property
    def conventions(self) -> tuple[str, ...]:
        """The names of the conventions."""
        return tuple(row.name for row in self.rows)

    def row(self, convention: str) -> ConventionRow:
        """The row of a convention; KeyError if the program has none of that name."""
        return {row.name: row for row in self.rows}[convention]

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """Size letter -> the config keys that it is read from."""
        return {field.letter: field.keys for field in self.fields}

    @property
    def whole(self) -> tuple[str, ...]:
        """Names of the moments that read a statistic of the whole batch."""
        own = {statistic.name for statistic in self.statistics}
        return tuple(moment.name for moment in self.moments if not own.isdisjoint(symbols(moment.formula)))

    def sum_name(self, position: int, convention: str) -> str:
        """Name of a moment under a convention; the padded name if the convention counts padded lengths."""
        moment = self.moments[position]
        padded = self.row(convention).lengths == PADDED and not moment.side and any(True for _ in symbols(moment.formula))
        return padded_name(moment.name) if padded else moment.name

    def sum_key(self, position: int, convention: str) -> str:
        """Letter of a moment in closed forms: ``moment@N``, or ``real@N``/``padded@N`` for other lengths."""
        lengths = self.row(convention).lengths
        counts = not any(True for _ in symbols(self.moments[position].formula))  # items alone
        return f"{'moment' if counts or lengths == self.rows[0].lengths else lengths}@{position}"

    @property
    def own(self) -> tuple[str, ...]:
        """Names of the conventions that have lines of their own in some regime."""
        return tuple(dict.fromkeys(name for regime in self.regimes for name, _ in regime.own))

    def first(self) -> "Program":
        """The program with the lines of its first convention as ``lines`` of each regime."""
        name = self.rows[0].name
        regimes = (replace(regime, lines=regime.under(name)) for regime in self.regimes)
        return replace(self, regimes=tuple(regimes)) if name in self.own else self

    def works(self) -> Iterator[tuple[str, RegimeLines]]:
        """(regime, work) pairs, then (regime and convention, work) for conventions with lines of their own."""
        yield from ((regime.name, regime) for regime in self.regimes)
        for name in self.own:
            yield from ((f"{regime.name} {name}", replace(regime, lines=regime.under(name), own=())) for regime in self.regimes)

    @property
    def padded_sums(self) -> tuple[str, ...]:
        """Names of the moments that use padded lengths under every convention."""
        return tuple(moment.name for moment in self.moments if moment.side)

    @property
    def padded(self) -> bool:
        """Whether the model pads items to the longest of their batch."""
        largest = {statistic.name for statistic in self.statistics if statistic.kind == "max"}
        sums = [moment.formula for moment in self.moments if moment.items != ONCE]
        sums += [statistic.formula for statistic in self.statistics if statistic.kind == "sum"]
        return any(not largest.isdisjoint(symbols(formula)) for formula in sums)

    def showing(self, regimes: Sequence[str]) -> "Program":
        """The program reduced to ``regimes``, for a page that covers only those."""
        kept = tuple(regime for regime in self.regimes if regime.name in regimes)
        return replace(self, regimes=kept, cases=tuple(case for case in self.cases if case.regime in regimes))

    def counting(self, names: Sequence[str]) -> "Program":
        """The program reduced to the conventions ``names``, without moments and amounts that only others use."""
        if set(self.conventions) <= set(names):
            return self

        count = len(self.moments)  # moments of some conventions only come last
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
        """The closed forms of one regime under one convention; KeyError if missing."""
        return {(case.regime, case.convention): case for case in self.cases}[regime, convention]

    def regime(self, name: str) -> RegimeLines:
        """The work of the regime ``name``; KeyError if missing."""
        return {regime.name: regime for regime in self.regimes}[name]

    def __repr__(self) -> str:
        return f"Program('{self.name}', regimes={len(self.regimes)}, conventions={len(self.conventions)})"
