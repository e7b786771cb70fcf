"""Repeats over the tokens of a sample: steps by hand, for ragged batches and for samples of one token or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symflops.api import Model, load
from symflops.ground.diagnostics import Source
from symflops.library import SpecFile
from symflops.model.regime import Regime
from symflops.stages.read import read

STEPS = """name: steps
sizes: {I: inner, H: hidden}
streams: {source: [x], sample: []}
inputs:
  v: {stream: source, width: I}
graph:
  - all: {op: linear, from: v, width: H, bias: false, to: u}
  - zero: {op: zeros, stream: sample, width: H, to: h}
  - step:
      repeat: {axis: x}
      graph:
        - hidden: {op: linear, from: h, width: H, bias: false, to: g}
        - now: {op: view, from: u, as: select, stream: sample, to: now}
        - act: {op: map, from: [g, now], to: h}
  - last: {op: linear, from: h, width: 1, bias: false, to: o}
outputs: [o]
"""


def estimator(train: tuple[str, ...] = ("*",)):
    model = Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", STEPS), lambda name: None))
    return model.estimator({"inner": 3, "hidden": 5}, Regime("drawn", train=train), "torch")


@given(st.lists(st.integers(0, 9), max_size=6))
def test_steps_by_hand(lengths):
    whole = estimator()
    moments = whole.moments(source=lengths)
    steps, started, samples = sum(lengths), sum(max(0, length - 1) for length in lengths), len(lengths)
    assert whole.forward(moments) == 2 * (3 * 5 * steps + 5 * 5 * steps + 5 * samples)
    # the first step reads zeros, which need no gradient; without any step nothing trainable comes before the last linear
    inside = 2 * (3 * 5 * steps + 5 * 5 * steps + 5 * 5 * started)
    reached = sum(length > 0 for length in lengths)
    assert whole.backward(moments) == inside + 2 * 5 * (samples + reached)


@given(st.lists(st.integers(1, 9), max_size=6))
def test_what_trains_decides_which_steps_have_gradients(lengths):
    steps, started, samples = sum(lengths), sum(length - 1 for length in lengths), len(lengths)
    only = estimator(("all.weight",))
    assert only.backward(only.moments(source=lengths)) == 2 * (3 * 5 * steps + 5 * 5 * started + 5 * samples)
    head = estimator(("last.weight",))
    assert head.backward(head.moments(source=lengths)) == 2 * 5 * samples


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_recurrent_networks_are_additive(name):
    one = load(name).estimator({"input_size": 3, "hidden_size": 4, "num_layers": 2, "bidirectional": True}, "full", "torch")
    total = one.moments(source=[5, 1, 7])
    assert sum(one.backward(one.moments(source=[length])) for length in (7, 5, 1)) == one.backward(total)
    assert sum(one.forward(one.moments(source=[length])) for length in (7, 5, 1)) == one.forward(total)
