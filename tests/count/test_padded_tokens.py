"""Tokens of a batch are those of its items: not rows that fill a last chunk up, not latents, and not a part that attends alone first."""

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


REFINED = """language: 2
name: refined
sizes: {D: {key: width, default: 8}}
streams: {image: [n], prompt: [y]}
inputs: {x: {stream: image, width: D}, t: {stream: prompt, width: D}}
graph:
  - p: {op: linear, from: t, width: D, to: t}
  - {op: attention, heads: 1, query: t, key: t, value: t, to: t}
  - {op: concat, along: tokens, from: [x, t], to: joint}
  - {op: attention, heads: 1, query: joint, key: joint, value: joint, to: joint}
  - {op: QUERY}
  - head: {op: linear, from: y, width: D, to: y}
outputs: [y]
"""


@given(st.integers(1, 40), st.integers(1, 40), st.booleans())
def test_tokens_are_all_that_attend_together(image, prompt, reads):
    """A prompt that is refined alone first is a part of them; and a later attention of the image alone changes nothing."""
    last = "attention, heads: 1, query: x, key: joint, value: joint, to: y" if reads else "identity, from: joint, to: y"
    found = model(REFINED.replace("QUERY", last)).estimator({}, "full", "torch")
    assert tokens_of(found.stored, "full", found.sizes, found.moments(image=[image], prompt=[prompt])) == image + prompt
