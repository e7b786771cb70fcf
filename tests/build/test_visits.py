"""A module that has its place in one block and is called from elsewhere: who runs while it does, and what is recomputed."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import Model, load
from symflops.ir.regime import Recompute, Regime
from symflops.read.read import read
from symflops.read.spec_files import SpecFile, find_spec
from symflops.support.findings import Source
from symflops.verify.bench import Choice
from symflops.verify.cases import cases_of
from symflops.verify.running import rolled_up
from tests.verify.random_regimes import RandomBench

SPEC = """language: 2
name: visited
sizes: {D: width, L: layers}
streams: {text: [x]}
inputs:
  t: {stream: text, width: D}
blocks:
  embedding:
    inputs: [x]
    outputs: [y]
    graph:
      - one: {op: linear, from: x, width: D, bias: false, to: h}
      - act: {op: mul, from: h, to: h}
      - two: {op: linear, from: h, width: 2*D, bias: false, to: y}
graph:
  - layers.0:
      graph:
        - emb: {block: embedding, from: t, to: v}
        - out: {op: linear, from: v, width: D, bias: false, to: t}
  - head:
      graph:
        - /layers.0.emb: {block: embedding, from: t, shared: true, to: v}
        - proj: {op: linear, from: v, width: D, bias: false, to: o}
        - /layers.0.out: {op: linear, from: v, width: D, bias: false, shared: true, to: p}
        - sum: {op: add, from: [o, p], to: o}
outputs: [o]
"""
UNIT = 2 * 3 * 3 * 5  # one product of 5 rows with a 3 x 3 weight; the others are twice that


def model() -> Model:
    return Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", SPEC), lambda name: None))


def test_a_caller_has_the_work_and_not_the_holder() -> None:
    estimator = model().estimator({"width": 3, "layers": 1}, "full", "torch")
    moments = estimator.moments(text=[5])
    assert rolled_up(estimator.running(moments)) == {
        "layers": 5 * UNIT, "layers.*": 5 * UNIT, "layers.*.emb": 6 * UNIT, "layers.*.emb.one": 2 * UNIT,
        "layers.*.emb.two": 4 * UNIT, "layers.*.out": 4 * UNIT, "head": 7 * UNIT, "head.proj": 2 * UNIT,
    }  # fmt: skip
    assert sum(flops.forward for flops in estimator.by_module(moments).values()) == estimator.forward(moments) == 12 * UNIT


@pytest.mark.parametrize(
    ("groups", "units"),
    [
        (("layers.*",), 5),  # the block alone: what the head calls is no part of its run
        (("head",), 7),
        (("layers.*.emb",), 6),  # both of its runs
        (("layers.*", "head"), 12),
        (("layers.*.out",), 4),
    ],
)
def test_recomputation_is_of_what_runs_in_the_group(groups: tuple[str, ...], units: int) -> None:
    regime = Regime("drawn", recompute=Recompute(groups, early_stop=False))
    estimator = model().estimator({"width": 3, "layers": 1}, regime, "torch")
    assert estimator.recomputed(estimator.moments(text=[5])) == units * UNIT


@pytest.mark.parametrize("group", ["transformer_blocks.*", "transformer_blocks.*.norm1", "transformer_blocks.*.norm1.emb"])
@pytest.mark.parametrize(("early_stop", "reentrant"), [(True, False), (False, False), (True, True)])
def test_the_head_of_dit_calls_into_the_first_block(group: str, early_stop: bool, reentrant: bool) -> None:
    """As PyTorch does it."""
    bench = RandomBench(load("dit"), cases_of(find_spec("dit"))[1])
    choice = Choice(("*",), (), (), 4, Recompute((group,), early_stop=early_stop, reentrant=reentrant))
    outcome = bench.check(choice)
    assert outcome.exact, outcome
