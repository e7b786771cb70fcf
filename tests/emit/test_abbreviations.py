"""Symbols for long counts: they change no value of a page, and the counts left in tables are short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symflops.algebra.functions import CeilDiv, FloorDiv, size_symbol
from symflops.emit.math.abbreviations import abbreviated, counts
from symflops.emit.page.page import default_sizes
from symflops.model.formula import evaluate, tallies
from tests.emit.programs import SPECS, program
from tests.shipped import load


@pytest.mark.parametrize("name", ["gemma3", "qwen2_vl", "ltx2_video", "unet_2d"])
def test_an_abbreviated_program_has_the_same_values(name: str) -> None:
    plain = load(name).typical()
    short = abbreviated(plain)
    assert len(short.definitions) > len(plain.definitions)
    assert not any(True for formula in counts(short) for _ in tallies(formula))
    values, named = default_sizes(plain), default_sizes(short)
    assert values is not None and named is not None
    assert evaluate(short.parameters, named) == evaluate(plain.parameters, values)
    for first, second in zip(plain.cases, short.cases, strict=True):
        for terms, others in ((first.forward, second.forward), (first.backward, second.backward)):
            assert [evaluate(part, values) for _, part in terms] == [evaluate(part, named) for _, part in others]
    for before, after in zip(counts(plain), counts(short), strict=True):
        assert evaluate(before, values) == evaluate(after, named)


@pytest.mark.parametrize("path", SPECS)
def test_what_is_short_stays(path: str) -> None:
    assert abbreviated(program(path)) == program(path)


@given(st.integers(0, 10**6), st.integers(1, 99), st.integers(1, 99))
def test_dividing_twice_is_dividing_by_the_product(length: int, first: int, second: int) -> None:
    x, a, b = map(size_symbol, "xab")
    numbers = {x: length, a: first, b: second}
    for divide, expected in ((FloorDiv, length // first // second), (CeilDiv, -(-(-(-length // first)) // second))):
        assert divide(divide(x, a), b) == divide(x, a * b)
        assert divide(divide(x, a), b).xreplace(numbers) == divide(length, first * second) == expected
