"""Symbols for long counts: they change no value of a page, and the counts left in tables are short."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from symflops.emit.math.definitions import Forms, Made, abbreviated, counts, defined, in_order
from symflops.emit.math.shortest import PART, Measured, joined, rows_of
from symflops.emit.page.page import default_sizes
from symflops.formula.formula import Sym, evaluate, operators, symbols, tallies
from symflops.formula.functions import CeilDiv, FloorDiv, size_symbol
from symflops.formula.sparse import Poly
from symflops.formula.table import ConfigError
from tests import shipped
from tests.emit.programs import SPECS, program
from tests.lower.test_short_forms import other_sizes
from tests.sampling import sampled
from tests.shipped import load


@pytest.mark.parametrize("name", sampled(["gemma3", "qwen2_vl", "ltx2_video", "unet_2d"], 2, 1))
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


@pytest.mark.parametrize("name", sampled(shipped.NAMES, 40, 20))
def test_definitions_change_no_value(name: str) -> None:
    """At the defaults or a measured case, at other sizes, and at their boundaries; conditions are drawn, too."""
    plain = load(name).typical(["full"], ["symflops", "torch"])
    short, random = defined(plain), Random(name)
    known = default_sizes(plain) or dict(load(name).estimator(shipped.cases_of(shipped.FILES[name])[0].config, "full", "symflops").sizes)
    pairs = [pair for one, two in zip(plain.cases, short.cases, strict=True) for pair in zip(one.forward + one.backward, two.forward + two.backward, strict=True)]
    pairs += zip(enumerate(counts(plain)), enumerate(counts(short)), strict=True)
    changed = [(before, after) for (_, before), (_, after) in pairs if before != after]
    assert bool(changed) == (short.definitions != plain.definitions)
    compared = 0
    for draw in range(20 if changed else 0):
        letters = {letter for before, _ in changed for letter in symbols(before)}
        sizes = other_sizes(known, plain, letters, random) if draw else dict(known)
        try:
            for definition in short.definitions:
                sizes[definition.letter] = evaluate(definition.formula, sizes)
            expected = [evaluate(before, sizes) for before, _ in changed]
        except (IndexError, ConfigError, ZeroDivisionError):  # fewer entries than iterations that were drawn, or none by which to divide
            continue
        compared += 1
        assert [evaluate(after, sizes) for _, after in changed] == expected, sizes
    assert compared or not changed


NAMES = tuple(map(Sym, ("L", "D", "F")))
LETTERS = tuple(Sym(f"{PART}{number}") for number in (1, 2, 3))


def polynomials(names: tuple[Sym, ...], terms: int) -> st.SearchStrategy[Poly]:
    """Sums of names, which have terms in common."""
    monomial = st.sampled_from([frozenset({(name, 1)}) for name in names])
    return st.dictionaries(monomial, st.integers(1, 2), min_size=2, max_size=terms).map(Poly)


DEFINED = st.tuples(*(polynomials(NAMES + LETTERS[:number], 4) for number in range(len(LETTERS))))


@given(st.lists(polynomials(NAMES, 8), min_size=1, max_size=3), DEFINED, st.fixed_dictionaries({name.name: st.integers(1, 9) for name in NAMES}))
def test_no_definition_reads_itself(polys: list[Poly], values: tuple[Poly, ...], sizes: dict[str, int]) -> None:
    """Nor through others, whatever is given a letter; forms mean what they did."""
    writer = Measured(program(SPECS[0]))
    found = Forms(writer, tuple(polys))
    for letter, value in zip(LETTERS, values, strict=True):
        found = found.using(Made(letter, value))
    known: dict[str, Any] = dict(sizes)
    for made in in_order(found.made):
        known[made.letter.name] = evaluate(writer.shortest(made.value), known)
    for before, after in zip(polys, found.polys, strict=True):
        assert evaluate(writer.shortest(after), known) == evaluate(writer.shortest(before), known)


@pytest.mark.parametrize("name", sampled(["deepseek_v3", "gpt_oss", "kimi_linear", "qwen3"], 2, 1))
def test_what_a_config_decides_is_told_by_cases(name: str) -> None:
    """A condition stands in a definition, or in a form as one factor; no form subtracts what another case has."""
    short = defined(load(name).typical(["full"], ["symflops"]))
    assert any(len(rows_of(definition.formula)) > 1 for definition in short.definitions)
    for definition in short.definitions:
        rows = rows_of(definition.formula)
        assert joined(rows) == definition.formula
    plain = load(name).typical(["full"], ["symflops"])
    before, after = (sum(operators(formula) for _, formula in one.cases[0].forward) for one in (plain, short))
    assert after + sum(operators(definition.formula) for definition in short.definitions) < 1.05 * before


@pytest.mark.parametrize("path", SPECS)
def test_what_is_short_stays(path: str) -> None:
    short = program(path)
    assert abbreviated(short) == short or "clean" in {field.letter for field in short.fields}


@given(st.integers(0, 10**6), st.integers(1, 99), st.integers(1, 99))
def test_dividing_twice_is_dividing_by_the_product(length: int, first: int, second: int) -> None:
    x, a, b = map(size_symbol, "xab")
    numbers = {x: length, a: first, b: second}
    for divide, expected in ((FloorDiv, length // first // second), (CeilDiv, -(-(-(-length // first)) // second))):
        assert divide(divide(x, a), b) == divide(x, a * b)
        assert divide(divide(x, a), b).xreplace(numbers) == divide(length, first * second) == expected
