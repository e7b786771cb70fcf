"""A derivation page, free of any markup: what every table and formula of it holds, so that templates only place text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from symflops.model.formula import ZERO, Formula, Prod, evaluate, symbols
from symflops.model.program import Case, Line, Program, RegimeLines, StreamInfo, Tensor
from symflops.model.spec import Layout
from symflops.model.verification import Verification
from symflops.targets.analysis import Analysis
from symflops.targets.growth import analysis
from symflops.targets.terms import Terms, in_moments, plus, times


@dataclass(frozen=True, slots=True)
class AmountRow:
    """What contractions run over, in moments: the useful part and all that is executed."""

    name: str
    useful: Formula
    executed: Formula


@dataclass(frozen=True, slots=True)
class Scope:
    """A module that computes: what it runs over, its parameters in one block, and its forward term."""

    group: str
    module: str
    runs: tuple[str, ...]
    parameters: Formula
    term: Formula


@dataclass(frozen=True, slots=True)
class Cell:
    """How often a gradient is computed, and the letter of the note that says why not always."""

    count: Formula
    note: str


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """A contraction in both passes."""

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
class Note:
    """Why some gradients are not always computed, and which: (times, of how many, and whose: operands, block, modules)."""

    letter: str
    reason: str
    groups: tuple[tuple[Formula, Formula, tuple[tuple[str, str, tuple[str, ...]], ...]], ...]


@dataclass(frozen=True, slots=True)
class Form:
    """A numbered closed form, or the number of the same one that came before (``same``)."""

    name: str
    number: int
    terms: Terms
    same: int = 0


@dataclass(frozen=True, slots=True)
class FormGroup:
    """The closed forms that some conventions share."""

    conventions: tuple[str, ...]
    forms: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class RegimePage:
    """One regime: both passes operator by operator, and the closed forms.

    ``ratios`` are the coefficients at the default sizes: (moment, forward, backward, backward / forward).
    """

    name: str
    doc: str
    trainable: Formula
    everything: bool
    trains: bool
    rows: tuple[OperatorRow, ...]
    notes: tuple[Note, ...]
    groups: tuple[FormGroup, ...]
    ratios: tuple[tuple[str, int, int, str], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that a derivation page shows, in its order; streams come with the inputs that carry them and their layout.

    ``analysis`` is of the first regime and convention; ``letters`` are those of its formulas that the program has not, with
    their LaTeX.
    """

    program: Program
    streams: tuple[tuple[StreamInfo, tuple[tuple[str, str], ...]], ...]
    amounts: tuple[AmountRow, ...]
    scopes: tuple[Scope, ...]
    regimes: tuple[RegimePage, ...]
    default_parameters: int | None
    pairs_differ: bool
    unseen: bool
    verified: tuple[Verification, ...]
    analysis: Analysis
    letters: tuple[tuple[str, str], ...]
    fixed: tuple[tuple[str, str], ...] = ()


def page(program: Program, verified: Sequence[Verification] = ()) -> Page:
    """The page of ``program``, with what it was verified against."""
    sizes = default_sizes(program)
    found = analysis(program, program.regimes[0].name, program.conventions[0], sizes)
    amounts = tuple(AmountRow(a.name, in_moments(a.useful, program), in_moments(a.executed, program)) for a in program.amounts)
    return Page(
        program=program,
        streams=tuple(stream_rows(program)),
        amounts=amounts,
        scopes=tuple(scopes(program)),
        regimes=tuple(regime_pages(program, sizes)),
        default_parameters=None if sizes is None else int(evaluate(program.parameters, sizes)),
        pairs_differ=any(row.useful != row.executed for row in amounts),
        unseen=any(not line.seen for regime in program.regimes for line in regime.lines),
        verified=tuple(verified),
        analysis=found,
        letters=tuple(unknown_letters(found)),
        fixed=tuple(
            (field.keys[0], json.dumps(value))
            for letter, value in program.fixed
            for field in program.fields
            if field.letter == letter
        ),
    )


def unknown_letters(found: Analysis) -> Iterable[tuple[str, str]]:
    """The letters of lengths that stand for several."""
    for growth in (growth for items in found.items for growth in items.growth):
        if growth.unknown.kind == "tokens":
            yield growth.unknown.letter, rf"N_{{\mathrm{{{growth.unknown.streams[0].replace('_', chr(92) + ' ')}}}}}"
        elif growth.unknown.kind == "equal":
            yield growth.unknown.letter, r"\ell"


def stream_rows(program: Program) -> Iterable[tuple[StreamInfo, tuple[tuple[str, str], ...]]]:
    """The streams with the inputs that carry them."""
    for stream in program.streams:
        yield stream, tuple((item.name, layout_text(item.layout)) for item in program.inputs if item.stream == stream.name)


def layout_text(layout: Layout | None) -> str:
    """The dimensions of a tensor, or the columns of the values that hold lengths."""
    columns = () if layout is None else layout.axes or layout.values
    return " ".join(columns) + (f", rows sum to {layout.counts}" if layout and layout.counts else "")


def located(path: str) -> tuple[str, str]:
    """A module as the repeated block that it is in, and its name there."""
    group, star, name = path.rpartition(".*.")
    return (f"{group}.*", name) if star else ("", path)


def scopes(program: Program) -> Iterable[Scope]:
    """Every module that computes, once, with all its contractions."""
    modules: dict[str, list[Line]] = {}
    for line in program.regimes[0].lines:
        modules.setdefault(line.module, []).append(line)
    tensors: dict[str, list[Tensor]] = {}
    for tensor in program.tensors:
        tensors.setdefault(owner(tensor), []).append(tensor)
    for module, lines in modules.items():
        own = {(tensor.name, elements(tensor)): None for tensor in tensors.get(module, ())}
        runs = tuple(dict.fromkeys(line.amount.name for line in lines))
        yield Scope(*located(module), runs, plus([count for _, count in own]), term(lines, program))


