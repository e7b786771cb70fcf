"""Conditions of stored identities: read without sympy, with the truth that sympy gives them."""

from __future__ import annotations

import pytest
import sympy
from hypothesis import assume, given, reject, strategies as st

from symflops.evaluate.conditions import UnknownNameError, holds
from symflops.verify.symbolic.traced import compiled, symbol, text_of

NAMES = ("hidden_size", "text_config.num_heads", "sizes.0", "b")
SYMBOLS = [symbol(name) for name in NAMES]
numbers = st.one_of(st.sampled_from(SYMBOLS), st.integers(1, 9).map(sympy.Integer))


def joined(inner):
    pairs = st.tuples(inner, inner)
    divided = pairs.filter(lambda two: two[1] != 0)
    return st.one_of(
        pairs.map(lambda two: two[0] + two[1]), pairs.map(lambda two: two[0] * two[1]), pairs.map(lambda two: two[0] - two[1]),
        divided.map(lambda two: sympy.floor(two[0] / two[1])), divided.map(lambda two: sympy.ceiling(two[0] / two[1])),
        divided.map(lambda two: sympy.Mod(two[0], two[1])),
        pairs.map(lambda two: sympy.Max(*two)), divided.map(lambda two: two[0] / two[1]), inner.map(lambda one: one**2),
    )


sums = st.recursive(numbers, joined, max_leaves=6)
relations = st.tuples(st.sampled_from([sympy.Eq, sympy.Ne, sympy.Ge, sympy.Le, sympy.Gt, sympy.Lt]), sums, sums)


@given(relations, st.lists(st.integers(1, 30), min_size=4, max_size=4))
def test_printed_conditions_have_their_truth(relation, values):
    how, one, other = relation
    condition = how(one, other)
    assume(condition not in (sympy.true, sympy.false) and not condition.has(sympy.nan, sympy.zoo))
    try:
        expected = bool(compiled(SYMBOLS, condition)(*values))
    except ZeroDivisionError:
        reject()
    assert holds(text_of(condition), dict(zip(NAMES, values, strict=True)).get) == expected, text_of(condition)


def test_a_name_without_a_number_is_told():
    with pytest.raises(UnknownNameError, match="max_position"):
        holds("(s % 2 == 0) & (max_position >= s)", {"s": 4}.get)


@pytest.mark.parametrize("text", ["", "a ==", "a.b()", "__import__('os')", "a if b else c", "a[0]", "lambda: 1", "(1 // 0) == 1", "'a' == 1"])
def test_other_texts_are_no_conditions(text):
    with pytest.raises((ValueError, UnknownNameError)):
        holds(text, {"a": 1, "b": 2, "c": 3}.get)
