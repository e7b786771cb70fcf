"""Tokens of a batch are those of its items, not the rows that a model fills its last chunk up with."""

from __future__ import annotations

from hypothesis import given, strategies as st

from symflops.evaluate.moments import tokens_of
from tests.lower.test_requirements import model

CHUNKED = """language: 2
name: chunked
sizes: {V: {key: vocab, default: 16}, D: {key: width, default: 8}, C: {key: chunk, default: 4}}
streams: {text: [x]}
inputs: {ids: {stream: text}}
graph:
  - e: {op: embedding, from: ids, rows: V, width: D, to: h}
  - {op: pad, from: h, stream: {c: "ceil(x, SIDE)", s: SIDE}, to: g}
  - {op: attention, heads: 1, fold: c, query: g, key: g, value: g, to: a}
  - {op: slice, from: a, like: h, to: a}
  - w: {op: linear, from: a, width: D, to: y}
outputs: [y]
"""


@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(1, 9))
def test_chunks_that_are_filled_up(lengths, chunk):
    for text, config in ((CHUNKED.replace("SIDE", "C"), {"chunk": chunk}), (CHUNKED.replace("SIDE", "4"), {})):
        found = model(text).estimator(config, "full", "torch")
        m = found.moments(text=lengths)
        assert tokens_of(found.stored, "full", found.sizes, m) == sum(lengths)


LATENTS = """language: 2
name: latents
sizes: {D: {key: width, default: 8}}
streams: {text: [n]}
inputs: {x: {stream: text, width: D}}
graph:
  - {op: select, from: x, stream: {i: 5}, to: s}
  - a: {op: linear, from: s, width: D, to: s}
  - {op: attention, heads: 1, query: s, key: x, value: x, to: s}
  - head: {op: linear, from: x, width: D, to: y}
outputs: [s, y]
"""


@given(st.lists(st.integers(5, 40), min_size=1, max_size=4))
def test_latents_are_no_tokens(lengths):
    found = model(LATENTS).estimator({}, "full", "torch")
    assert tokens_of(found.stored, "full", found.sizes, found.moments(text=lengths)) == sum(lengths)
