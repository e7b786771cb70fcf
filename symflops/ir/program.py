"""The lowered program that every target prints: sizes, moments, work and closed forms, in a fixed order."""

# Annotations are types here, not strings: serialisation reads them, and never evaluates text.
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from symflops.formula.formula import ZERO, Formula, Sym, symbols
from symflops.formula.terms import Terms, sum_of, times
from symflops.ir.batch import BatchCondition, InnerLength, InputInfo, Moment, Requirement, Statistic, StreamInfo
from symflops.ir.index_sets import ONCE, PADDED, padded_name
from symflops.ir.regime import Recompute


@dataclass(frozen=True, slots=True)
class Field:
    """A size of a program, which a config sets.

    Attributes:
        letter: Its letter in formulas.
        attribute: Its name in generated code.
        keys: The config keys that it is read from; the first present counts.
        kind: ``number``, ``count`` (a number of iterations, at most 100,000), ``rational``, ``flag``, ``text`` or ``list``.
        default: The value if a config lacks the key: a formula of earlier sizes or a plain value; None: it has none.
        required: Whether a config must have the key.
        doc: What it is.
        latex: Its LaTeX symbol.
        nullable: Whether null is a value of its own.
        null: The value to take in place of null; None: no replacement.
        items: For a list: the kind of its items.
        part: The part of the model that it belongs to, if only some regimes run that part; else empty.
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
    """A size that is computed from others: its letter, its formula and its LaTeX symbol."""

    letter: str
    formula: Formula
    latex: str


@dataclass(frozen=True, slots=True)
class Amount:
    """How often a contraction runs per batch: sums of (moment position, coefficient) pairs.

    ``useful`` are the runs that masks and padding leave, ``executed`` all that the model computes.
    """

    name: str
    useful: tuple[tuple[int, Formula], ...]
    executed: tuple[tuple[int, Formula], ...]

    def under(self, pairs: str) -> tuple[tuple[int, Formula], ...]:
        """The pairs for ``useful`` runs if ``pairs`` is ``useful``, else those for ``executed`` runs."""
        return self.useful if pairs == "useful" else self.executed


@dataclass(frozen=True, slots=True)
class GradientLine:
    """The gradient of one operand of a line.

    Attributes:
        operand: The label of the operand.
        kind: ``weight`` or ``input``; ``assumed`` or ``again`` if a convention adds it.
        count: How often it is computed, as a multiple of the line's ``unit`` times ``amount``.
        reason: Why it is not computed for every forward run; empty if it is.
    """

    operand: str
    kind: str
    count: Formula
    reason: str


@dataclass(frozen=True, slots=True)
class Line:
    """One contraction with its work: FLOPs are ``unit`` times ``amount`` times a run count.

    Attributes:
        module: The path of the operator.
        contraction: The formula of the contraction, such as ``y = xW``.
        operator: The kind of the operator.
        caption: Text about its sizes.
        unit: FLOPs of one run, or parts of a FLOP as ``ConventionRow.shares`` says.
        amount: Runs per batch in one forward pass of one operator.
        forward: Number of forward runs of each, over iterations and passes.
        gradients: The gradients of the operands, with such a number each.
        recomputed: The same number for forward work that the backward pass repeats.
        seen: Whether PyTorch's FLOP counter counts the work.
        within: The modules that are running: prefixes of ``module``, unless one of them is called from elsewhere.
        role: The role of the work.
        regions: The regions of the work.
        inferred: Those among role and regions that were inferred from paths, not written in the spec.
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
        """For each operand, how often its gradient is computed."""
        return tuple(gradient.count for gradient in self.gradients)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter of a program.

    Attributes:
        name: Its name, with ``*`` for each index of a loop or list.
        shape: The shape of one copy.
        copies: Number of copies.
        count: Number of elements of all copies; 0 if the model does not have it.
        template: The name as texts and formulas of the indices.
        exists: 1 if the model has it, else 0.
        ranges: For each index: letter, first value, end (excluded), and 1 for values that occur, else 0.
    """

    name: str
    shape: tuple[Formula, ...]
    copies: Formula
    count: Formula
    template: tuple[str | Formula, ...]
    exists: Formula
    ranges: tuple[tuple[str, Formula, Formula, Formula], ...] = ()


@dataclass(frozen=True, slots=True)
class RegimeLines:
    """The work and the parameters of a program under one regime.

    Attributes:
        name: The regime.
        doc: What it is.
        lines: The contractions that most conventions count.
        tensors: The parameters, adapters included.
        trains: For each of ``tensors``: whether it trains.
        parameters: Number of elements of all parameters.
        trainable: Number of elements of those that train.
        recompute: Activation checkpointing; None if the regime has none.
        active: Number of parameters that one token uses; None if unknown.
        tokens: Tokens of a batch: (moment position, coefficient) pairs; empty if unknown.
        left_out: Sizes of parts of the model that the regime does not run.
        own: (convention, lines) for each convention that does not count ``lines``.
        unmeasured: What the regime does that no measurement covers for an operator of the model; empty if nothing.
        cache: Elements that a batch keeps for further tokens, by kind: (kind, (moment position, coefficient) pairs).
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
    cache: tuple[tuple[str, tuple[tuple[int, Formula], ...]], ...] = ()

    def under(self, convention: str) -> tuple[Line, ...]:
        """The lines that ``convention`` counts: its own if it has any, else ``lines``."""
        return dict(self.own).get(convention, self.lines)


