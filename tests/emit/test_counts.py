"""A count of iterations less some of them is printed as one count, which has the same value and the same expansion."""

from __future__ import annotations

from hypothesis import given, strategies as st

from symflops.emit.math.printer import LatexPrinter
from symflops.emit.math.shortest import multiplied_out, plainer
from symflops.formula.formula import MINUS, ZERO, Apply, Bracket, Formula, Num, Sum, Sym, TallyOf, evaluate, walk
from symflops.formula.terms import plus, times

INDEX, LAYERS = Sym("i@1_"), Sym("L")
BRACKETS = (
    Bracket("contains", (INDEX, Sym("dense"))),
    Bracket("equal", (Apply("mod", (INDEX, Num(2))), ZERO)),
    Bracket("at_least", (INDEX, Num(2))),
)
PRODUCTS = st.sets(st.sampled_from(BRACKETS), min_size=1).map(lambda some: times(*(each for each in BRACKETS if each in some)))
"""Conditions that hold together, always in one order, as derivations write them."""


def counted(condition: Formula) -> Formula:
    return TallyOf(INDEX.name, ZERO, LAYERS, condition)


TERMS = st.tuples(st.sampled_from((Num(1), MINUS, Sym("D"))), st.just(LAYERS) | PRODUCTS.map(counted)).map(lambda pair: times(*pair))


@given(st.lists(TERMS, min_size=2, max_size=4), st.integers(0, 6), st.sets(st.integers(0, 6)))
def test_a_plainer_sum_of_counts_has_the_value_and_the_expansion_of_the_sum(terms: list[Formula], layers: int, dense: set[int]) -> None:
    whole = plus(terms)
    shown = plainer(whole)
    names = {"L": layers, "D": 5, "dense": tuple(sorted(dense))}
    assert evaluate(shown, names) == evaluate(whole, names)
    assert multiplied_out(shown) == multiplied_out(whole)


def test_one_count_is_printed_where_a_sum_had_two() -> None:
    dense, even, _ = BRACKETS
    whole = Sum((counted(even), times(MINUS, counted(times(dense, even)))))
    shown = plainer(whole)
    assert sum(isinstance(part, TallyOf) for part in walk(shown)) == 1
    printer = LatexPrinter({})
    assert printer.text(plainer(Sum((LAYERS, times(MINUS, counted(dense)))))).endswith(r"[i \notin \mathit{dense}]")
    assert r"[i \notin \mathit{dense}]" in printer.text(shown)
