"""``push``, ``pop`` and ``gather``: values for use across iterations."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import Model
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.regime import Regime
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError

HEAD = """language: 2
name: stacked
sizes: {D: width, L: layers, at: {key: at, default: "[]"}}
streams: {text: [x]}
inputs:
  t: {stream: text, width: D}
graph:
  - first: {op: linear, from: t, width: D, bias: false, to: h}
"""
SKIPS = HEAD + """  - down:
      repeat: L
      graph:
        - to: {op: linear, from: h, width: D, bias: false, to: h}
        - skip: {op: push, from: h, stack: skips}
  - up:
      repeat: L
      graph:
        - skip: {op: pop, stack: skips, to: s}
        - both: {op: concat, from: [h, s], to: c}
        - to: {op: linear, from: c, width: D, bias: false, to: h}
outputs: [h]
"""
HINTS = HEAD + """  - side:
      repeat: at
      index: i
      graph:
        - to: {op: linear, from: h, width: D, bias: false, to: g}
        - hint: {op: push, from: g, stack: hints}
  - main:
      repeat: L
      index: i
      graph:
        - hint: {op: pop, stack: hints, take: first, to: g, when: i in at}
        - add: {op: add, from: [h, g], to: h, when: i in at}
        - to: {op: linear, from: h, width: D, bias: false, to: h}
outputs: [h]
"""


def figures(text: str, config: dict, train: tuple[str, ...] = ("*",)) -> tuple[int, int]:
    model = Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", text), lambda name: None))
    program = model.program([Regime("drawn", train=train)], ["torch"], config)
    estimator = InterpretedEstimator(program, config, regime="drawn", convention="torch")
    moments = estimator.moments(text=[3, 4])
    return estimator.forward(moments), estimator.backward(moments)


def codes(text: str, config: dict) -> set[str]:
    with pytest.raises(SpecError) as found:
        figures(text, config)
    return {diagnostic.code for diagnostic in found.value.diagnostics}


UNIT = 2 * 5 * 5 * 7  # one linear of width 5 on seven tokens


@pytest.mark.parametrize("layers", [0, 1, 2, 4])
def test_the_last_skip_comes_first(layers):
    config = {"width": 5, "layers": layers}
    assert figures(SKIPS, config) == ((1 + 3 * layers) * UNIT, (1 + 6 * layers) * UNIT)
    for trained in range(layers):  # its own gradient, those of what is below it, and of every layer on the way up
        below = layers - 1 - trained
        assert figures(SKIPS, config, (f"down.{trained}.to.weight",))[1] == (1 + below + 2 * layers) * UNIT
    if layers:  # what comes last on the way up reads the first skip
        assert figures(SKIPS, config, (f"up.{layers - 1}.to.weight",))[1] == 2 * UNIT


def test_hints_come_in_the_order_in_which_they_were_put():
    config = {"width": 5, "layers": 4, "at": [0, 2]}
    assert figures(HINTS, config) == ((1 + 2 + 4) * UNIT, (1 + 2 * 6) * UNIT)
    assert figures(HINTS, config, ("side.0.to.weight",))[1] == (1 + 4) * UNIT
    assert figures(HINTS, config, ("side.1.to.weight",))[1] == (1 + 2) * UNIT


def test_gather_depends_on_all():
    text = SKIPS.replace("  - up:\n", "  - all: {op: gather, stack: skips, like: h, to: z}\n  - end: {op: linear, from: z, width: 1, bias: false, to: h}\n  - up:\n")
    head, _, tail = text.partition("  - up:")
    text = head + tail[tail.index("outputs") :]
    config = {"width": 5, "layers": 3}
    assert figures(text, config)[0] == 4 * UNIT + UNIT // 5
    assert figures(text, config, ("down.2.to.weight",))[1] == UNIT + UNIT // 5
    assert figures(text, config, ("down.0.to.weight",))[1] == 3 * UNIT + UNIT // 5


def test_mistakes():
    config = {"width": 5, "layers": 2, "at": [0]}
    assert codes(SKIPS.replace("- skip: {op: pop, stack: skips, to: s}", "- skip: {op: pop, stack: other, to: s}"), config) == {"empty-stack", "stack-left"}
    assert codes(SKIPS.replace("  - up:\n      repeat: L", "  - up:\n      repeat: 1"), config) == {"stack-left"}
    assert codes(SKIPS.replace("op: pop, stack", "op: pop, take: middle, stack"), config) == {"unknown-word"}


def test_without_a_config_the_loops_stay_closed():
    model = Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", SKIPS), lambda name: None))
    program = model.program()
    assert program.fixed == () and program.requirements == ()  # both repeats have L iterations
