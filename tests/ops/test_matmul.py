"""``matmul``: products that are neither a linear nor softmax attention."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from symflops.api import Model
from symflops.cli.actions.check import findings
from symflops.ir.regime import Regime
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError

LINEAR_ATTENTION = """language: 2
name: linear_attention
sizes: {D: width, H: heads, d: head_dim}
streams: {latent: [h, w], sample: []}
inputs:
  x: {stream: latent, width: D}
graph:
  - to_q: {op: linear, from: x, width: H*d, bias: false, to: q}
  - to_k: {op: linear, from: x, width: H*d, bias: false, to: k}
  - to_v: {op: linear, from: x, width: H*d, bias: false, to: v}
  - state: {op: matmul, from: [v, k], dims: [H, d, d, tokens], stream: sample, width: H*d*d, to: s}
  - mix: {op: matmul, from: [s, q], dims: [H, d, d, h, w], axes_of: q, like: q, width: H*d, to: a}
  - out: {op: linear, from: a, width: D, bias: false, to: o}
outputs: [o]
"""


def model(text: str = LINEAR_ATTENTION) -> Model:
    return Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", text), lambda name: None))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), max_size=5), st.integers(1, 4), st.integers(1, 5))
def test_both_passes_by_hand(latents, heads, dim):
    config = {"width": 7, "heads": heads, "head_dim": dim}
    estimator = model().estimator(config, "full", "torch")
    tokens = sum(h * w for h, w in latents)
    linear, product = 2 * 7 * heads * dim * tokens, 2 * heads * dim * dim * tokens
    moments = estimator.moments(latent=latents)
    assert estimator.forward(moments) == 4 * linear + 2 * product
    assert estimator.backward(moments) == 3 * linear + 2 * linear + 4 * product  # x needs no gradient


@pytest.mark.parametrize(
    ("trained", "products", "linears"),
    [("to_q", 1, 2), ("to_k", 2, 2), ("to_v", 2, 2), ("out", 0, 1)],
)
def test_an_operand_without_need_gets_no_gradient(trained, products, linears):
    estimator = model().estimator({"width": 7, "heads": 2, "head_dim": 3}, Regime("drawn", train=(f"{trained}.weight",)), "torch")
    moments = estimator.moments(latent=[(2, 3)])
    assert estimator.backward(moments) == products * 2 * 2 * 9 * 6 + linears * 2 * 7 * 6 * 6


def test_products_and_sums_are_work_that_no_counter_sees():
    text = LINEAR_ATTENTION.replace("stream: sample, width", "stream: sample, broadcast: true, width")
    config = {"width": 7, "heads": 2, "head_dim": 3}
    seen, whole = (model(text).estimator(config, "full", convention) for convention in ("torch", "symflops"))
    plain = model().estimator(config, "full", "torch")
    moments, product = plain.moments(latent=[(2, 3)]), 2 * 2 * 9 * 6
    assert seen.forward(moments) == plain.forward(moments) - product
    assert seen.backward(moments) == plain.backward(moments) - 2 * product
    assert (whole.forward(moments), whole.backward(moments)) == (plain.forward(moments), plain.backward(moments))


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("stream: sample, width", "stream: sample, broadcast: D > 1, width", "bad-field"),
        ("from: [v, k]", "from: [v]", "operand-count"),
        ("dims: [H, d, d, tokens]", "dims: [H, d, d, words]", "unknown-size"),
        (", dims: [H, d, d, tokens]", "", "missing-field"),
        ("stream: sample, width: H*d*d", "stream: samples, width: H*d*d", "unknown-stream"),
    ],
)
def test_mistakes(old, new, code):
    assert old in LINEAR_ATTENTION
    with pytest.raises(SpecError) as found:
        model(LINEAR_ATTENTION.replace(old, new)).graph()
    assert code in {diagnostic.code for diagnostic in found.value.diagnostics}


TWO_STREAMS = """language: 2
name: two_streams
sizes: {D: width}
streams: {first: {over: pairs, axes: [a]}, second: {over: pairs, axes: [b]}}
inputs: {x: {stream: first, width: D}, y: {stream: second, width: D}}
graph:
  - {op: slice, from: x, stream: {i: a//2}, to: x}
  - {op: slice, from: y, stream: {b: b//3}, to: y}
  - score: {op: matmul, from: [x, y], dims: [i, b, D], axes_of: NAMED, stream: {i: i}, to: o}
outputs: [o]
"""


@pytest.mark.parametrize(("named", "keys"), [("[x, y]", 4), ("[y, x]", 4), ("x", 12)])
def test_axes_of_names_the_axes_of_each_value_that_it_lists(named, keys):
    """The axis of the second value, too, is no batch variable of its name."""
    estimator = model(TWO_STREAMS.replace("NAMED", named)).estimator({"width": 5}, "full", "torch")
    assert estimator.forward(estimator.moments(first=[10], second=[12])) == 2 * 5 * keys * 5


def test_a_batch_variable_that_hides_an_axis_is_told(tmp_path):
    """Where the lengths differ: of the one that is not named by 'axes_of'."""
    for named, told in (("x", ["b"]), ("[x, y]", []), ("y", [])):
        path = tmp_path / "two_streams.yaml"
        path.write_text(TWO_STREAMS.replace("NAMED", named), "utf-8")
        found = [one for one in findings(SpecFile(tmp_path, path, "two_streams")) if one.code == "shadowed-length"]
        assert [one.span.text for one in found if one.span] == told
