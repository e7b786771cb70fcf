"""A module that a repeat calls again and again exists once, even if no iteration calls it; modules of iterations exist with them."""

from __future__ import annotations

import pytest

from symflops.compiler import Request, compile_spec
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.support.findings import Source
from tests import shipped

SPEC = """language: 2
name: again
sizes: {{D: width, L: layers, N: groups}}
streams: {{text: [x]}}
inputs: {{h: {{stream: text, width: D}}}}
graph:
  - group:
      repeat: N
      index: g
      graph:
        - {name}{{repeat: (g*L + L + N - 1)//N - (g*L + N - 1)//N, {shared}graph: [layer: {{op: linear, from: h, width: D, bias: false, to: h}}]}}
outputs: [h]
"""


@pytest.mark.parametrize(("layers", "groups"), [(0, 1), (1, 1), (5, 1), (4, 2), (4, 6), (0, 3)])
@pytest.mark.parametrize("shared", [True, False])
def test_modules_without_a_call(layers, groups, shared):
    text = SPEC.format(name="" if shared else "layers: ", shared="shared: true, " if shared else "")
    config = {"width": 8, "layers": layers, "groups": groups}
    made = compile_spec(Source("again.yaml", text), Request(config=config))
    model = InterpretedEstimator(made.program, config, regime="", convention="")
    assert model.parameters == 64 * (groups if shared else layers)
    assert model.forward(model.moments(text=[3, 2])) == 2 * 5 * 64 * layers


def test_albert_has_groups_that_no_layer_uses():
    """The figures are those of the real class."""
    config = {
        "architectures": ["AlbertForMaskedLM"], "embedding_size": 20, "hidden_size": 48, "inner_group_num": 2, "intermediate_size": 80,
        "max_position_embeddings": 33, "num_attention_heads": 4, "num_hidden_layers": 4, "tie_word_embeddings": False, "vocab_size": 67,
    }  # fmt: skip
    model = shipped.load("albert_masked_lm").estimator({**config, "num_hidden_groups": 6}, "full", "torch")
    moments = model.moments(text=[17])
    assert (model.parameters, model.forward(moments), model.backward(moments)) == (214_478, 5_150_456, 10_300_912)
