"""A derivation page free of markup: the contents of its tables and formulas."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import gcd
from typing import Any

from symflops.emit.grouping import grouped
from symflops.emit.math.definitions import in_counts, in_letters, with_plain_words
from symflops.emit.math.printer import letters
from symflops.emit.math.shortest import factored
from symflops.emit.page.by_module import located, merged_modules, work_of
from symflops.emit.page.types import (
    AmountRow,
    Cell,
    Form,
    FormGroup,
    Note,
    OperatorRow,
    Page,
    RegimePage,
    SumRow,
    TensorRow,
)
from symflops.emit.page.writing import note_letter
from symflops.evaluate.growth import analysis
from symflops.evaluate.item_analysis import Analysis
from symflops.evaluate.number_ranges import blocks, merged_names, shared
from symflops.evaluate.step import first_measured_case
from symflops.evaluate.typical_values import LevelLengths, default_sizes
from symflops.evaluate.worked_figures import Worked
from symflops.formula.factoring import expanded
from symflops.formula.formula import ZERO, Formula, Num, Sum, evaluate, number
from symflops.formula.terms import Rewriting, Terms, plus, times
from symflops.ir.batch import Layout, StreamInfo
from symflops.ir.program import Amount, Case, GradientLine, Line, Program, RegimeLines, in_moments
from symflops.ir.verification import Verification

ASSUMED = "assumed"
"""Kind of a gradient whose cost the convention assumes."""


def page(
    program: Program,
    verified: Sequence[Verification] = (),
    worked: Worked | None = None,
    whole: Program | None = None,
    opened: Program | None = None,
) -> Page:
    """Compute the page of ``program``, a selection of the regimes of ``whole`` if that is given.

    ``verified`` are the measured records of the spec, ``worked`` the figures of a typical batch, and ``opened`` is ``program``
    without the letters that shorten its closed forms.
    """
    program, opened = (with_plain_words(one).first() for one in (program, opened or program))
    sizes = default_sizes(program)
    write = in_letters(program)
    levels = LevelLengths(program)
    found: Analysis = levels.short(Rewriting(write)(analysis(program, program.regimes[0].name, program.conventions[0], sizes)))
    amounts = tuple(amount_row(amount, program) for amount in program.amounts)
    active = next((regime.active for regime in program.regimes[:1] if regime.active != regime.parameters), None)
    return Page(
        program=program,
        streams=tuple(stream_rows(program)),
        amounts=amounts,
        regimes=tuple(regime_pages(program, sizes, write)),
        tensors=tuple(tensor_rows(program, write)),
        default_parameters=None if sizes is None else int(evaluate(program.parameters, sizes)),
        active=active,
        default_active=None if sizes is None or active is None else int(evaluate(active, sizes)),
        pairs_differ=any(row.useful != row.executed for row in amounts),
        unseen=any(not line.seen for regime in program.regimes for line in regime.lines),
        verified=tuple(verified),
        analysis=found,
        letters=(*unknown_letters(found), *levels.latex(letters(program)).items()),
        levels=levels,
        worked=worked and replace(worked, more=Rewriting(in_counts(write))(worked.more)),
        fixed=tuple(
            (one.keys[0], json.dumps(value)) for key, value in program.fixed for one in program.fields if one.letter == key
        ),
        offered=tuple((regime.name, regime.doc) for regime in (whole or program).regimes),
        left_out=tuple((regime.name, field) for regime in (whole or program).regimes for field in regime.left_out),
        inserted=first_measured_case(program, verified),
        opened=tuple(closed_forms(opened)),
        parameters=opened.parameters,
        modules=tuple(merged_modules(program, write)),
    )


MANY_TENSORS, MANY_ROWS = 24, 60
"""Numbers of rows above which similar names share one row."""


def unknown_letters(found: Analysis) -> Iterable[tuple[str, str]]:
    """Yield (letter, LaTeX) of the lengths that an analysis introduces: products of axes, equal lengths."""
    grown = (growth.unknown for items in found.items for growth in items.growth)
    for unknown in dict.fromkeys([*found.tokens, *grown]):
        if unknown.kind == "tokens":
            yield unknown.letter, rf"N_{{\mathrm{{{unknown.streams[0].replace('_', chr(92) + ' ')}}}}}"
        elif unknown.kind == "equal":
            yield unknown.letter, r"\ell"


def stream_rows(program: Program) -> Iterable[tuple[StreamInfo, tuple[tuple[str, str], ...]]]:
    """Yield each stream with its input tensors, as (stream, ((name, layout), ...))."""
    for stream in program.streams:
        yield stream, tuple((item.name, layout_text(item.layout)) for item in program.inputs if item.stream == stream.name)


def layout_text(layout: Layout | None) -> str:
    """Describe the layout of a tensor: its axes, or its columns if its values are lengths."""
    columns = () if layout is None else layout.axes or layout.values
    return " ".join(columns) + (f", rows sum to {layout.counts}" if layout and layout.counts else "")


def amount_row(amount: Amount, program: Program) -> AmountRow:
    """Build the row of an amount, in pairs: undo the multiplication by :func:`parts_of_pair`."""
    share = Num(Fraction(1, parts_of_pair(amount)))
    useful, executed = (in_moments(terms, program) for terms in (amount.useful, amount.executed))
    same = useful == executed
    return AmountRow(amount.name, useful if same else times(share, useful), executed if same else shared_out(executed, share))


def parts_of_pair(amount: Amount) -> int:
    """Number of parts of a pair that an amount counts, so that its coefficients are integers: 2 under a causal mask, else 1.

    Of ``x**2`` pairs a causal mask leaves ``(x**2 + x)/2``; a program stores ``2*x**2`` and ``x**2 + x`` halves.
    """
    useful, executed = (
        gcd(*(int(expanded(part).common[1]) for _, part in terms)) for terms in (amount.useful, amount.executed)
    )
    return 2 if useful % 2 and not executed % 2 else 1


def shared_out(formula: Formula, share: Formula) -> Formula:
    """Multiply each term of a formula by ``share``, so that numbers cancel."""
    return plus([times(share, term) for term in (formula.terms if isinstance(formula, Sum) else (formula,))])


def tensor_rows(program: Program, write: Callable[[Formula], Formula]) -> Iterable[TensorRow]:
    """Yield the rows of the table of parameters, with formulas rewritten by ``write``.

    Parameters whose names differ only in numbers share a row, in long tables also those with similar names.
    """
    tensors = grouped(((tensor.name, tensor.shape), tensor) for tensor in program.tensors)
    rows = [
        (shape, write(plus([one.copies for one in some])), write(plus([one.count for one in some])))
        for (_, shape), some in tensors.items()
    ]
    merged = merged_names([name for name, _ in tensors], rows)
    merged = shared(merged, rows) if len(merged) > MANY_TENSORS else merged
    for (_, places), place in zip(merged, blocks([name for name, _ in merged]), strict=True):
        (shape, copies, elements), count = rows[places[0]], number(len(places))
        yield TensorRow(*place, tuple(map(factored, shape)), times(count, copies), times(count, elements))


def regime_pages(
    program: Program, sizes: Mapping[str, Any] | None, write: Callable[[Formula], Formula]
) -> Iterable[RegimePage]:
    """Yield each regime as it is shown on the page; ``write`` rewrites the formulas of its sums.

    Closed forms, contractions and sums are numbered throughout the page.
    """
    forms = dict(closed_forms(program))
    first, added = 1, 1
    for place, regime in enumerate(program.regimes):
        notes = regime_notes(regime, program)
        letters = {note.reason: note.letter for note in notes}
        rows = operator_rows(regime, letters, first)
        trains = any(cell.count != ZERO for row in rows for cell in (*row.inputs, *row.weights))
        rows = rows if trains or not place else ()
        sums = sum_rows(rows, program, write, added)
        first, added = first + len(rows), added + len(sums)
        case = next((case for case in program.cases if case.regime == regime.name), None)
        ratios = tuple(moment_ratios(case, sizes)) if case and sizes and trains else ()
        kinds = {gradient.kind for line in regime.lines for gradient in line.gradients}
        yield RegimePage(
            regime.name, regime.doc, regime.trainable, all(regime.trains), trains, rows, sums, notes, forms[regime.name],
            ratios, kinds == {ASSUMED},
        )  # fmt: skip


def sum_rows(
    rows: Sequence[OperatorRow], program: Program, write: Callable[[Formula], Formula], first: int
) -> tuple[SumRow, ...]:
    """Add the contractions that the first convention counts, per amount; number the sums from ``first``."""
    unseen = program.rows[0].unseen if program.rows else True
    found = grouped((row.amount, row) for row in rows if row.seen or unseen)

    def added(some: Sequence[tuple[Formula, Formula]]) -> Formula:
        return write(plus([times(count, unit) for count, unit in some]))

    return tuple(
        SumRow(
            number, amount, tuple(row.number for row in some), added([(row.forward, row.unit) for row in some]),
            added([(cell.count, row.unit) for row in some for cell in (*row.inputs, *row.weights)]),
        )
        for number, (amount, some) in enumerate(found.items(), first)
    )  # fmt: skip


def operator_rows(regime: RegimeLines, letters: Mapping[str, str], first: int = 1) -> tuple[OperatorRow, ...]:
    """Build the rows of the contractions of a regime, numbered from ``first``.

    Modules whose names differ only in numbers share a row. ``letters`` maps the reason why a gradient is not computed to
    the letter of the note that says it.
    """
    rows = [operator_row(line, letters) for line in regime.lines]
    found: list[OperatorRow] = []
    alike = [replace(row, module="", group="") for row in rows]
    merged = merged_names([line.module for line in regime.lines], alike)
    merged = shared(merged, alike) if len(merged) > MANY_ROWS else merged
    for (_, places), (group, name) in zip(merged, blocks([module for module, _ in merged]), strict=True):
        row, count = rows[places[0]], number(len(places))
        inputs, weights = (
            tuple(replace(cell, count=times(count, cell.count)) for cell in cells) for cells in (row.inputs, row.weights)
        )
        numbered = replace(row, number=first + len(found), group=group, module=name)
        found.append(replace(numbered, forward=times(count, row.forward), inputs=inputs, weights=weights))
    return tuple(found)


def operator_row(line: Line, letters: Mapping[str, str]) -> OperatorRow:
    """Build the row of one contraction, with its gradients of inputs and of weights."""

    def cells(kind: str) -> tuple[Cell, ...]:
        mine = [gradient for gradient in line.gradients if (gradient.kind == "weight") == (kind == "weight")]
        return tuple(Cell(gradient.count, letters.get(gradient.reason, "")) for gradient in mine)

    group, module = located(line.module)
    unit = times(number(parts_of_pair(line.amount)), line.unit)
    what = (line.contraction, line.amount.name, factored(unit), line.forward)
    return OperatorRow(0, group, module, *what, cells("input"), cells("weight"), line.seen)


def regime_notes(regime: RegimeLines, program: Program) -> tuple[Note, ...]:
    """Build the notes on gradients that are not always computed, one per reason, with letters in order."""
    gradients = ((line, gradient) for line in regime.lines for gradient in line.gradients)
    reasons = grouped((gradient.reason, (line, gradient)) for line, gradient in gradients if gradient.reason)
    return tuple(
        note(note_letter(number), reason, lacking, program) for number, (reason, lacking) in enumerate(reasons.items())
    )


def note(letter: str, reason: str, lacking: Sequence[tuple[Line, GradientLine]], program: Program) -> Note:
    """Build the note ``letter`` on the gradients ``lacking``, which ``reason`` keeps from being computed."""
    groups = grouped(
        (
            (gradient.count, line.forward if gradient.count != ZERO else ZERO),
            (line.module, "weight" if gradient.kind == "weight" else "input"),
        )
        for line, gradient in lacking
    )
    missing = grouped(
        ((line.unit, in_moments(line.amount.useful, program)), count)
        for line, gradient in lacking
        for count in (line.forward, times(number(-1), gradient.count))
    )
    told = tuple((*key, clauses(operands)) for key, operands in groups.items())
    return Note(letter, reason, told, work_of(missing), any(gradient.kind == ASSUMED for _, gradient in lacking))


def clauses(operands: Iterable[tuple[str, str]]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Group (module, operand) pairs; return (operands, block, names of modules in the block) per group."""
    kinds = grouped(operands)
    found = grouped(((" and ".join(dict.fromkeys(some)), located(path)[0]), located(path)[1]) for path, some in kinds.items())
    return tuple((*key, tuple(name for name, _ in merged_names(names))) for key, names in found.items())


