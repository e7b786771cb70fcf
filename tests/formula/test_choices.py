"""Numbers that a condition chooses: one number where both sides are equal by the condition itself."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML
from sympy import Symbol

from symflops.formula.domain import choose
from symflops.formula.functions import AtLeast, Equal
from symflops.formula.truth import Truth

from ..oracle.interpreter import run
from ..oracle.package import CONVENTIONS, interpreted, symbolic
from ..oracle.specs import Case

D, E, L = (Symbol(name, integer=True, nonnegative=True) for name in "DEL")
SAME = Truth.of(Equal(E, D))


def test_both_sides_of_an_equation_are_one_number() -> None:
    """By ``E = D`` they are equal, so the number of the other side serves for both."""
    assert choose(SAME, E, D) == D and choose(~SAME, D, E) == D
    assert choose(SAME, D, E) == E and choose(~SAME, E, D) == E
    assert choose(SAME, 2 * E * L, 2 * D * L) == 2 * D * L
    assert choose(Truth.of(Equal(D, E)), E, D) == D


def test_other_conditions_stay_choices() -> None:
    """An inequality, an equation beside another condition, and sides that differ all the same."""
    more = Truth.of(AtLeast(E, D))
    for condition, then, otherwise in ((more, E, D), (SAME & more, E, D), (SAME, E + 1, D), (Truth.of(Equal(L, D)), E, D)):
        chosen = choose(condition, then, otherwise)
        for e in range(4):
            for d in range(4):
                sizes = {E: e, D: d, L: 2}
                holds = condition.expr.xreplace(sizes)
                assert chosen.xreplace(sizes) == (then if holds else otherwise).xreplace(sizes), (condition, sizes)


PROJECTED = """
language: 2
name: small
sizes: {D: D, E: E, L: L}
streams: {text: [x]}
inputs: {ids: {stream: text}}
outputs: [logits]
graph:
  - words: {op: embedding, from: ids, rows: 7, width: E, to: w}
  - places: {op: embedding, from: ids, rows: 5, width: D, to: h}
  - inward: {op: linear, from: w, width: D, bias: false, when: E != D, to: w}
  - sum: {op: add, from: [h, w], to: h}
  - layers: {repeat: L, graph: [proj: {op: linear, from: h, width: D, add_to: h}]}
  - outward: {op: linear, from: h, width: E, bias: false, when: E != D, to: h}
  - head: {op: linear, from: h, width: 7, bias: false, tie: words.weight, to: logits}
"""


@pytest.mark.parametrize("width", (3, 4))
def test_a_projection_where_widths_differ(width: int) -> None:
    """A narrower embedding table, projected where it is narrower: one closed form for both."""
    config: dict[str, Any] = {"D": 4, "E": width, "L": 2}
    case = Case(YAML(typ="safe").load(PROJECTED), config, {"text": [0, 1, 5]}, ("*",))
    program = symbolic(case)
    assert program is not None
    for convention in CONVENTIONS:
        want = run(case.document, case.config, case.batch, train=case.train, convention=convention)
        assert interpreted(program, case, convention) == want
