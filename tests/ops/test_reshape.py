"""``reshape``, ``expand``, ``slice`` and others: what becomes of rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from symflops.api import Model, load
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SymflopsError

CLASS_TOKEN = """language: 2
name: class_token
sizes: {{D: width}}
streams:
  images: {over}
inputs:
  x: {{stream: images, width: D}}
graph:
  - token: {{op: parameter, shape: "[D]", to: first}}
  - spread: {{op: expand, from: first, like: x, {rows}, to: first}}
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
@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=5))
def test_like_gives_the_index_set_and_the_axes_that_others_change(over, rows, tokens, images):
    estimator = model(over, rows).estimator({"width": 7}, "full", "torch")
    moments = estimator.moments(images=images)
    forward = sum(2 * 7 * 7 * (tokens(h, w) + h * w) for h, w in images)
    assert estimator.forward(moments) == forward
    assert estimator.backward(moments) == 2 * forward  # the token needs a gradient, so the linear's input does


TIMES = """
language: 2
name: timed
sizes: {D: width, twice: {key: twice, default: false}}
streams: {text: [x], time: {t: t}}
inputs: {a: {stream: text, width: D}, b: {stream: time, width: D}}
graph:
  - spread: {op: expand, from: b, like: a, to: b}
  - o: {op: linear, from: [a], with: b, width: D}
  - more: {op: linear, from: o, width: D, when: twice, to: c}
  - last: {op: linear, from: c, width: D, when: twice, to: o}
outputs: [o]
"""


def test_rows_that_are_copied_along_other_axes_are_as_many_at_least(tmp_path):
    path = tmp_path / "timed.yaml"
    path.write_text(TIMES)
    model = load(path).estimator({"width": 2})
    for time in (1, 3, 6):
        assert model.forward(model.moments(text=[6], time=[time])) == 2 * 6 * 2 * 2
    with pytest.raises(SymflopsError, match="needs at least 7"):
        model.moments(text=[6], time=[7])


def test_a_value_that_a_config_decides_is_there_where_it_is_read(tmp_path):
    path = tmp_path / "timed.yaml"
    path.write_text(TIMES)
    assert load(path).estimator({"width": 2, "twice": True}).parameters == 3 * load(path).estimator({"width": 2}).parameters
    path.write_text(TIMES.replace("when: twice, to: c}", "when: not twice, to: c}"))
    assert load(path).estimator({"width": 2}).parameters == 2 * (2 * 2 + 2)
    with pytest.raises(SymflopsError, match="absent"):
        load(path).estimator({"width": 2, "twice": True})
