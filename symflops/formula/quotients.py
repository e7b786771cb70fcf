"""Exact division of sums by integers, without rounding."""

from __future__ import annotations

from sympy import Add, Expr


def exact_quotient(a: Expr, b: Expr) -> Expr | None:
    """``a / b`` if ``b`` is an integer above 1 that divides each term of ``a``, else None.

    >>> from sympy import Integer, Symbol
    >>> exact_quotient(4 * Symbol("D", integer=True) + 2, Integer(2))
    2*D + 1
    """
    if not (b.is_Integer and b > 1):
        return None
    terms = [term / b for term in Add.make_args(a)]
    return Add(*terms) if all(term.is_integer for term in terms) else None
