"""Configs whose sizes do not fit each other are refused: widths and heads, groups, norms, repeats of a negative count."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from symflops.api import Model, load
from symflops.compiler import Goal
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SymflopsError

HEAD = """language: 2
name: small
sizes: {D: {key: width, default: 24}, H: {key: heads, default: 6}, G: {key: kv_heads, default: H}, n: {key: layers, default: 1}, R: {key: rest, default: 4}}
streams: {text: [x]}
inputs: {x: {stream: text, width: D}}
graph:
"""
ATTENTION = HEAD + """
  - q: {op: linear, from: x, width: D, to: q}
  - k: {op: linear, from: x, width: G*(D//H), to: k}
  - v: {op: linear, from: x, width: G*(D//H), to: v}
  - {op: attention, heads: H, kv_heads: G, query: q, key: k, value: v, to: o}
outputs: [o]
"""
NORM = HEAD + "  - norm: {op: rms_norm, from: x, dim: R, to: o}\noutputs: [o]\n"
GROUPS = HEAD + "  - conv: {op: conv, from: x, width: D, kernel: 1, groups: R, to: o}\noutputs: [o]\n"
REPEAT = HEAD + "  - blocks: {repeat: n - R, graph: [{a: {op: linear, from: x, width: D, to: x}}]}\n  - o: {op: linear, from: x, width: D}\noutputs: [o]\n"
GUARDED = REPEAT.replace("repeat: n - R,", "repeat: n - R, when: R > 2,")


def model(text: str) -> Model:
    return Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", text), lambda name: None))


def fits(text: str, **config: int) -> bool:
    """Whether a config is answered."""
    try:
        model(text).estimator(config)
    except SymflopsError as error:
        assert "does not fit the model" in str(error)
        return False
    return True


SMALL = st.integers(0, 12)


@given(SMALL, SMALL, SMALL)
def test_heads_divide_the_width_and_groups_the_heads(width, heads, groups):
    assert fits(ATTENTION, width=width, heads=heads, kv_heads=groups) == bool(heads and groups and width % heads == 0 and heads % groups == 0)


@given(SMALL, SMALL)
def test_a_norm_and_groups_of_channels_divide_the_width(width, rest):
    assert fits(NORM, width=width, rest=rest) == bool(rest and width % rest == 0)
    assert fits(GROUPS, width=width, rest=rest) == bool(rest and width % rest == 0)


@pytest.mark.thorough
@given(SMALL, SMALL)
def test_a_repeat_does_not_run_a_negative_number_of_times(layers, rest):
    assert fits(REPEAT, layers=layers, rest=rest) == (layers >= rest)
    assert fits(GUARDED, layers=layers, rest=rest) == (layers >= rest or rest <= 2)


def test_the_fields_are_named():
    with pytest.raises(SymflopsError, match=r"the width of 'q', D, does not divide into H heads \(heads, width\)"):
        model(ATTENTION).estimator({"width": 10, "heads": 4})
    with pytest.raises(SymflopsError, match=r"'repeat: n - R' is negative \(layers, rest\)"):
        model(REPEAT).estimator({"layers": 1, "rest": 2})


@pytest.mark.parametrize(("name", "config"), [
    ("albert_masked_lm", {"hidden_size": 50, "num_attention_heads": 4}), ("z_image", {"dim": 3841}), ("llama", {"num_attention_heads": 32, "num_key_value_heads": 5}),
    ("bitnet", {"hidden_size": 2559}), ("siglip_vision", {"hidden_size": 770}), ("falcon", {"hidden_size": 2048, "n_head": 32}),
])  # fmt: skip
def test_published_models_refuse_sizes_that_their_class_cannot_run(name, config):
    with pytest.raises(SymflopsError, match="does not"):
        load(next(Path("specs").glob(f"*/{name}.yaml"))).estimator(config)


MELS = """language: 2
name: mels
sizes: {m: {key: mels, default: 8}, s: {key: stride, default: 1}}
streams: {audio: [n]}
inputs: {audio: {stream: audio, width: m, layout: b n w}}
graph:
  - {op: reshape, from: audio, stream: {t: n, f: m}, width: 1, to: x}
  - c: {op: conv, from: x, width: 4, kernel: [1, 3], stride: [1, s], to: x}
outputs: [x]
"""


@given(st.integers(1, 12), st.integers(1, 4))
def test_lengths_of_sizes_alone_are_checked(mels, stride):
    assert fits(MELS, mels=mels, stride=stride) == (mels >= 3)


def test_a_size_that_others_decide_is_at_least_what_the_census_says() -> None:
    """Who leaves out the width of a head gets one from the width and the heads: heads of width 1 rotate otherwise."""
    text = ATTENTION.replace("n: {key", "d: {key: head_dim, default: D//H}, n: {key")
    census = {"Small": {"guarded": {"head_dim": {"values": [None], "least": 2}, "heads": {"values": [], "least": 2}}}}
    program = model(text).compiled(Goal.PROGRAM, ["full"], ["symflops"], census=census).program
    assert program is not None
    for config, told in (({}, ""), ({"width": 6}, "'head_dim' would be below 2"), ({"head_dim": 2, "width": 6}, "")):
        try:
            InterpretedEstimator(program, config)
            found = ""
        except SymflopsError as error:
            found = str(error)
        assert told in found and bool(told) == bool(found), config
