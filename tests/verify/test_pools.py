"""What autograd keeps of a pool decides how far a group that ends with one is recomputed: held against PyTorch's own pools."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import load, regime_of
from symflops.verify.bench import render_regime, verify_regime
from symflops.verify.cases import cases_of

MODULE = """import torch
from torch import nn
from torch.nn import functional as F

class Inner(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.f = nn.Conv2d(width, width, 1)

    def forward(self, x):
        x = self.f(x)
        return POOL

class Pooled(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.g, self.inner = nn.Conv2d(width, width, 1), Inner(width)

    def forward(self, x):
        return self.inner(self.g(x))
"""
SPEC = """language: 2
name: pooled
reference: pooled:Pooled
sizes: {D: {key: width, default: 6}}
streams: {v: [h, w], sample: []}
inputs: {x: {stream: v, width: D, layout: b c h w}}
graph:
  - g: {op: conv, from: x, width: D, kernel: [1, 1], to: x}
  - inner.f: {op: conv, from: x, width: D, kernel: [1, 1], to: x}
  - inner: {op: pool, from: x, ROWS, to: x}
outputs: [x]
"""
HALVES = "axes: {h: h//2, w: w//2}"
POOLS = {
    "F.avg_pool2d(x, 2)": HALVES, "F.max_pool2d(x, 2)": HALVES, "F.adaptive_avg_pool2d(x, (4, 3))": HALVES,
    "F.lp_pool2d(x, 2.0, 2)": HALVES, "F.avg_pool2d(x, (1, 2))": "axes: {w: w//2}", "F.max_pool2d(x, 2) ": "stream: {h: h//2, w: w//2}",
    "x.mean((2, 3))": "stream: sample", "x.mean((2, 3), keepdim=True)": "axes: {h: 1, w: 1}", "F.adaptive_avg_pool2d(x, 1)": "axes: {h: 1, w: 1}",
    "x.sum(-1)": "stream: {h: h}",
}  # fmt: skip


@pytest.mark.parametrize("regime", ["full:groups=inner", "full:groups=inner,early_stop=false", "full:train=g.*,groups=inner"])
@pytest.mark.parametrize("pool", POOLS)
def test_a_group_that_ends_with_a_pool_is_recomputed_as_pytorch_does(tmp_path: Path, pool: str, regime: str) -> None:
    (tmp_path / "pooled.py").write_text(MODULE.replace("POOL", pool), "utf-8")
    (tmp_path / "pooled.yaml").write_text(SPEC.replace("ROWS", POOLS[pool]), "utf-8")
    (tmp_path / "pooled.cases.yaml").write_text("- {config: {width: 5}, batch: {v: [[8, 6]]}}\n", "utf-8")
    model = load(tmp_path / "pooled.yaml")
    report = verify_regime(model, cases_of(model.file)[0], regime_of(regime))
    assert report.exact, render_regime(report)
