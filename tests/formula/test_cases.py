"""Which conditions exclude each other or cover all cases, against all values one by one."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings, strategies as st
from sympy import Integer, Symbol
from sympy.core.symbol import Str

from symflops.formula.functions import AtLeast, Equal, Given, flag_symbol, size_symbol
from symflops.formula.truth import NO, YES, Truth

P, Q, WORD = size_symbol("P"), size_symbol("Q"), Symbol("word")
COMPARISONS = st.builds(
    lambda kind, side, number: kind(side, Integer(number)),
    st.sampled_from((AtLeast, Equal)), st.sampled_from((P, -P, P - Q, Q - P, 2 * P, P + 2)), st.integers(-3, 4),
)  # fmt: skip
BRACKETS = st.one_of(
    COMPARISONS.map(Truth.of),
    st.sampled_from([Given(WORD), Equal(WORD, Str("a")), Equal(WORD, Str("b")), flag_symbol("f")]).map(Truth.of),
)
TRUTHS = st.recursive(
    BRACKETS,
    lambda inner: st.one_of(
        inner.map(lambda one: ~one),
        st.tuples(inner, inner).map(lambda two: two[0] & two[1]),
        st.tuples(inner, inner).map(lambda two: two[0] | two[1]),
    ),
    max_leaves=5,
)


def holds(truth: Truth, p: int, q: int, word: str | None, flag: bool) -> bool:
    """The value of a condition, bracket by bracket."""
    total = 0
    for atoms, factor in truth.terms.items():
        values = []
        for atom in atoms:
            if atom.is_Symbol:
                values.append(flag)
            elif isinstance(atom, Given):
                values.append(word is not None)
            elif atom.args[0] == WORD:
                values.append(word == atom.args[1].name)
            else:
                values.append(bool(atom.subs({P: p, Q: q})))
        total += factor * all(values)
    assert total in (0, 1)
    return total == 1


CASES = list(product(range(5), range(5), (None, "a", "b", "c"), (False, True)))


@settings(max_examples=25, deadline=None)
@given(TRUTHS, TRUTHS)
def test_what_is_implied_holds_in_every_case(one: Truth, other: Truth) -> None:
    """Never the other way round: an implication that is known holds for all sizes."""
    assert (one & other) is NO or one != NO
    if one.implies(other):
        assert all(holds(other, *case) for case in CASES if holds(one, *case))
    if (one & other) == NO:
        assert not any(holds(one, *case) and holds(other, *case) for case in CASES)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([Truth.of(AtLeast(P, Integer(n))) for n in range(4)] + [Truth.of(Equal(P, Integer(n))) for n in range(4)]), min_size=2, max_size=4))
def test_comparisons_with_numbers_are_known_exactly(given_: list[Truth]) -> None:
    one, *others = given_
    other = NO
    for more in others:
        other = other | ~more
    expected = all(holds(other, p, 0, None, False) for p in range(9) if holds(one, p, 0, None, False))
    assert one.implies(other) is expected


def test_zero_and_above_are_all_cases() -> None:
    zero, above = Truth.of(Equal(P, Integer(0))), Truth.of(AtLeast(P, Integer(1)))
    assert zero & above == NO and YES.implies(zero | above) and YES.implies(above | zero)
    assert not YES.implies(zero | Truth.of(AtLeast(P, Integer(2))))
