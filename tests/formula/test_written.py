"""The text of an expression is the language's: read back, it is the same number. No message holds the name of a class."""

from __future__ import annotations

from itertools import product

import pytest
from sympy import Integer, Symbol
from sympy.core.symbol import Str

from symflops.formula import functions as fn
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import parse_expression
from symflops.formula.functions import (
    AtLeast,
    CeilDiv,
    Equal,
    Excess,
    FloorDiv,
    Least,
    Modulo,
    Most,
    Tally,
    flag_symbol,
    size_symbol,
)
from symflops.formula.truth import Truth
from symflops.support.findings import Source, Span
from tests.support.plain import NAMES, unplain

A, B, C = map(size_symbol, "abc")
INDEX = size_symbol("i")
ATOMS = [
    FloorDiv(A, B), FloorDiv(2 * A, B), FloorDiv(A, 2 * B), FloorDiv(A + 1, B + 2), CeilDiv(A, 3), CeilDiv(A + B, C), Modulo(A, B), Modulo(A + 1, 2),
    Least(A, FloorDiv(B, 2)), Most(A - 1, B), Excess(A - B), FloorDiv(FloorDiv(A + 1, 2) + 1, 2), Tally(INDEX, Integer(0), A, INDEX + FloorDiv(INDEX, 2)),
]  # fmt: skip
NUMBERS = [*ATOMS, *(a * b for a, b in product(ATOMS[:7], ATOMS[:7])), *(-3 * a + b for a, b in product(ATOMS[:7], ATOMS[5:])), *(a**2 - 1 for a in ATOMS)]
CONDITIONS = [AtLeast(FloorDiv(A, 2), 3), AtLeast(A, 2), Equal(Modulo(A, 3), Integer(1)), flag_symbol("deep")]


def read(text: str) -> object:
    source = Source("text", text)
    return evaluate(parse_expression(text, Span(source, 1, 1, len(text) + 1)), {"a": A, "b": B, "c": C, "deep": Truth.of(flag_symbol("deep"))})


@pytest.mark.parametrize("expr", NUMBERS, ids=str)
def test_a_number_is_written_as_a_spec_writes_it(expr):
    found = read(str(expr))
    assert found == expr or (expr.has(Tally) and str(found) == str(expr))


@pytest.mark.parametrize("bracket", CONDITIONS[:3], ids=str)
def test_a_condition_is_written_as_a_spec_writes_it(bracket):
    assert read(str(bracket)) == Truth.of(bracket)


def test_no_class_is_named_in_a_text():
    word, items = Symbol("word"), Symbol("items")
    some = {
        fn.Equal: (word, Str("a")), fn.Given: (word,), fn.Contains: (A, items), fn.Item: (items, A), fn.Each: (items, A), fn.Length: (items,),
        fn.Occurrences: (items, A), fn.Total: (items,), fn.Tally: (INDEX, A, B, INDEX), fn.Excess: (A - B,), fn.Longest: (A,),
        fn.Together: (word, A), fn.PerToken: (A, B),
    }  # fmt: skip
    classes = [getattr(fn, name) for name in NAMES if not getattr(fn, name).__subclasses__()]
    assert len(classes) >= 18
    for cls in classes:
        assert not unplain(str(cls(*some.get(cls, (A, B)))))
    assert str(fn.Equal(word, Str("a"))) == "word == 'a'"
