"""Worked figures: the FLOPs of one typical batch at the default sizes, by regime and by convention, as exact integers.

Also the cost of one more layer or expert: the exact difference of the closed forms, as a number and as a formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from symflops.evaluate.item_analysis import EXPERTS, part_of
from symflops.evaluate.step import OverLength, Step, over_length
from symflops.evaluate.typical_values import default_sizes, typical_batch
from symflops.formula.factoring import Writer, expanded
from symflops.formula.formula import ZERO, Apply, Bracket, Formula, Sym, TallyOf, evaluate, symbols
from symflops.formula.sparse import Poly
from symflops.formula.terms import plus, times
from symflops.ir.program import Field, Program
from symflops.support.errors import SymflopsError

BRANCHES = ("excess", "min", "max")
"""Functions whose value is one of their arguments, or 0."""


@dataclass(frozen=True, slots=True)
class OneMore:
    """What one step costs in addition if one size, such as the number of layers, increases by one.

    Attributes:
        field: the size.
        now: its value before the increase.
        parameters: the number of additional parameters.
        forward: the additional FLOPs of the forward pass.
        backward: the additional FLOPs of the backward pass.
        work: ``forward`` as a formula; zero if moments depend on the size.
    """

    field: Field
    now: int
    parameters: int
    forward: int
    backward: int
    work: Formula = ZERO


def one_more(here: Step) -> Iterator[OneMore]:
    """Yield the additional cost of one more layer, or one more expert, for each size that counts them."""
    program, sizes, case = here.program, here.sizes, here.case
    for field in counting(program):
        if type(sizes[field.letter]) is not int:
            continue
        try:
            there = here.at(moved(program, sizes, field.letter))
            forward, backward = (
                int(there.value(case, terms) - here.value(case, terms)) for terms in (case.forward, case.backward)
            )
            parameters = int(evaluate(program.parameters, there.sizes) - evaluate(program.parameters, sizes))
            if forward or backward or parameters:
                work = _Change(program, field.letter, sizes, there.sizes).work(case.convention, case.forward)
                yield OneMore(field, sizes[field.letter], parameters, forward, backward, work)
        except (SymflopsError, ArithmeticError, LookupError):
            continue  # the increase requires other changes, such as one more list entry


def counting(program: Program) -> Iterable[Field]:
    """The config fields whose value is the number of layers, of routed experts, or of experts per token."""
    lines = [line for line in program.regimes[0].lines if part_of(line) == EXPERTS]
    owners = {line.module for line in lines}
    found = {field.letter for field in program.fields if field.kind == "count"}
    found |= {
        tensor.shape[0].name
        for tensor in program.tensors
        if tensor.name.rpartition(".")[0] in owners and tensor.shape and isinstance(tensor.shape[0], Sym)
    }
    found |= {name for line in lines for _, part in line.amount.useful for name in symbols(part)}
    fixed = dict(program.fixed)
    return sorted(
        (field for field in program.fields if field.letter in found and field.letter not in fixed),
        key=lambda field: field.kind != "count",
    )


def moved(program: Program, sizes: Mapping[str, Any], letter: str) -> dict[str, Any]:
    """Copy ``sizes`` with the size ``letter`` increased by 1 and derived sizes recomputed."""
    found = {**sizes, letter: sizes[letter] + 1}
    for one in program.definitions:
        found[one.letter] = evaluate(one.formula, found)
    return found


class _Change:
    """Formulas of the difference that increasing one size by 1 makes.

    Conditions are replaced by their values (0 or 1) before and after the increase.

    Args:
        program: the program.
        letter: the size that increases.
        sizes: the value of each size before the increase.
        more: the value of each size after the increase.
    """

    def __init__(self, program: Program, letter: str, sizes: Mapping[str, Any], more: Mapping[str, Any]) -> None:
        self.program, self.letter, self.sizes, self.more = program, letter, sizes, more
        self.inner = {one.letter: one.formula for one in program.definitions if sizes[one.letter] != more[one.letter]}

    def work(self, convention: str, terms: Iterable[tuple[int, Formula]]) -> Formula:
        """Formula of the difference of a closed form (``terms``); zero if a moment in it depends on the size."""
        parts = []
        for place, formula in terms:
            if self.letter in self.program.moments[place].sizes:
                return ZERO
            change = expanded(formula, self.rule(1)) - expanded(formula, self.rule(0))
            writer = Writer(list(symbols(formula)))
            unit = self.program.moments[place].constant
            parts.append(times(writer.shortest(change), *(() if unit else (Sym(self.program.sum_key(place, convention)),))))
        return plus(parts)

    def rule(self, step: int) -> Any:
        """Create the rule that expands parts of formulas before (``step`` 0) or after (1) the increase."""

        def rule(formula: Formula) -> Poly | None:
            match formula:
                case Sym(name) if name == self.letter:
                    return Poly.atom(formula) + Poly.constant(step)
                case Sym(name) if name in self.inner:
                    return expanded(self.inner[name], rule)
                case Bracket():
                    return Poly.constant(evaluate(formula, self.more if step else self.sizes))
                case Apply(function, arguments) if function in BRANCHES:
                    value = evaluate(formula, self.sizes)
                    values = [evaluate(argument, self.sizes) for argument in arguments]
                    kept = expanded(arguments[values.index(value)], rule) if value in values else Poly({})
                    branch = evaluate(arguments[values.index(value)], self.more) if step and value in values else 0
                    return kept + Poly.constant(evaluate(formula, self.more) - branch if step else 0)
                case Sym():
                    return None
            names = set(symbols(formula))
            if not isinstance(formula, (Apply, TallyOf)) or not names & {self.letter, *self.inner}:
                return None
            change = Fraction(evaluate(formula, self.more)) - Fraction(evaluate(formula, self.sizes)) if step else 0
            return Poly.atom(formula) + Poly.constant(change)

        return rule


@dataclass(frozen=True, slots=True)
class RegimeFigures:
    """FLOPs of one step under a regime.

    Attributes:
        name: the regime.
        doc: what the regime is, in a sentence.
        trainable: the number of trainable parameters.
        forward: FLOPs of the forward pass.
        backward: FLOPs of the backward pass without recomputation.
        recomputed: FLOPs of recomputation.
        to_first: ``executed`` divided by that of the program's first regime; None if the latter is 0.
        to_three_forward: ``executed`` divided by three times ``forward``; None if ``forward`` is 0.
        tokens: the number of tokens of the batch; 0 if the program does not define tokens.
    """

    name: str
    doc: str
    trainable: int
    forward: int
    backward: int
    recomputed: int
    to_first: Fraction | None
    to_three_forward: Fraction | None
    tokens: int = 0

    @property
    def executed(self) -> int:
        """FLOPs of the forward pass, the backward pass and recomputation."""
        return self.forward + self.backward + self.recomputed


@dataclass(frozen=True, slots=True)
class ConventionFigures:
    """Work of one step as a convention counts it.

    Attributes:
        name: the convention.
        total: the work of both passes, in ``unit``.
        ratio: ``total`` divided by that of the program's first convention; None if that is 0.
        reason: why it differs from the first convention's; empty if it does not, or the reason is unknown.
        unit: the unit in which the convention counts.
    """

    name: str
    total: int
    ratio: Fraction | None
    reason: str
    unit: str = "flops"


@dataclass(frozen=True, slots=True)
class Worked:
    """Figures of one step at the default sizes.

    Attributes:
        batch: pairs of stream and the lengths of its only item.
        convention: the convention that counts ``regimes``, ``more`` and ``over``.
        regimes: the figures of each regime.
        conventions: the figures under each convention, in the first regime.
        more: the cost of one more layer or expert.
        over: the work per token at increasing lengths; None if the work per token is constant.
    """

    batch: tuple[tuple[str, object], ...]
    convention: str
    regimes: tuple[RegimeFigures, ...]
    conventions: tuple[ConventionFigures, ...]
    more: tuple[OneMore, ...] = ()
    over: OverLength | None = None


def worked(program: Program, conventions: Sequence[ConventionFigures] = ()) -> Worked | None:
    """Compute the figures of a typical step; None if a size has no default, or a length is refused.

    ``conventions`` replaces the figures by convention, which are otherwise computed from the program.
    """
    sizes = default_sizes(program)
    if sizes is None or not program.cases:
        return None
    batch = typical_batch(program) | {stream.name: 1 for stream in program.streams if stream.counts}
    try:
        step = Step(program, sizes, batch)
    except SymflopsError:
        return None
    entries = tuple((name, given[0] if isinstance(given, list) else given) for name, given in batch.items())
    counted = tuple(conventions) or tuple(convention_figures(step))
    more = tuple(one_more(step))
    return Worked(entries, program.conventions[0], tuple(regime_figures(step)), counted, more, over_length(step))


def regime_figures(step: Step) -> Iterator[RegimeFigures]:
    """Compute the figures of each regime under the first convention."""
    first = 0
    for regime in step.program.regimes:
        case = step.program.case(regime.name, step.program.conventions[0])
        forward, backward, again = (step.value(case, terms) for terms in (case.forward, case.backward, case.recomputed))
        executed = forward + backward + again
        first = first or executed
        yield RegimeFigures(
            regime.name, regime.doc, int(evaluate(regime.trainable, step.sizes)), forward, backward, again,
            Fraction(executed, first) if first else None, Fraction(executed, 3 * forward) if forward else None,
            sum(int(evaluate(part, step.sizes)) * step.real[place] for place, part in regime.tokens),
        )  # fmt: skip


def convention_figures(step: Step) -> Iterator[ConventionFigures]:
    """Compute the figures of each of the program's conventions in its first regime."""
    first = 0
    for name in step.program.conventions:
        case = step.program.case(step.program.regimes[0].name, name)
        total = step.value(case, case.forward) + step.value(case, case.backward)
        first = first or total
        reason = reason_of(step.program, name) if total != first else ""
        yield ConventionFigures(name, total, Fraction(total, first) if first else None, reason, step.program.row(name).unit)


def reason_of(program: Program, name: str) -> str:
    """The main reasons why a convention's count differs from the first one's; empty if none is known."""
    lines, own, rules = program.regimes[0].lines, program.rows[0], program.row(name)
    pairs = rules.pairs != own.pairs and any(line.amount.useful != line.amount.executed for line in lines)
    unseen = rules.unseen != own.unseen and not all(line.seen for line in lines)
    reasons = {"all pairs, not the pairs that a mask leaves": pairs, "no work that profilers do not see": unseen}
    return ", and ".join(reason for reason, holds in reasons.items() if holds)
