"""Reentrant checkpoints beside modules under a condition."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from symflops.api import Model
from symflops.ir.regime import Recompute, Regime
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source

TEXT = """language: 2
name: between
sizes: {D: width, there: {key: between, default: true}}
streams: {text: [x]}
inputs:
  h: {stream: text, width: D}
graph:
  - first: {op: linear, from: h, width: D, bias: false, to: h}
  - left.0: {op: linear, from: h, width: D, bias: false, to: h}
  - right.0: {op: linear, from: h, width: D, bias: false, when: there, to: h}
  - left.1: {op: linear, from: h, width: D, bias: false, when: there, to: h}
  - last: {op: linear, from: h, width: D, bias: false, to: h}
outputs: [h]
"""
NAMES = ("first", "left.0", "right.0", "left.1", "last")
WITH, WITHOUT = TEXT.replace("when: there, ", ""), "\n".join(line for line in TEXT.split("\n") if "when: there" not in line)


def figures(text: str, config: dict, regime: Regime) -> tuple[int, int, int]:
    model = Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", text), lambda name: None))
    estimator = model.estimator(config, regime, "torch")
    moments = estimator.moments(text=[3])
    return estimator.forward(moments), estimator.backward(moments), estimator.recomputed(moments)


@pytest.mark.parametrize("groups", [("left.*",), ("right.*",), ("left.*", "right.*"), ("first", "left.*", "right.*", "last")])
def test_a_condition_and_what_it_decides_are_the_same(groups):
    for name, reentrant in product((*NAMES, "*"), (True, False)):
        regime = Regime("drawn", train=(f"{name}.weight" if name != "*" else name,), recompute=Recompute(groups, reentrant=reentrant))
        assert figures(TEXT, {"width": 5, "between": True}, regime) == figures(WITH, {"width": 5}, regime), (name, reentrant)
        if name in ("right.0", "left.1") or "right.*" in groups:
            continue
        assert figures(TEXT, {"width": 5, "between": False}, regime) == figures(WITHOUT, {"width": 5}, regime), (name, reentrant)