def term(lines: Iterable[Line], program: Program, pairs: str = "useful") -> Formula:
    """The forward work of some lines; lines that do the same are taken together."""
    same: dict[tuple[Formula, Formula], list[Formula]] = {}
    for line in lines:
        same.setdefault((line.unit, in_moments(line.amount.under(pairs), program)), []).append(line.forward)
    return plus([times(plus(counts), unit, amount) for (unit, amount), counts in same.items()])


def owner(tensor: Tensor) -> str:
    """The module that has a tensor."""
    return tensor.name.rpartition(".")[0]


def elements(tensor: Tensor) -> Formula:
    """The elements of one copy of a tensor, its letters in the order of the count."""
    rank = {name: place for place, name in enumerate(dict.fromkeys(symbols(tensor.count)))}
    factors = [factor for size in tensor.shape for factor in (size.factors if isinstance(size, Prod) else (size,))]
    return times(tensor.exists, *sorted(factors, key=lambda part: min([rank.get(name, 0) for name in symbols(part)] or [0])))


def regime_pages(program: Program, sizes: Mapping[str, Any] | None) -> Iterable[RegimePage]:
    """The regimes; forms are numbered through the page."""
    numbers: dict[tuple[str, Terms], int] = {}
    for regime in program.regimes:
        notes = regime_notes(regime)
        letters = {note.reason: note.letter for note in notes}
        cases = [case for case in program.cases if case.regime == regime.name]
        rows = tuple(operator_row(line, letters) for line in regime.lines)
        trains = any(cell.count != ZERO for row in rows for cell in (*row.inputs, *row.weights))
        ratios = tuple(moment_ratios(cases[0], sizes)) if cases and sizes and trains else ()
        groups = tuple(form_groups(cases, numbers))
        yield RegimePage(regime.name, regime.doc, regime.trainable, all(regime.trains), trains, rows, notes, groups, ratios)


def operator_row(line: Line, letters: Mapping[str, str]) -> OperatorRow:
    """A line of a regime with its gradients by kind."""

    def cells(kind: str) -> tuple[Cell, ...]:
        mine = [gradient for gradient in line.gradients if (gradient.kind == "weight") == (kind == "weight")]
        return tuple(Cell(gradient.count, letters.get(gradient.reason, "")) for gradient in mine)

    group, module = located(line.module)
    what = (line.contraction, line.amount.name, line.unit, line.forward)
    return OperatorRow(group, module, *what, cells("input"), cells("weight"), line.seen)


def regime_notes(regime: RegimeLines) -> tuple[Note, ...]:
    """The reasons in the order of the lines, lettered, with the gradients that they are about."""
    found: dict[str, dict[tuple[Formula, Formula], dict[str, list[str]]]] = {}
    for line in regime.lines:
        for gradient in line.gradients:
            if gradient.reason:
                key = (gradient.count, line.forward if gradient.count != ZERO else ZERO)
                kinds = found.setdefault(gradient.reason, {}).setdefault(key, {}).setdefault(line.module, [])
                kinds += [kind for kind in ("weight" if gradient.kind == "weight" else "input",) if kind not in kinds]
    return tuple(
        Note(note_letter(number), reason, tuple((*key, clauses(modules)) for key, modules in groups.items()))
        for number, (reason, groups) in enumerate(found.items())
    )


def clauses(modules: Mapping[str, Sequence[str]]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Modules by operands and block."""
    found: dict[tuple[str, str], list[str]] = {}
    for path, kinds in modules.items():
        group, name = located(path)
        found.setdefault((" and ".join(kinds), group), []).append(name)
    return tuple((kinds, group, tuple(names)) for (kinds, group), names in found.items())


def note_letter(number: int) -> str:
    """a, b, ... z, aa, ab, ..."""
    return (note_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("a") + number % 26)


def form_groups(cases: Sequence[Case], numbers: dict[tuple[str, Terms], int]) -> Iterable[FormGroup]:
    """The conventions of a regime by what they count."""
    groups: dict[tuple[Terms, ...], list[str]] = {}
    for case in cases:
        groups.setdefault((case.forward, case.backward, case.recomputed), []).append(case.convention)
    for (forward, backward, recomputed), conventions in groups.items():
        forms = []
        for name, terms in (("forward", forward), ("backward", backward), ("recomputed", recomputed)):
            if terms:
                same = numbers.get((name, terms), 0)
                number = numbers.setdefault((name, terms), len(numbers) + 1)
                forms.append(Form(name, number, terms, same))
        yield FormGroup(tuple(conventions), tuple(forms))


def default_sizes(program: Program) -> dict[str, Any] | None:
    """Every letter at its default, None where a config must give one."""
    found: dict[str, Any] = {}
    for field in program.fields:
        if field.required:
            return None
        plain = field.default is None or isinstance(field.default, (bool, str, tuple))
        found[field.letter] = field.default if plain else evaluate(field.default, found)  # type: ignore[arg-type]
    for definition in program.definitions:
        found[definition.letter] = evaluate(definition.formula, found)
    return found


def moment_ratios(case: Case, sizes: Mapping[str, Any]) -> Iterable[tuple[str, int, int, str]]:
    """Backward over forward, moment by moment."""
    backward = dict(case.backward)
    for position, formula in case.forward:
        first, second = evaluate(formula, sizes), evaluate(backward.get(position, ZERO), sizes)
        if first:
            yield f"moment@{position}", first, second, f"{float(Fraction(second) / Fraction(first)):.4f}" if second else "0"
