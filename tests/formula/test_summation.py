"""Closed sums over a range: what adding one by one gives, for any sizes; what is not closed is said to be none."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sympy import Expr, Integer

from symflops.formula.functions import AtLeast, Excess, FloorDiv, Least, Modulo, Most, size_symbol
from symflops.formula.summation import closed_sum
from tests.sampling import amount

i = size_symbol("row@")
x, B, k, W = (size_symbol(name) for name in "xBkW")
TERMS = {
    "causal": i + 1,
    "top-k": Least(k, i + 1),
    "blocks that are picked": Least(Excess(Modulo(i, B) + 1 + Least(FloorDiv(i, B), k - 1) * B), i + 1),
    "compressed": FloorDiv(i + 1, B),
    "compressed, at most": Least(FloorDiv(i + 1, B), W),
    "before": Least(FloorDiv(i - 1, B) + 1, k),
    "global": AtLeast(W - 1, i) * x + (1 - AtLeast(W - 1, i)) * Least(x, 3 * W),
    "strided": Least(i + 1, Modulo(i, B) + 1 + FloorDiv(i, B)),
    "remainders": Modulo(i, B) ** 2 * i + Least(Modulo(i, B), W),
    "falling": Excess(W - 2 * i) * 2 + AtLeast(W - i, 3),
    "several bounds": Excess(2 * i - W) + Most(i, W) * Least(i, k),
}  # fmt: skip
LENGTH, SIZE = st.integers(0, 18), st.integers(1, 6)


def at(expr: Expr, values: dict[Expr, int]) -> Expr:
    """An expression of numbers."""
    return expr.xreplace({symbol: Integer(value) for symbol, value in values.items()})


@pytest.mark.parametrize("name", TERMS)
@settings(max_examples=amount(25, 1000), deadline=None, suppress_health_check=list(HealthCheck))
@given(length=LENGTH, size=SIZE, few=SIZE, width=st.integers(0, 7), start=st.booleans())
def test_a_closed_sum_is_the_sum(name: str, length: int, size: int, few: int, width: int, start: bool) -> None:
    """Over a range from 0, and from a size on."""
    low, high = (W, W + x) if start else (Integer(0), x)
    values = {x: length, B: size, k: few, W: width}
    closed = closed_sum(i, low, high, TERMS[name])
    assert closed is not None
    assert not closed.has(i)
    assert at(closed, values) == sum(at(TERMS[name], {**values, i: row}) for row in range(int(at(low, values)), int(at(high, values))))


@pytest.mark.parametrize("term", [FloorDiv(i, B) * FloorDiv(i, W), Least(i**2, k), FloorDiv(2 * i, B), k**i, Least(i * k, W)])
def test_what_is_not_closed(term: Expr) -> None:
    """Two divisors, bounds of powers, factors that may be 0."""
    assert closed_sum(i, Integer(0), x, term) is None


def test_simple_sums_read_simply() -> None:
    """A bound makes one clamped length."""
    assert closed_sum(i, Integer(0), x, Least(k, i + 1)) == k * x - k * Least(x, k) + Least(x, k) ** 2 / 2 + Least(x, k) / 2
