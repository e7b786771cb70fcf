"""Quotients, rounded either way, of what a number divides are exact; others keep their value."""

from __future__ import annotations

from fractions import Fraction
from math import prod

from hypothesis import given, settings, strategies as st
from sympy import Expr, Integer

from symflops.formula.definitions import Definitions
from symflops.formula.functions import CeilDiv, Equal, FloorDiv, Modulo, size_symbol
from symflops.formula.quotients import in_one_spelling
from symflops.formula.truth import Truth

D, H = size_symbol("D"), size_symbol("H")


def test_a_number_that_divides_each_term() -> None:
    assert FloorDiv(4 * D, Integer(2)) == CeilDiv(4 * D, Integer(2)) == 2 * D
    assert FloorDiv(6 * D * H + 9, Integer(3)) == 2 * D * H + 3
    assert Modulo(4 * D + 2, Integer(2)) == 0 and Modulo(4 * D + 1, Integer(2)) != 0
    assert FloorDiv(2 * D + H, Integer(2)) != D + FloorDiv(H, Integer(2))


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.integers(1, 9), st.integers(0, 9), st.integers(0, 9))
def test_values_stay(a: int, b: int, c: int, by: int, d: int, h: int) -> None:
    expr, number = a * D * H + b * D + c, Integer(by)
    value = a * d * h + b * d + c
    at = {D: d, H: h}
    assert FloorDiv(expr, number).subs(at) == value // by
    assert CeilDiv(expr, number).subs(at) == -(-value // by)
    assert Modulo(expr, number).subs(at) == value % by


M, K = size_symbol("m"), size_symbol("K")
LENGTHS = st.recursive(
    st.just(M),
    lambda inner: st.builds(
        lambda one, shift, by, kind: kind(one + shift, Integer(by)), inner, st.integers(-5, 5), st.integers(1, 4), st.sampled_from((FloorDiv, CeilDiv))
    ).flatmap(lambda one: st.integers(-4, 4).map(lambda shift: one + shift)),
    max_leaves=4,
)


def value_of(expr: Expr, m: int) -> Fraction:
    """The value of an expression at ``m``, by Python's own integers."""
    if expr == M:
        return Fraction(m)
    if isinstance(expr, (FloorDiv, CeilDiv, Modulo)):
        above, below = (value_of(arg, m) for arg in expr.args)
        return Fraction(above // below if isinstance(expr, FloorDiv) else -(-above // below) if isinstance(expr, CeilDiv) else above % below)
    if expr.is_Add:
        return sum((value_of(arg, m) for arg in expr.args), Fraction(0))
    if expr.is_Mul:
        return prod((value_of(arg, m) for arg in expr.args), start=Fraction(1))
    return Fraction(int(expr.p), int(expr.q))


@settings(max_examples=20, deadline=None)
@given(LENGTHS, LENGTHS)
def test_one_spelling_keeps_values_and_makes_equal_lengths_equal(one: Expr, other: Expr) -> None:
    first, second = (in_one_spelling(expr, {}) for expr in (one, other))
    values = [[value_of(expr, m) for m in range(-9, 300)] for expr in (one, other, first.expr, second.expr)]
    assert values[0] == values[2] and values[1] == values[3]
    assert (first == second) is (values[0] == values[1])


def test_lengths_of_two_convolutions_in_two_spellings() -> None:
    half = lambda a: FloorDiv(a, Integer(2))  # noqa: E731
    equal = Definitions().equal
    assert equal(half(half(M - 3) + 1 - 3) + 1, half(half(M - 1) - 1))
    assert not equal(half(half(M - 3) + 1 - 3) + 1, half(half(M) - 1))


def test_a_demand_of_a_remainder_makes_lengths_equal() -> None:
    definitions, same = Definitions(), M + 2 * FloorDiv(K, Integer(2)) - K + 1
    assert not definitions.equal(same, M)
    definitions.require(Truth.of(Equal(Modulo(K, Integer(2)), Integer(1))))
    assert definitions.equal(same, M) and definitions.equal(CeilDiv(K, Integer(2)), FloorDiv(K, Integer(2)) + 1)


def test_a_demand_that_a_size_divides_a_length_makes_lengths_equal() -> None:
    definitions = Definitions()
    for same in (K * FloorDiv(M, K), K * CeilDiv(M, K), M + Modulo(M, K)):
        assert not definitions.equal(same, M)
    definitions.require(Truth.of(Equal(Modulo(M, K), Integer(0))))
    for same in (K * FloorDiv(M, K), K * CeilDiv(M, K), M + Modulo(M, K)):
        assert definitions.equal(same, M)
    assert not definitions.equal(H * FloorDiv(M, H), M)
