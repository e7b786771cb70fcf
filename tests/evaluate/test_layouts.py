"""Lengths that are read off arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import Model
from symflops.evaluate.layouts import batch_of
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source

SPEC = """
language: 2
name: one
sizes: {D: width}
streams: {text: [x], images: {over: images, axes: [h, w]}}
inputs:
  t: {stream: text, width: D, layout: "b x c"}
  pictures: {stream: images, width: 3, layout: "1 c h w"}
graph:
  - a: {op: linear, from: pictures, width: D, to: i}
  - b: {op: linear, from: t, width: D, to: t}
outputs: [t]
"""


@pytest.mark.parametrize("pictures", [[], [{"shape": [1, 3, 4, 6]}], [{"shape": [1, 3, 4, 6]}, {"shape": [1, 3, 2, 2]}]])
def test_a_list_of_tensors_may_be_empty(pictures: list[dict[str, list[int]]]) -> None:
    """Each tensor is one item; without any there is none, and no work on them."""
    model = Model(SpecFile(Path(), Path("one.yaml"), "one.yaml"), read(Source("one.yaml", SPEC), lambda name: None))
    program = model.program(["full"], ["symflops"], {"width": 4})
    batch = batch_of(program, {"t": {"shape": [2, 5, 4]}, "pictures": pictures})
    assert batch == {"text": [5, 5], "images": [item["shape"][2:] for item in pictures]}
    estimator = model.estimator({"width": 4}, "full", "symflops")
    rows = sum(item["shape"][2] * item["shape"][3] for item in pictures)
    assert estimator.forward(estimator.moments(**batch)) == 2 * 4 * (4 * 10 + 3 * rows)


@pytest.mark.parametrize(("layout", "shape"), [("b x c", [3, 5, 4]), ("7 b x c", [7, 3, 5, 4]), ("x b c", [5, 3, 4])])
def test_items_may_be_any_dimension(layout: str, shape: list[int]) -> None:
    text = SPEC.replace('"b x c"', f'"{layout}"')
    model = Model(SpecFile(Path(), Path("one.yaml"), "one.yaml"), read(Source("one.yaml", text), lambda name: None))
    program = model.program(["full"], ["symflops"], {"width": 4})
    assert batch_of(program, {"t": {"shape": shape}})["text"] == [5, 5, 5]
