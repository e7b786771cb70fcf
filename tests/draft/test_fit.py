"""Formulas are exact on all samples; a vector without a formula gets none."""

import random

import pytest

from symflops.draft.fit.fit import Fitter
from symflops.formula.evaluate import evaluate
from symflops.formula.expression import parse_expression
from symflops.support.findings import Source, Span

FORMULAS = {
    "constant": lambda s: 7,
    "symbol": lambda s: s["D"],
    "monomial": lambda s: 6 * s["H"] * s["d"],
    "square": lambda s: s["p"] ** 2 * s["o"],
    "sum": lambda s: 2 * s["D"] + 3 * s["H"] * s["d"],
    "shifted": lambda s: s["x"] + s["p"] - 1,
    "floor": lambda s: s["x"] // s["p"],
    "ceiling": lambda s: -(-s["x"] // s["p"]),
    "smaller": lambda s: min(s["x"], s["o"]),
    "nested": lambda s: ((s["x"] - 1) // 2 + 1) * s["H"],
    "places": lambda s: (s["x"] // s["p"]) ** 2 + 1,
    "share": lambda s: 8 * s["D"] // 3,
    "padded": lambda s: -(-4 * s["D"] // s["o"]) * s["o"],
    "limited": lambda s: min(s["D"], 20),
    "registers": lambda s: s["x"] * s["d"] + s["H"] + 8,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_it_finds_what_there_is(name):
    draw = random.Random(3)

    def state():
        return {letter: draw.randint(2, 40) for letter in ("D", "H", "d", "o", "p", "x")}

    base, states, solo = state(), [], {}
    states.append(base)
    for letter in base:
        solo[letter] = [len(states), len(states) + 1]
        states += [{**base, letter: base[letter] + 1}, {**base, letter: base[letter] * 3}]
    states += [state() for _ in range(24)]
    vectors = {letter: tuple(one[letter] for one in states) for letter in base}
    fitter = Fitter(vectors, solo)
    found = fitter.formula(tuple(FORMULAS[name](one) for one in states))
    assert found is not None
    source = Source("formula", found.text)
    expression = parse_expression(found.text, Span(source, 1, 1, len(found.text) + 1))
    for _ in range(50):
        unseen = state()
        assert evaluate(expression, {letter: sympy_number(value) for letter, value in unseen.items()}) == FORMULAS[name](unseen)


def sympy_number(value):
    from sympy import Integer

    return Integer(value)


def test_noise_has_no_formula():
    draw = random.Random(5)
    vectors = {letter: tuple(draw.randint(2, 99) for _ in range(30)) for letter in "ab"}
    assert Fitter(vectors, {"a": [], "b": []}).formula(tuple(draw.randint(1, 10**6) for _ in range(30))) is None
