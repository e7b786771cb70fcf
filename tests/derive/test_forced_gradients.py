"""A gradient that a regime forces begins at what a module returns, as with a hook on a real module."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from symflops.api import Model
from symflops.ir.regime import Recompute, Regime
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source

TEXT = """language: 2
name: tower
sizes: {D: width, L: layers, tailed: {key: tailed, default: false}}
streams: {text: [x]}
inputs:
  h: {stream: text, width: D}
graph:
  - before: {op: linear, from: h, width: D, bias: false, to: h}
  - tower:
      graph:
        - first: {op: linear, from: h, width: D, bias: false, to: h}
        - skip: {op: push, from: h, stack: skips}
        - down:
            repeat: L
            graph:
              - one: {op: linear, from: h, width: D, bias: false, add_to: h}
              - two: {op: linear, from: h, width: D, bias: false, add_to: h}
              - skip: {op: push, from: h, stack: skips}
        - up:
            repeat: L
            graph:
              - skip: {op: pop, stack: skips, to: s}
              - one: {op: linear, from: s, width: D, bias: false, add_to: h}
        - skip: {op: pop, stack: skips, to: s}
        - sum: {op: add, from: [h, s], to: h}
        - tail: {op: linear, from: h, width: D, bias: false, when: tailed, to: h}
  - after: {op: linear, from: h, width: D, bias: false, to: h}
outputs: [h]
"""
MODEL = Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", TEXT), lambda name: None))
WIDTH, TOKENS = 5, 3
FORCED = ("before", "tower", "tower.first", "tower.down.*", "tower.down.*.one", "tower.up.*", "tower.down.0", "tower.up.-1", "tower.tail")


class Down(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = linear(), linear()

    def forward(self, h):
        h = h + self.one(h)
        return h + self.two(h)


class Up(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = linear()

    def forward(self, h, s):
        return h + self.one(s)


class Tower(nn.Module):
    def __init__(self, layers: int, tailed: bool, reentrant: bool) -> None:
        super().__init__()
        self.first = linear()
        self.down = nn.ModuleList(Down() for _ in range(layers))
        self.up = nn.ModuleList(Up() for _ in range(layers))
        self.tail = linear() if tailed else None
        self.reentrant = reentrant

    def forward(self, h):
        h = self.first(h)
        skips = [h]
        for down in self.down:
            h = checkpoint(down, h, use_reentrant=True) if self.reentrant else down(h)
            skips.append(h)
        for up in self.up:
            h = up(h, skips.pop())
        h = h + skips.pop()
        return self.tail(h) if self.tail else h


def linear() -> nn.Linear:
    return nn.Linear(WIDTH, WIDTH, bias=False)


def measured(layers: int, tailed: bool, forced: str, reentrant: bool) -> int:
    """FLOPs of the backward pass, recomputation included, of a frozen module with a hook on ``forced``."""
    whole = nn.ModuleDict({"before": linear(), "tower": Tower(layers, tailed, reentrant), "after": linear()}).requires_grad_(False)
    for name, module in whole.named_modules():
        if fnmatchcase(name, forced.replace("-1", str(layers - 1))):
            module.register_forward_hook(lambda _, __, result: result.requires_grad_())
    result = whole["after"](whole["tower"](whole["before"](torch.ones(TOKENS, WIDTH))))
    with FlopCounterMode(display=False) as counter:
        if result.requires_grad:
            result.sum().backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("forced", FORCED)
def test_a_hook_on_a_real_module(forced: str) -> None:
    for layers, tailed, reentrant in product((0, 1, 3), (False, True), (False, True)):
        case = (layers, tailed, reentrant)
        regime = Regime("forced", train=(), force_grad=(forced,), recompute=Recompute(("tower.down.*",), reentrant=True) if reentrant else None)
        if (layers == 0 and (reentrant or "down" in forced or "up" in forced)) or (forced == "tower.tail" and not tailed):
            continue  # the pattern matches nothing
        estimator = MODEL.estimator({"width": WIDTH, "layers": layers, "tailed": tailed}, regime, "torch")
        moments = estimator.moments(text=[TOKENS])
        assert estimator.backward(moments) + estimator.recomputed(moments) == measured(layers, tailed, forced, reentrant), case
