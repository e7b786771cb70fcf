"""What is there once per batch, and needs a gradient only if an iteration over an item's tokens runs."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from symflops.emit.python.module import render
from tests.lower.test_requirements import model
from tests.standalone import alone, figures

ONCE = """language: 2
name: once
sizes: {D: {key: width, default: 4}}
streams: {text: [n], one: {over: once, axes: []}}
inputs: {x: {stream: text, width: D, layout: b n w}}
graph:
  - {op: zeros, stream: one, width: D, to: c}
  - r: {op: linear, from: c, width: D, to: r}
  - {op: identity, from: x, to: h}
  - cell: {repeat: {axis: n}, graph: [{op: add, from: [h, r], to: h}]}
outputs: [h]
"""


@pytest.mark.thorough
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4))
def test_it_counts_if_the_longest_item_does(lengths):
    one = model(ONCE)
    found = one.estimator({}, "full", "torch")
    module = alone(render(one.program(["full"], ["torch"]), "0"))
    m, runs = found.moments(text=lengths), int(max(lengths) > 0)
    figures_alone = figures(module, module.Sizes(), {"text": lengths}, "full", "torch")[2:]
    assert (found.forward(m), found.backward(m)) == figures_alone == (2 * 4 * 4, 2 * 4 * 4 * runs)
