"""A module that is called twice is recomputed call by call, as PyTorch's checkpoint does; the real module is the witness."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import load, regime_of
from symflops.cli.main import main
from symflops.verify.bench import RegimeReport, verify_regime
from symflops.verify.cases import cases_of
from tests.sampling import sampled

MODULE = '''
from torch import nn

class Towers(nn.Module):
    def __init__(self, width=8, layers=2):
        super().__init__()
        self.embed = nn.Linear(width, 6, bias=False)
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6)) for _ in range(layers))
        self.out = nn.Linear(6, 4)

    def tower(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.out(x)

    def forward(self, a, b):
        return self.tower(a), self.out(self.embed(b)), self.tower(b)
'''
SPEC = """language: 2
name: towers
reference: towers:Towers
sizes: {D: {key: width, default: 8}, L: {key: layers, default: 2}}
streams: {text: [x], prompt: [y]}
inputs:
  a: {stream: text, width: D, layout: b x w}
  b: {stream: prompt, width: D, layout: b y w}
blocks:
  tower:
    inputs: [x]
    outputs: [x]
    graph:
      - embed: {op: linear, from: x, width: 6, bias: false, to: x}
      - layers:
          repeat: L
          graph:
            - "0": {op: linear, from: x, width: 6, to: y}
            - "1": {op: act, from: y, to: y}
            - "2": {op: linear, from: y, width: 6, add_to: x}
      - out: {op: linear, from: x, width: 4, to: x}
graph:
  - {block: tower, from: a, to: p}
  - embed: {op: linear, from: b, width: 6, bias: false, shared: true, to: h}
  - out: {op: linear, from: h, width: 4, shared: true, to: q}
  - {block: tower, from: b, shared: true, to: r}
outputs: [p, q, r]
"""
CASES = """- config: {width: 8, layers: 2}
  batch: {text: [5, 5], prompt: [7, 7]}
- config: {width: 6, layers: 3}
  batch: {text: [4], prompt: [9]}
"""
GROUPS = ["embed", "out", "layers.*", "embed|out", "layers.*.0|layers.*.2", "layers.1|embed"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("towers")
    (folder / "towers.py").write_text(MODULE)
    (folder / "towers.cases.yaml").write_text(CASES)
    (folder / "towers.yaml").write_text(SPEC)
    return folder / "towers.yaml"


def reports(path: Path, regime: str) -> list[RegimeReport]:
    model = load(str(path))
    return [verify_regime(model, case, regime_of(regime)) for case in cases_of(model.file)]


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("more", sampled(["", ",early_stop=false", ",reentrant=true", ",train=out.*", ",train=layers.*.2.bias|embed.*"], 3, 1))
def test_each_call_is_recomputed_alone(path: Path, groups: str, more: str) -> None:
    for report in reports(path, f"full:groups={groups}{more}"):
        assert report.exact, report


def test_a_group_that_differs_is_named(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The spec puts an operator into the module that the model runs outside of it."""
    text = SPEC.replace('"0": {op: linear, from: x, width: 6, to: y}', '"0": {op: linear, from: x, width: 6, to: y}\n            - "0": {op: act, from: y, to: y}')
    for name, content in (("towers.py", MODULE), ("towers.cases.yaml", CASES), ("towers.yaml", text)):
        (tmp_path / name).write_text(content)
    assert main(["verify", str(tmp_path / "towers.yaml"), "--regime", "full:groups=embed|layers.*.0"]) == 1
    assert "'layers.0.0' alone differs by +" in capsys.readouterr().out


def test_without_cases_nothing_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "towers.py").write_text(MODULE)
    (tmp_path / "towers.yaml").write_text(SPEC)
    for more, code in ((), 0), (("--regime", "full"), 1):  # without a regime its skeleton is compared
        assert main(["verify", str(tmp_path / "towers.yaml"), *more]) == code
        assert "there is no towers.cases.yaml beside it" in capsys.readouterr().err


def test_a_length_of_one_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = """
import torch

class Outer(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.one = torch.nn.Linear(width, 4, bias=False)

    def forward(self, a):
        h = self.one(a)
        return torch.einsum("bxd,bxe->bde", h, h)
"""
    spec = """language: 2
name: outer
reference: outer:Outer
sizes: {D: {key: width, default: 8}}
streams: {text: [x]}
inputs: {a: {stream: text, width: D, layout: b x w}}
graph:
  - one: {op: linear, from: a, width: 4, bias: false, to: h}
  - {op: matmul, from: [h, h], dims: [tokens, 4, 4], stream: {}, width: 16, to: y}
outputs: [y]
"""
    cases = "- {config: {width: 8}, batch: {text: [1]}}\n- {config: {width: 8}, batch: {text: [3]}}\n"
    for name, content in (("outer.py", module), ("outer.cases.yaml", cases), ("outer.yaml", spec)):
        (tmp_path / name).write_text(content)
    assert main(["verify", str(tmp_path / "outer.yaml")]) == 1
    out = capsys.readouterr().out
    assert out.count("a length is 1 here") == 1 and "outer.cases.yaml:2: outer:Outer" in out and ": exact: 32 parameters" in out
