"""Closed forms as text: a line per moment, long terms folded."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from symflops.emit.code.printer import CodePrinter
from symflops.emit.code.tables import Scope, Tables
from symflops.emit.grouping import grouped
from symflops.emit.python.printer import PythonPrinter
from symflops.emit.python.tables import PYTHON
from symflops.model.formula import Formula
from symflops.model.program import Case, Program

Form = Sequence[tuple[int, Formula]]

PRINT = PythonPrinter()
WIDEST = 112


def closed_forms(program: Program) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """The closed forms, and the counts of layers in them.

    Each form has a title: the pass, and the regimes and conventions that have it.
    """
    formulas = [formula for case in program.cases for _, form in passes(case) for _, formula in form]
    scope = Scope(Tables(program, PYTHON), [])
    names, counts = scope.tallied(formulas, program)
    scope.printer.named |= names
    rows = grouped(
        ((name, form, tuple(terms_of(form, program, scope.printer, case.convention))), (case.regime, case.convention))
        for case in program.cases
        for name, form in passes(case)
    )
    first: dict[tuple[str, Form], list[tuple[str, str]]] = {}
    found, lengths = [], dict(program.lengths)
    for (name, form, terms), cases in rows.items():
        own = cases[0][1]
        others = first.setdefault((name, form), cases)  # where the form differs in nothing but the side of its lengths
        same = others is not cases and {regime for regime, _ in cases} <= {regime for regime, _ in others}
        told = [f"as under {others[0][1]}, each sum of {lengths[own]} lengths"] if same else listed(terms)
        found.append((f"{name} ({named(cases)}):", told))
    return found, counts


def named(cases: Sequence[tuple[str, str]]) -> str:
    """The regimes, by the conventions in which they have a form."""
    regimes = grouped((", ".join(some), regime) for regime, some in grouped(cases).items())
    return "; ".join(f"{', '.join(some)} under {words}" for words, some in regimes.items())


def passes(case: Case) -> Iterator[tuple[str, Form]]:
    """The closed forms of one case by pass."""
    for name, form in (("forward", case.forward), ("backward", case.backward), ("recomputed", case.recomputed)):
        if form:
            yield name, form


def terms_of(form: Form, program: Program, printer: CodePrinter, convention: str) -> list[str]:
    """The terms of a closed form."""
    return [f"({printer.text(formula)}) * {program.sum_name(position, convention)}" for position, formula in form]


def listed(terms: Sequence[str]) -> list[str]:
    """A sum in one line if it fits, else with a line per term."""
    line = " + ".join(terms)
    return [line] if len(line) <= WIDEST else folded(terms, ["", *("+ " for _ in terms[1:])], WIDEST, "    ")


def folded(terms: Sequence[str], heads: Sequence[str], width: int, indent: str) -> list[str]:
    """Terms as lines, each behind its head; what is longer than ``width`` goes on behind ``indent``."""
    lines = []
    for head, term in zip(heads, terms, strict=True):
        first, *more = textwrap.wrap(term, width=width, break_long_words=False, break_on_hyphens=False)
        lines += [head + first, *(indent + part for part in more)]
    return lines