Numbers = dict[tuple[str, Terms, tuple[str, ...]], int]
"""Equation numbers of closed forms, by pass, terms, and letters of the moments."""


def form_groups(program: Program, cases: Sequence[Case], numbers: Numbers) -> Iterable[FormGroup]:
    """Yield the closed forms of a regime; conventions with equal forms share them.

    ``numbers`` are the equation numbers of the page so far; new ones are added.
    """

    def told(case: Case, name: str) -> tuple[str, Terms, tuple[str, ...]]:
        terms: Terms = getattr(case, name)
        return name, terms, tuple(program.sum_key(position, case.convention) for position, _ in terms)

    passes = ("forward", "backward", "recomputed")
    groups = grouped((tuple(told(case, name) for name in passes), case.convention) for case in cases)
    for found, conventions in groups.items():
        forms = []
        for key in found:
            name, terms, moments = key
            if terms:
                same = numbers.get(key, 0)
                number = numbers.setdefault(key, len(numbers) + 1)
                forms.append(Form(name, number, terms, same, moments))
        yield FormGroup(tuple(conventions), tuple(forms))


def closed_forms(program: Program) -> Iterable[tuple[str, tuple[FormGroup, ...]]]:
    """Yield each regime with its closed forms, numbered throughout."""
    numbers: Numbers = {}
    for regime in program.regimes:
        yield regime.name, tuple(form_groups(program, [case for case in program.cases if case.regime == regime.name], numbers))


def moment_ratios(case: Case, sizes: Mapping[str, Any]) -> Iterable[tuple[str, int, int, str]]:
    """Yield (moment, forward coefficient, backward coefficient, their ratio as text) at ``sizes``."""
    backward = dict(case.backward)
    for position, formula in case.forward:
        first, second = evaluate(formula, sizes), evaluate(backward.get(position, ZERO), sizes)
        if first:
            yield f"moment@{position}", first, second, f"{float(Fraction(second) / Fraction(first)):.4f}" if second else "0"