@dataclass(frozen=True, slots=True)
class Case:
    """FLOPs of one regime under one convention, per pass, as sums of (moment position, coefficient) pairs."""

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
    pairs: str  # pairs of masked attention that count: ``useful`` or ``all``
    lengths: str  # lengths that count: ``real`` or ``padded``
    unseen: bool  # whether work counts that profilers miss
    unit: str = "flops"  # the unit of figures, as :data:`symflops.evaluate.units.NAMES` lists them
    exception: str = ""  # reason of the exception that applies to the model; empty if none
    shares: int = 1  # its lines count in units of 1/shares FLOP, so that all counts are integers
    page: str = ""  # the digest of the convention's page


def _column(name: str, usual: object = None) -> Any:
    """A property with a (convention, value) pair for each row whose field ``name`` is not ``usual``."""
    return property(lambda made: tuple((row.name, getattr(row, name)) for row in made.rows if getattr(row, name) != usual))


@dataclass(frozen=True, slots=True)
class Program:
    """A lowered model: everything that generated code, pages and estimators are made from."""

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
        """The names of the conventions, in order."""
        return tuple(row.name for row in self.rows)

    def row(self, convention: str) -> ConventionRow:
        """How the convention named ``convention`` counts; KeyError if the program has no such convention."""
        return {row.name: row for row in self.rows}[convention]

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """Letter of a size -> the config keys that it is read from."""
        return {field.letter: field.keys for field in self.fields}

    @property
    def whole(self) -> tuple[str, ...]:
        """Names of the moments that read a statistic of the whole batch, and so do not add over batches."""
        own = {statistic.name for statistic in self.statistics}
        return tuple(moment.name for moment in self.moments if not own.isdisjoint(symbols(moment.formula)))

    def sum_name(self, position: int, convention: str) -> str:
        """Name of the moment at ``position``, with the suffix for padded lengths if ``convention`` uses them."""
        moment = self.moments[position]
        padded = self.row(convention).lengths == PADDED and not moment.side and any(True for _ in symbols(moment.formula))
        return padded_name(moment.name) if padded else moment.name

    def sum_key(self, position: int, convention: str) -> str:
        """Letter of the moment at ``position``, N, in closed forms: ``moment@N``.

        It is ``real@N`` or ``padded@N`` if the convention uses other lengths than the first one.
        """
        lengths = self.row(convention).lengths
        counts = not any(True for _ in symbols(self.moments[position].formula))  # items alone
        return f"{'moment' if counts or lengths == self.rows[0].lengths else lengths}@{position}"

    @property
    def own(self) -> tuple[str, ...]:
        """Names of the conventions for which some regime has lines of their own (``RegimeLines.own``)."""
        return tuple(dict.fromkeys(name for regime in self.regimes for name, _ in regime.own))

    def first(self) -> "Program":
        """This program with ``lines`` of each regime replaced by those that the first convention counts."""
        name = self.rows[0].name
        regimes = (replace(regime, lines=regime.under(name)) for regime in self.regimes)
        return replace(self, regimes=tuple(regimes)) if name in self.own else self

    def works(self) -> Iterator[tuple[str, RegimeLines]]:
        """Iterate over the work to print as (heading, work) pairs.

        First comes each regime under its name. Then, for each convention with lines of its own, each regime with these lines
        under the heading ``<regime> <convention>``.
        """
        yield from ((regime.name, regime) for regime in self.regimes)
        for name in self.own:
            yield from ((f"{regime.name} {name}", replace(regime, lines=regime.under(name), own=())) for regime in self.regimes)

    @property
    def padded_sums(self) -> tuple[str, ...]:
        """Names of the moments that use padded lengths under every convention."""
        return tuple(moment.name for moment in self.moments if moment.side)

    @property
    def padded(self) -> bool:
        """Whether some work depends on the padding of items to the longest one of their batch."""
        largest = {statistic.name for statistic in self.statistics if statistic.kind == "max"}
        sums = [moment.formula for moment in self.moments if moment.items != ONCE]
        sums += [statistic.formula for statistic in self.statistics if statistic.kind == "sum"]
        return any(not largest.isdisjoint(symbols(formula)) for formula in sums)

    def showing(self, regimes: Sequence[str]) -> "Program":
        """This program with only those regimes, and their closed forms, whose names are in ``regimes``."""
        kept = tuple(regime for regime in self.regimes if regime.name in regimes)
        return replace(self, regimes=kept, cases=tuple(case for case in self.cases if case.regime in regimes))

    def counting(self, names: Sequence[str]) -> "Program":
        """This program with only the conventions ``names``, without moments and amounts that only others use."""
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
        """The closed forms of a regime under a convention; KeyError if the program has none."""
        return {(case.regime, case.convention): case for case in self.cases}[regime, convention]

    def regime(self, name: str) -> RegimeLines:
        """The work of the regime ``name``; KeyError if the program has no such regime."""
        return {regime.name: regime for regime in self.regimes}[name]

    def __repr__(self) -> str:
        return f"Program('{self.name}', regimes={len(self.regimes)}, conventions={len(self.conventions)})"


def in_moments(terms: Terms, program: Program) -> Formula:
    """A closed form, (moment position, coefficient) pairs, as one formula: the sum of coefficient times moment.

    The moment at position N is written as the letter ``moment@N``, or left out if it is 1 for every batch.
    """
    return sum_of(
        factor if program.moments[position].constant else times(factor, Sym(f"moment@{position}")) for position, factor in terms
    )


def with_definitions(letters: Iterable[str], program: Program) -> set[str]:
    """``letters`` and those that they are defined by, directly or through other definitions of ``program``."""
    wanted = set(letters)
    for definition in reversed(program.definitions):
        if definition.letter in wanted:
            wanted |= set(symbols(definition.formula))
    return wanted


def needed(formulas: Iterable[Formula], program: Program) -> list[str]:
    """Letters of the sizes, then of the derived sizes, that ``formulas`` read, directly or through derived sizes."""
    wanted = with_definitions({name for formula in formulas for name in symbols(formula)}, program)
    return [field.letter for field in program.fields if field.letter in wanted] + [
        item.letter for item in program.definitions if item.letter in wanted
    ]
