"""A live module without a config: what its parameters cannot tell is refused, and the way out works."""

from __future__ import annotations

import textwrap

import pytest
import torch

import symflops
from symflops.training.introspect.tree import LiveModelError

SPEC = """
language: 2
name: windowed
reference: windowed:Windowed
sizes:
  D: {key: width, default: 8}
  H: {key: heads, default: 2}
  L: {key: layers, default: 1}
  W: {key: window, default: 4, doc: keys that a query sees}
  causal: {key: causal, default: true}
streams: {text: [x]}
inputs: {x: {stream: text, width: D, layout: "b x c"}}
graph:
  - layers:
      repeat: L
      graph:
        - q: {op: linear, from: x, width: D, to: q}
        - k: {op: linear, from: x, width: D, to: k}
        - v: {op: linear, from: x, width: D, to: v}
        - {op: attention, heads: H, query: q, key: k, value: v, local: W, sparse: true, when: not causal, to: x}
        - {op: attention, heads: H, query: q, key: k, value: v, sliding: W, sparse: true, when: causal, to: x}
outputs: [x]
"""


class Windowed(torch.nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.ModuleDict({name: torch.nn.Linear(width, width) for name in "qkv"}) for _ in range(layers))


@pytest.fixture
def spec(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "specs" / "own").mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "specs" / "own" / "windowed.yaml").write_text(textwrap.dedent(SPEC))
    return "windowed"


def test_sizes_that_no_parameter_tells_are_asked_for(spec):
    module = Windowed(8, 1)
    with pytest.raises(LiveModelError, match="no parameter tells 'window', 'causal'.*give the module a 'config'"):
        symflops.of_model(module, spec=spec)
    with pytest.warns(UserWarning, match="no parameter tells"):
        symflops.of_model(module, spec=spec, check="warn")
    module.config = {"window": 2, "causal": False}
    found = symflops.of_model(module, spec=spec)
    assert found.forward(found.moments(text=[6])) == 2 * 6 * 8 * 24 + 4 * 8 * (3 + 4 + 5 + 5 + 4 + 3)


def test_sizes_that_parameters_tell_are_compared(spec):
    with pytest.raises(LiveModelError, match="is not what 'windowed' describes"):
        symflops.of_model(Windowed(8, 2), spec=spec)
