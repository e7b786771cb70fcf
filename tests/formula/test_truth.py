"""Conditions: what products of brackets are."""

from __future__ import annotations

from sympy import Integer, Symbol
from sympy.core.symbol import Str

from symflops.formula.functions import Equal, Given
from symflops.formula.truth import NO, Truth

KIND = Symbol("kind", integer=True, nonnegative=True)
GIVEN = Truth.of(Given(KIND))


def test_a_size_that_is_some_text_is_given() -> None:
    """And one that is null is none, whichever comes first."""
    named = Truth.of(Equal(KIND, Str("a")))
    assert named & GIVEN == named and GIVEN & named == named
    assert named & ~GIVEN is NO
    assert named.implies(GIVEN) and not GIVEN.implies(named)


def test_a_size_that_is_a_number_need_not_be_given() -> None:
    """Null counts as zero in formulas, and so is not told apart from it."""
    zero = Truth.of(Equal(KIND, Integer(0)))
    assert zero & ~GIVEN is not NO
