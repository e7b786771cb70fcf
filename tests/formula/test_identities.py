"""Identities of counting functions: what they shorten is the same number for all sizes, at boundaries too."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, strategies as st
from sympy import Integer, Symbol
from sympy.core.symbol import Str

from symflops.formula.formula import evaluate, operators
from symflops.formula.functions import (
    AtLeast,
    CeilDiv,
    Equal,
    Excess,
    FloorDiv,
    Given,
    Least,
    Modulo,
    Most,
    Tally,
    flag_symbol,
    size_symbol,
)  # fmt: skip
from symflops.formula.identities import fewest_terms
from symflops.formula.polynomial import Polynomial
from symflops.lower.formulas import Formulas

A, B, C, D, E = map(size_symbol, "abcde")
KIND, TAKEN, INDEX = Symbol("kind"), flag_symbol("taken"), size_symbol("i@1")
EVERY, LATE = Equal(Modulo(INDEX, Integer(3)), Integer(0)), AtLeast(INDEX - C, Integer(1))
ATOMS = [
    A, B, Excess(A - B), Least(A, B), Least(B, A), Most(A, B), Excess(B - A), Excess(A - 1), AtLeast(A, 1), Least(A, 1), Excess(A + B - 2),
    FloorDiv(A, 3), AtLeast(Modulo(A, 3), 1), AtLeast(Modulo(A, 3), 2), CeilDiv(A, 2), Excess(Least(A, B + 1) - Excess(B - 1)),
    Excess(Least(Least(A, B + 1), B - 1)), Excess(A - B - 1), TAKEN, Given(KIND), Equal(KIND, Str("x")), Equal(KIND, Str("y")),
    *(Tally(INDEX, low, high, condition) for condition in (EVERY, LATE)
      for low, high in ((0, Least(A, B)), (B, Excess(A - B) + B), (0, A), (0, Excess(A - 1)), (1, Excess(A - 1) + 1), (0, Least(A, 1)))),
    EVERY.xreplace({INDEX: Excess(A - 1)}) * AtLeast(A, 1), LATE.xreplace({INDEX: Excess(A - 1)}) * AtLeast(A, 1),
]  # fmt: skip
TERMS = st.tuples(st.integers(-4, 4), st.lists(st.sampled_from(ATOMS), max_size=3), st.sampled_from([Integer(1), D, E, D * E, D**2]))


def polynomial(terms):
    found = Polynomial({})
    for factor, atoms, sizes in terms:
        part = Polynomial.of(sizes).scale(factor)
        for atom in atoms:
            part = part * Polynomial.of(atom)
        found = found + part
    return found


def values():
    for a, b, c in product((0, 1, 2, 3, 7), (0, 1, 2, 5), (0, 2)):
        yield {"a": a, "b": b, "c": c, "d": 3 + a, "e": 2, "kind": (None, "x", "y")[(a + b) % 3], "taken": bool(b % 2)}


@given(st.lists(TERMS, min_size=1, max_size=8))
def test_short_forms_are_equal_and_no_longer(terms):
    long = polynomial(terms)
    if not long:
        return
    formulas = Formulas({}, frozenset(atom for atom in ATOMS if not atom.is_Mul))
    usual, short = formulas.factored(long), formulas.simplified(long)
    assert operators(short) <= operators(usual)
    for names in values():
        assert evaluate(short, names) == evaluate(usual, names), names


@pytest.mark.parametrize(
    ("long", "short"),
    [
        (Excess(A - B) * D + Least(A, B) * D, A * D),
        (Excess(A - B) * (D + E) + Least(A, B) * D, A * D + Excess(A - B) * E),
        (36 * Excess(A - 1) * D + 12 * A * D, 48 * A * D - 36 * AtLeast(A, 1) * D),
        (AtLeast(Modulo(A, 3), 1) + AtLeast(Modulo(A, 3), 2) + 3 * FloorDiv(A, 3), A),
        (Excess(Least(A, B + 1) - Excess(B - 1)) + Excess(A - B - 1) + Excess(Least(Least(A, B + 1), B - 1)), A),
        (Tally(INDEX, 0, Least(A, B), EVERY) + Tally(INDEX, B, Excess(A - B) + B, EVERY), Tally(INDEX, 0, A, EVERY)),
        (Tally(INDEX, 0, Excess(A - 1), LATE) + AtLeast(A, 1) * LATE.xreplace({INDEX: Excess(A - 1)}), Tally(INDEX, 0, A, LATE)),
        (Equal(KIND, Str("x")) * Equal(KIND, Str("y")) * D, Integer(0)),
    ],
)  # fmt: skip
def test_sums_that_papers_would_not_print(long, short):
    assert fewest_terms(Polynomial.of(long)) == fewest_terms(Polynomial.of(short))
    assert len(fewest_terms(Polynomial.of(long)).terms) <= len(Polynomial.of(short).terms)


def test_a_condition_is_its_own_square_in_sums_that_are_part_of_others():
    long = Polynomial.of(12 * TAKEN * D**2 * A + 2 * TAKEN * D**2 + 512 * TAKEN * D + 24 * D**2 * A + 6 * D**2 + 512 * D)
    formulas = Formulas({}, frozenset((A, TAKEN)))
    for names in values():
        assert evaluate(formulas.simplified(long), names) == evaluate(formulas.factored(long), names)
