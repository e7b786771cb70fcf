"""Activations with parameters of their own, against torch and transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers.activations import ACT2CLS, ACT2FN

from symflops.api import Model
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ops.elementwise import LEARNED
from symflops.read.read import read
from symflops.read.regimes import read_regime
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source
from tests.shipped import load

SPEC = """
language: 2
name: chosen
sizes:
  word: {key: hidden_act, default: "'relu'"}
  plain: {key: plain, default: false}
streams: {text: [x]}
inputs: {x: {stream: text, width: 4}}
graph:
  - act: {op: act, from: x, of: "'relu' if plain else word", to: y}
outputs: [y]
"""

EXPERTS = """
language: 2
name: chosen
sizes:
  word: {key: hidden_act, default: "'relu'"}
  E: {key: experts, default: 5}
streams: {text: [x]}
inputs: {x: {stream: text, width: 4}}
graph:
  - experts: {experts: E, choose: 2, from: x, to: y, graph: [act: {op: act, from: x, of: word, to: y}]}
outputs: [y]
"""


def parameters_of(text):
    file = SpecFile(Path("."), Path("chosen.yaml"), "chosen.yaml")
    program = Model(file, read(Source("chosen.yaml", text), lambda name: None)).program(["full"], ["symflops"], {})
    return lambda **config: InterpretedEstimator(program, config, regime="full", convention="symflops").parameters


@pytest.fixture(scope="module")
def parameters():
    return parameters_of(SPEC)


@pytest.mark.parametrize("word", sorted(ACT2CLS))
def test_an_activation_has_the_parameters_of_its_class(word):
    real = getattr(ACT2FN[word], "named_parameters", lambda: ())()
    assert [(name, tuple(value.shape)) for name, value in real] == [(name, (1,)) for name in LEARNED.get(word, ())]


def test_a_config_chooses_the_activation(parameters):
    assert [parameters(hidden_act=word) for word in ("relu", "prelu", "xielu")] == [0, 1, 2]
    assert parameters() == 0
    assert parameters(hidden_act="prelu", plain=True) == 0


def test_experts_call_one_activation():
    parameters = parameters_of(EXPERTS)
    assert [parameters(hidden_act=word) for word in ("relu", "prelu", "xielu")] == [0, 1, 2]


def test_an_adapter_of_whole_layers_skips_activations():
    """PEFT's patterns name linears; an activation among them has nothing to adapt, also where it has parameters."""
    regime = read_regime(Source("mine.yaml", 'name: mine\ntrain: []\nadapters: [{targets: ["model.layers.*.mlp.*"], rank: 4}]\n'))
    model = load("llama")
    plain, learned = (model.estimator({"hidden_act": word}, regime, "symflops") for word in ("silu", "prelu"))
    assert plain.trainable_parameters == learned.trainable_parameters > 0
    assert learned.parameters == plain.parameters + 32
