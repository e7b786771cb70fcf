"""Shapes that authors write from papers: lengths in two spellings, two softmax maps over one value, memory in front of segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import Model
from symflops.build.build import build_through
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError

HEAD = """language: 2
name: shapes
sizes:
  D: {key: width, default: 8}
  H: {key: heads, default: 2}
  K: {key: kernel, default: 3}
  S: {key: segment, default: 4}
  M: {key: memory, default: 3}
  L: {key: layers, default: 3}
"""


def model(text: str) -> Model:
    return Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", HEAD + text), lambda name: None))


def work(made: Model, *lengths: int) -> int:
    estimator = made.estimator({}, "full", "torch")
    return estimator.forward(estimator.moments(text=list(lengths)))


CONVOLUTIONS = """{requires}streams: {{text: [m]}}
inputs: {{t: {{stream: text, width: D}}}}
graph:
  - first: {{op: conv, from: t, width: D, kernel: [3], stride: 2, to: a}}
  - second: {{op: conv, from: a, width: D, kernel: [3], stride: 2, to: a}}
  - {{op: select, from: t, stream: {{q: "((m - 1)//2 - 1)//2"}}, to: b}}
  - {{op: add, from: [a, b], to: a}}
  - third: {{op: conv, from: a, width: D, kernel: [K], padding: K//2, to: b}}
  - {{op: add, from: [a, b], to: a}}
outputs: [a]
"""


def test_equal_lengths_in_two_spellings() -> None:
    made = model(CONVOLUTIONS.format(requires="requires: {odd kernels: K % 2 == 1}\n"))
    for m in (7, 8, 9, 10, 31):
        first = (m - 3) // 2 + 1
        second = (first - 3) // 2 + 1
        assert work(made, m) == 2 * 8 * 8 * 3 * (first + second + second)


def test_a_kernel_that_may_be_even_has_other_rows() -> None:
    with pytest.raises(SpecError, match="has rows"):
        model(CONVOLUTIONS.format(requires="")).typical()


MAPS = """streams: {text: [x]}
inputs: {t: {stream: text, width: D}}
graph:
  - qk: {op: linear, from: t, width: 4*H*D, split: [2*H*D, 2*H*D], to: [q, k]}
  - v: {op: linear, from: t, width: 2*H*D, to: v}
  - {op: attention, heads: 2*H, query: q, key: k, value: v, to: a}
outputs: [a]
"""


def test_two_softmax_maps_over_one_value() -> None:
    """A differential attention: the difference of two maps of each head meets one value, twice as wide."""
    maps, mix = 2 * 2 * 8, 2 * (2 * 8)
    assert work(model(MAPS), 5) == 2 * (5 * 8 * 6 * 2 * 8 + 25 * (maps + mix))


SEGMENTS = """streams: {text: [x]}
inputs: {t: {stream: text, width: D}}
graph:
  - memory: {op: parameter, shape: [M, D], to: memory}
  - {op: expand, from: memory, like: t, stream: {s: x/S, m: M}, to: memory}
  - {op: reshape, from: t, stream: {s: x/S, n: S}, to: u}
  - layers:
      repeat: L
      index: l
      graph:
        - {op: concat, along: tokens, from: [memory, u], to: c}
        - long: {op: linear, from: c, width: D, when: l >= 1, to: kv}
        - short: {op: linear, from: u, width: D, when: l == 0, to: kv}
        - {op: attention, heads: 1, query: u, key: kv, value: kv, fold: s, add_to: u}
outputs: [u]
"""


def test_a_memory_is_joined_inside_of_segments() -> None:
    """Each segment of 4 tokens sees itself, and in later layers 3 more rows in front."""
    segments, first, later = 5, 4, 7
    rows = segments * (first + 2 * later)
    assert work(model(SEGMENTS), 20) == 2 * (8 * 8 * rows + 2 * 8 * segments * 4 * (first + 2 * later))


SHADOWS = """streams: {{text: [x, m]}}
inputs: {{t: {{stream: text, width: D}}}}
graph:
  - {{op: pool, from: t, stream: {{m: x//2}}, to: a}}
  - cut: {{op: conv, from: a, width: D, kernel: [2], stride: 2, to: a}}
  - {{op: select, from: a, stream: {{q: "{length}"}}, to: b}}
outputs: [b]
"""


@pytest.mark.parametrize(("length", "warned"), [("m - 1", True), ("tokens - 1", False)])
def test_an_axis_that_was_cut_still_hides_a_length(length: str, warned: bool) -> None:
    """'m' is an axis of half the rows of 'x' here, cut by a convolution, and also a length of the batch."""
    text = HEAD + SHADOWS.format(length=length)
    _, report = build_through(read(Source("case.yaml", text), lambda name: None))
    assert [one.code for one in report.diagnostics] == ["shadowed-length"] * warned
