"""Division of polynomials by a single term."""

from __future__ import annotations

from sympy import symbols

from symflops.algebra.polynomial import Polynomial

D, A, p = symbols("D A p", positive=True)


def test_a_quotient_keeps_powers_that_were_below_zero_before():
    found = Polynomial.of(6 * A * D / p + 2 * D).quotient(Polynomial.of(2 * D))
    assert found == Polynomial.of(3 * A / p + 1)


def test_a_quotient_does_not_divide_by_what_a_term_lacks():
    assert Polynomial.of(D * p + A).quotient(Polynomial.of(p)) is None
    assert Polynomial.of(D / p).quotient(Polynomial.of(p)) is None
