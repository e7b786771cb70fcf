"""Division of polynomials by a single term, and brackets beside what they say already."""

from __future__ import annotations

import pytest
from sympy import Integer, symbols

from symflops.formula.functions import AtLeast, CeilDiv, Excess, is_bracket, size_symbol
from symflops.formula.polynomial import Polynomial

D, A, p = symbols("D A p", positive=True)


def test_a_quotient_keeps_powers_that_were_below_zero_before():
    found = Polynomial.of(6 * A * D / p + 2 * D).quotient(Polynomial.of(2 * D))
    assert found == Polynomial.of(3 * A / p + 1)


def test_a_quotient_does_not_divide_by_what_a_term_lacks():
    assert Polynomial.of(D * p + A).quotient(Polynomial.of(p)) is None
    assert Polynomial.of(D / p).quotient(Polynomial.of(p)) is None


x = size_symbol("x")
RUNS = CeilDiv(x, Integer(4))


@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("other", [x, RUNS, Excess(x - 3), Excess(RUNS - 1), Excess(RUNS - 2), Excess(x - 9)])
@pytest.mark.parametrize("base", [x, RUNS])
def test_a_bracket_goes_where_another_factor_says_it_already(base, least, other):
    bracket = AtLeast(base, Integer(least))
    assert base is x or bracket == AtLeast(x, Integer(4 * least - 3))  # runs begin with their first token
    product = Polynomial.of(bracket * other)
    values = [(bracket.subs(x, n), other.subs(x, n)) for n in range(40)]
    assert [product.expr.subs(x, n) for n in range(40)] == [one * two for one, two in values]
    (atoms,) = [[atom for atom, _ in monomial] for monomial in product.terms]
    assert any(is_bracket(atom) for atom in atoms) == any(two and not one for one, two in values)
