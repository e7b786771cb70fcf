"""Powers of an index or a size: each iteration, and each structure, has its own number."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import Model
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError, SymflopsError

SPEC = """language: 2
name: levels
sizes: {{D: {{key: width, default: 4}}, n: {{key: levels, default: 3}}, heads: {{key: heads, type: list, default: [1, 2, 4]}}}}
streams: {{text: [x]}}
inputs: {{t: {{stream: text, width: D}}}}
graph:
  - levels:
      repeat: {count}
      index: i
      graph:
        - down: {{op: linear, from: t, width: 2*D*2**i, bias: false, to: t}}
        - {{op: attention, heads: "{heads}", query: t, key: t, value: t, to: t}}
outputs: [t]
"""


def model(count: str, heads: str = "2**i") -> Model:
    text = SPEC.format(count=count, heads=heads)
    return Model(SpecFile(Path("."), Path("levels.yaml"), "levels.yaml"), read(Source("levels.yaml", text), lambda name: None))


@pytest.mark.parametrize("levels", [1, 2, 3, 5])
@pytest.mark.parametrize(("count", "heads"), [("n", "2**i"), ("range(n)", "2**i"), ("len(heads)", "heads[i]"), ("heads", "heads[i]")])
def test_a_width_that_doubles(count: str, heads: str, levels: int) -> None:
    config = {"width": 4, "levels": levels, "heads": [2**place for place in range(levels)]}
    estimator = model(count, heads).estimator(config, "full", "torch")
    widths = [4 * 2**place for place in range(levels + 1)]
    assert estimator.parameters == sum(a * b for a, b in zip(widths, widths[1:], strict=False))
    work = sum(2 * 5 * a * b + 4 * 25 * b for a, b in zip(widths, widths[1:], strict=False))
    assert estimator.forward(estimator.moments(text=[5])) == work


@pytest.mark.parametrize(("power", "code", "words"), [("2**17", "expression-too-large", "from 0 to 16"), ("2**(0 - 1)", "expression-too-large", "from 0 to 16"), ("2**0.5", "expression-too-large", "whole number")])
def test_exponents_are_small_whole_numbers(power: str, code: str, words: str) -> None:
    with pytest.raises(SpecError) as error:
        model("3", power).program(["full"], ["torch"])
    (first,) = error.value.diagnostics
    assert first.code == code and words in first.message


def test_heads_of_a_list_divide_the_width() -> None:
    with pytest.raises(SymflopsError, match="does not divide into .*heads"):
        model("heads", "heads[i]").estimator({"width": 4, "heads": [1, 3, 4]}, "full", "torch")
