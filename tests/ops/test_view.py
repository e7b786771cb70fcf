"""``view``: what becomes of rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symflops.api import Model
from symflops.catalog.library import SpecFile
from symflops.diagnostics.findings import Source
from symflops.frontend.read import read

CLASS_TOKEN = """name: class_token
sizes: {{D: width}}
streams:
  images: {over}
inputs:
  x: {{stream: images, width: D}}
graph:
  - token: {{op: parameter, shape: "[D]", to: first}}
  - spread: {{op: view, from: first, as: expand, like: x, {rows}, to: first}}
  - join: {{op: concat, along: tokens, from: [first, x], to: h}}
  - out: {{op: linear, from: h, width: D, bias: false, to: o}}
outputs: [o]
"""


def model(over: str, rows: str) -> Model:
    text = CLASS_TOKEN.format(over=over, rows=rows)
    return Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", text), lambda name: None))


@pytest.mark.parametrize("over", ["[h, w]", "{over: images, axes: [h, w]}"])
@pytest.mark.parametrize(
    ("rows", "tokens"),
    [("stream: []", lambda h, w: 1), ("axes: {h: 1}", lambda h, w: w), ("stream: {h: h, one: 3}", lambda h, w: 3 * h)],
)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=5))
def test_like_gives_the_index_set_and_the_axes_that_others_change(over, rows, tokens, images):
    estimator = model(over, rows).estimator({"width": 7}, "full", "torch")
    moments = estimator.moments(images=images)
    forward = sum(2 * 7 * 7 * (tokens(h, w) + h * w) for h, w in images)
    assert estimator.forward(moments) == forward
    assert estimator.backward(moments) == 2 * forward  # the token needs a gradient, so the linear's input does
