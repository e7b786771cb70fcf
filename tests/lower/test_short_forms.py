"""Closed forms of every spec: short, and equal to the form with a term for each product of counts."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from symflops.formula.formula import Apply, Bracket, Formula, TallyOf, evaluate, operators, symbols, walk
from symflops.formula.polynomial import Polynomial
from symflops.formula.table import ConfigError
from symflops.ir.program import Program
from symflops.lower.formulas import Formulas
from tests import shipped
from tests.sampling import sampled

NUMBERS = (0, 1, 1, 2, 3, 5, 8, 13)


def pairs(name: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Formula, Formula]]:
    """Each closed form and number of executions of a spec: with a term for each product of counts, and as it is printed."""
    found, simplified = [], Formulas.simplified

    def watched(formulas: Formulas, polynomial: Polynomial) -> Formula:
        short = simplified(formulas, polynomial)
        found.append((formulas.factored(polynomial), short))
        return short

    monkeypatch.setattr(Formulas, "simplified", watched)
    shipped.load(name).typical(("full",), ("symflops",))
    return found


def other_sizes(known: dict[str, Any], program: Program, letters: set[str], random: Random) -> dict[str, Any]:
    """Sizes of a case with other numbers and flags; texts and lists stay, lists that are not given too."""
    drawn, absent = dict(known), {field.letter for field in program.fields if field.kind not in ("number", "count") and known.get(field.letter) is None}
    for letter in sorted(letters - absent):
        value = known.get(letter, 1)
        if isinstance(value, bool):
            drawn[letter] = random.random() < 0.5
        elif isinstance(value, int) or value is None:
            drawn[letter] = random.choice(NUMBERS)
    return drawn


@pytest.mark.parametrize("name", sampled(shipped.NAMES, 36, 12))
def test_short_forms_are_the_same_numbers(name, monkeypatch):
    case = shipped.cases_of(shipped.FILES[name])[0]
    known, random, compared = dict(shipped.load(name).estimator(case.config, "full", "symflops").sizes), Random(name), 0
    program = shipped.typical(name, "symflops")
    for usual, short in pairs(name, monkeypatch):
        assert operators(short) <= operators(usual)
        for _ in range(5):
            sizes = other_sizes(known, program, {*symbols(usual), *symbols(short)}, random)
            try:
                expected = evaluate(usual, sizes)
            except (IndexError, ConfigError, ZeroDivisionError):  # fewer widths than the levels that were drawn, or none by which to divide
                continue
            compared += 1
            assert evaluate(short, sizes) == expected, sizes
    assert compared > 10


@pytest.mark.nightly
def test_forms_take_less_than_two_thirds_of_the_operators(monkeypatch):
    usual = short = 0
    for name in shipped.NAMES:
        for long, form in pairs(name, monkeypatch):
            if any(isinstance(part, (Apply, Bracket, TallyOf)) for part in walk(long)):
                usual, short = usual + operators(long), short + operators(form)
    assert 3 * short < 2 * usual, (short, usual)
