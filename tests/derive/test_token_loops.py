"""Loops over tokens, by hand: ragged batches, and samples of one token or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from symflops.api import Model, load
from symflops.ir.regime import Regime
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError

STEPS = """language: 2
name: steps
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
        - now: {op: select, from: u, stream: sample, to: now}
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


CHUNKS = """language: 2
name: chunks
sizes: {D: width, Q: chunk}
streams: {text: [x]}
inputs:
  v: {stream: text, width: D}
graph:
  - all: {op: linear, from: v, width: D, bias: false, to: u}
  - chunk: {op: pad, from: u, stream: {c: "ceil(tokens, LENGTH)", t: LENGTH}, to: u}
  - start: {op: zeros, like: u, stream: {}, width: D*D, to: state}
  - room: {op: zeros, like: u, width: D, to: y}
  - repeat: {axis: c, of: u}
    graph:
      - one: {op: select, from: u, stream: {t: LENGTH}, to: one}
      - read: {op: matmul, from: [one, state], dims: [t, D, D], width: D, to: r}
      - spread: {op: expand, from: r, like: u, to: r}
      - sum: {op: add, from: [y, r], to: y}
      - write: {op: matmul, from: [one, one], dims: [t, D, D], stream: {}, width: D*D, add_to: state}
  - rows: {op: slice, from: y, like: v, to: y}
outputs: [y]
"""


@pytest.mark.parametrize("chunk", ["4", "Q"])
@given(lengths=st.lists(st.integers(0, 13), max_size=6))
@settings(deadline=None, max_examples=40)
def test_chunks_by_hand(chunk, lengths):
    """The first chunk reads zeros; what the last one writes, nobody reads."""
    text = CHUNKS.replace("LENGTH", chunk)
    model = Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", text), lambda name: None))
    one = model.estimator({"width": 3, "chunk": 4}, "full", "torch")
    moments = one.moments(text=lengths)
    chunks, later = sum(-(-length // 4) for length in lengths), sum(max(0, -(-length // 4) - 1) for length in lengths)
    linear, product = 2 * 9 * sum(lengths), 2 * 4 * 9
    assert one.forward(moments) == linear + 2 * product * chunks
    assert one.backward(moments) == linear + product * chunks + 3 * product * later


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("{axis: c, of: u}", "{axis: s, of: u}", "unknown-axis"),
        ("{axis: c, of: u}", "{axis: c, of: w}", "unknown-value"),
        ("{axis: c, of: u}", "{axis: c}", "unknown-axis"),
        ("{axis: c, of: u}", "{of: u}", "missing-field"),
        ("op: zeros, like: u, width: D,", "op: zeros, width: D,", "missing-field"),
    ],
)
def test_mistakes(old, new, code):
    text = CHUNKS.replace("LENGTH", "4")
    assert old in text
    with pytest.raises(SpecError) as found:
        source = Source("case.yaml", text.replace(old, new))
        Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(source, lambda name: None)).graph()
    assert code in {diagnostic.code for diagnostic in found.value.diagnostics}


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru"])
def test_recurrent_networks_are_additive(name):
    one = load(name).estimator({"input_size": 3, "hidden_size": 4, "num_layers": 2, "bidirectional": True}, "full", "torch")
    total = one.moments(source=[5, 1, 7])
    assert sum(one.backward(one.moments(source=[length])) for length in (7, 5, 1)) == one.backward(total)
    assert sum(one.forward(one.moments(source=[length])) for length in (7, 5, 1)) == one.forward(total)
