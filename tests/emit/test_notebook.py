"""Derivations and estimators in notebooks: what they display, and that it names what they count."""

from __future__ import annotations

import re
from typing import Any

import pytest

from symflops.evaluate.typical_values import default_sizes
from symflops.formula.formula import evaluate
from tests.emit.math_reader import read
from tests.emit.test_latex import printed_values
from tests.shipped import load
from tests.standalone import published


@pytest.mark.parametrize("name", ["llama", "qwen_image"])
def test_a_derivation_shows_its_closed_forms(name: str) -> None:
    derived = load(name).derive()
    text, latex = derived._repr_markdown_(), derived._repr_latex_()
    assert latex in text and latex.startswith("$$\n\\begin{aligned}") and f"**`{name}`**, regime `full`" in text
    sizes = default_sizes(derived.program)
    assert sizes is not None
    values = printed_values(derived.program, sizes, [7 + place for place in range(len(derived.program.moments))])
    shown = re.sub(r"&|\\\\|\\qquad", " ", latex.replace("\n", " "))
    found = {head: read(form, values) for head, form in re.findall(r"\\mathrm\{(\w+)\} =\{\}(.*?)(?=\\mathrm\{\w+\} =|[A-Z]_\{1\} =|\\end)", shown)}
    expected = {"parameters": evaluate(derived.program.parameters, sizes)}
    for head, terms in (("forward", derived.case.forward), ("backward", derived.case.backward)):
        expected[head] = sum(evaluate(formula, sizes) * (7 + place) for place, formula in terms)
    assert found == expected


def generated(program: Any) -> Any:
    """The module that is generated from a program."""
    return published(program)


@pytest.mark.parametrize(("name", "regime"), [("llama", "full"), ("qwen_image", "forward"), ("llama", "lora")])
def test_estimators_show_the_same_table(name: str, regime: str) -> None:
    program = load(name).program([regime])
    module = generated(program)
    one = module.Estimator(module.Sizes.from_config({}), regime=regime)
    two = load(name).estimator({}, regime)
    assert one._repr_markdown_() == two._repr_markdown_()
    head, _, table = one._repr_markdown_().partition("\n\n")
    assert head.startswith(f"**{name}**, regime `{regime}`, convention `symflops`: {one.parameters:,} parameters, of which ")
    assert head.endswith({"full": "all train.", "forward": "0 train.", "lora": f"{one.trainable_parameters:,} train."}[regime])
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    moments = {row[0]: place + 3 for place, row in enumerate(rows)}
    m = module.Moments(**moments)
    for column, count in ((1, one.forward), (2, one.backward), (3, one.recomputed)):
        assert sum(int(row[column].replace(",", "")) * moments[row[0]] for row in rows) == count(m)
