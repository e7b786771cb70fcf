"""Quotients, rounded either way, of what a number divides are exact; others keep their value."""

from __future__ import annotations

from hypothesis import given, strategies as st
from sympy import Integer

from symflops.formula.functions import CeilDiv, FloorDiv, Modulo, size_symbol

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
