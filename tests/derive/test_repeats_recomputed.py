"""A loop inside a recomputed group costs the same as its iterations written out."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from symflops.api import Model
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.regime import Recompute, Regime
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError
from tests.sampling import sampled

HEAD = """language: 2
name: inner
sizes: {D: width, L: layers, N: steps}
streams: {text: [x]}
inputs:
  v: {stream: text, width: D}
graph:
  - first: {op: linear, from: v, width: D, bias: false, to: h}
  - layers:
      repeat: L
      graph:
        - before: {op: linear, from: h, width: D, bias: false, to: u}
        - start: {op: detach, from: u, to: s}
"""
STEP = """- step: {op: matmul, from: [u, s], dims: [tokens, D], width: D, to: m}
- step: {op: linear, from: m, width: D, bias: false, weight: inside, shared: true, add_to: s}
"""
TAIL = """        - after: {op: linear, from: s, width: D, bias: false, add_to: h}
  - last: {op: linear, from: h, width: D, bias: false, to: h}
outputs: [h]
"""
NAMES = ("first.weight", "layers.*.before.weight", "layers.*.inside", "layers.*.after.weight", "last.weight")
GROUPS = ("layers.*", "layers.0", "layers.*.before")
FLAGS = ((True, False), (False, False), (True, True))
"""Whether recomputation stops early, and whether it is reentrant."""


def indented(text: str, spaces: int) -> str:
    return "".join(f"{' ' * spaces}{line}\n" for line in text.splitlines())


@cache
def model(written: int | None) -> Model:
    """The inner repeat with a symbol for its count, or its iterations written out."""
    if written is None:
        body = indented("- repeat: N\n  shared: true\n  graph:\n", 8) + indented(STEP, 12)
    else:
        body = indented(STEP, 8) * written
    text = HEAD + body + TAIL
    return Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", text), lambda name: None))


def figures(written: int | None, steps: int, regime: Regime) -> tuple[int, int, int]:
    config = {"width": 5, "layers": 3, "steps": steps}
    one = model(written)
    estimator = InterpretedEstimator(one.program([regime], ["torch"], config), config, regime="drawn", convention="torch")
    moments = estimator.moments(text=[3, 4])
    return estimator.forward(moments), estimator.backward(moments), estimator.recomputed(moments)


@pytest.mark.parametrize(("group", "early_stop", "reentrant"), sampled([(group, *flags) for group in GROUPS for flags in FLAGS], 12, 4))
def test_iterations_one_by_one(group: str, early_stop: bool, reentrant: bool) -> None:
    recompute = Recompute((group,), early_stop=early_stop, reentrant=reentrant)
    seen = set()
    for count in (1, 2):
        for train in (*combinations(NAMES, count), ("*",)):
            regime = Regime("drawn", train=train, recompute=recompute)
            for steps in (1, 2, 3) if "layers.*.inside" in train else (0, 1, 2, 3):  # no step, no parameter of it
                found = figures(None, steps, regime)
                assert found == figures(steps, steps, regime), (train, steps)
                seen.add(found)
    assert len(seen) > 8


def test_a_recomputation_that_may_stop_inside_is_refused() -> None:
    text = (HEAD + indented("- repeat: N\n  shared: true\n  graph:\n", 8) + indented(STEP, 12)
            + TAIL.replace("after: {op: linear, from: s, width: D, bias: false, add_to: h}", "sum: {op: add, from: [h, s], to: h}"))  # fmt: skip
    one = Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", text), lambda name: None))
    with pytest.raises(SpecError, match="may stop inside the repeat"):
        one.derive(Regime("drawn", recompute=Recompute(("layers.*",))))
    one.derive(Regime("drawn", recompute=Recompute(("layers.*",), early_stop=False)))
