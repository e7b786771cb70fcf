"""Activations with parameters of their own, against torch and transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers.activations import ACT2CLS, ACT2FN

from symflops.api import Model
from symflops.catalog.library import SpecFile
from symflops.diagnostics.findings import Source
from symflops.frontend.read import read
from symflops.ops.elementwise import ACTIVATIONS
from symflops.runtime.interpreted import InterpretedEstimator

SPEC = """
name: chosen
sizes:
  word: {key: hidden_act, default: "'relu'"}
  plain: {key: plain, default: false}
streams: {text: [x]}
inputs: {x: {stream: text, width: 4}}
graph:
  - act: {op: mul, from: x, act: "'relu' if plain else word", to: y}
outputs: [y]
"""


@pytest.fixture(scope="module")
def parameters():
    file = SpecFile(Path("."), Path("chosen.yaml"), "chosen.yaml")
    program = Model(file, read(Source("chosen.yaml", SPEC), lambda name: None)).program(["full"], ["symflops"], {})
    return lambda **config: InterpretedEstimator(program, config, regime="full", convention="symflops").parameters


@pytest.mark.parametrize("word", sorted(ACT2CLS))
def test_an_activation_has_the_parameters_of_its_class(word):
    real = getattr(ACT2FN[word], "named_parameters", lambda: ())()
    assert [(name, tuple(value.shape)) for name, value in real] == [(name, (1,)) for name in ACTIVATIONS.get(word, ())]


def test_a_config_chooses_the_activation(parameters):
    assert [parameters(hidden_act=word) for word in ("relu", "prelu", "xielu")] == [0, 1, 2]
    assert parameters() == 0
    assert parameters(hidden_act="prelu", plain=True) == 0
