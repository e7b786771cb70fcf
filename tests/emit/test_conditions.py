"""Conditions as Python: the text is true exactly where the 0/1 polynomial is 0."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from symflops.emit.python.batch_sums import MOST, violated
from symflops.emit.python.printer import SpacedPrinter
from symflops.formula.formula import Bracket, Formula, Num, Prod, Sum, Sym

NAMES = ("a", "b", "c", "d")
FLAGS = [Bracket("flag", (Sym(name),)) for name in NAMES]
ONE = Num(Fraction(1))


def polynomial(rows: set[tuple[bool, ...]], brackets: list[Bracket]) -> Formula:
    """The sum, over rows of a truth table, of the product that is 1 in this row alone."""
    terms = []
    for row in sorted(rows):
        factors = [one if value else Sum((ONE, Prod((Num(Fraction(-1)), one)))) for one, value in zip(brackets, row, strict=True)]
        terms.append(Prod(tuple(factors)))
    return Sum(tuple(terms)) if terms else Num(Fraction(0))


@given(st.sets(st.tuples(*[st.booleans()] * len(NAMES))))
def test_a_condition_is_its_truth_table(rows: set[tuple[bool, ...]]) -> None:
    formula = polynomial(rows, FLAGS)
    text = violated(formula, SpacedPrinter())
    for row in product((False, True), repeat=len(NAMES)):
        assert bool(eval(text, dict(zip(NAMES, row, strict=True)))) is (row not in rows)


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5))
def test_equalities_that_exclude_each_other(pairs: set[tuple[int, int]]) -> None:
    """Sizes x and y are one of some pairs: the equalities of one letter exclude each other."""

    def equal(name: str, number: int) -> Bracket:
        return Bracket("equal", (Sym(name), Num(Fraction(number))))

    terms = [Prod((equal("x", one), equal("y", two))) for one, two in sorted(pairs)]
    text = violated(Sum(tuple(terms)) if terms else Num(Fraction(0)), SpacedPrinter())
    for x, y in product(range(5), repeat=2) if text else ():
        assert bool(eval(text, {"x": x, "y": y})) is ((x, y) not in pairs)


def at_least(one: Any, two: int) -> Bracket:
    return Bracket("at_least", (one, Num(Fraction(two))))


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (Prod((at_least(Sym("h"), 1), at_least(Sym("w"), 1))), "h < 1 or w < 1"),
        (Sum((FLAGS[0], at_least(Sym("x"), 1), Prod((Num(Fraction(-1)), FLAGS[0], at_least(Sym("x"), 1))))), "not a and x < 1"),
        (Sym("x"), ""),  # no 0/1 polynomial
        (Sum(tuple(Bracket("flag", (Sym(f"n{place}"),)) for place in range(MOST + 1))), ""),
    ],
)
def test_what_is_printed(formula: Formula, text: str) -> None:
    assert violated(formula, SpacedPrinter()) == text
