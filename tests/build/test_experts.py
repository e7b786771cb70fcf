"""Routed experts: parameters, rows, gradients and mistakes, against numbers computed by hand."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from symflops.api import load, regime_of
from symflops.build.build import build
from symflops.evaluate.parameters import instances_of
from symflops.ir.regime import Regime
from symflops.read.read import read
from symflops.support.findings import Source, SpecError

HEAD = """language: 2
name: small
sizes: {D: width, E: experts, k: chosen, M: hidden, L: {key: layers, default: 1}, flag: {key: flag, default: false}}
streams: {text: [x], image: [z], sample: []}
inputs:
  t: {stream: text, width: D}
  v: {stream: image, width: 2}
  s: {stream: sample, width: 2}
graph:
"""
ROUTER = "- mlp.gate: {op: linear, from: t, width: E, bias: false, to: scores}"
BODY = """
      - {op: linear, from: x, width: M, weight: up, bias_name: up_bias, to: h}
      - act: {op: mul, from: h, to: h}
      - {op: linear, from: h, width: D, bias: false, weight: down, to: y}"""
CONFIG = {"width": 3, "experts": 5, "chosen": 2, "hidden": 4}
BATCH = {"text": [6, 1], "image": [2, 2]}
ROWS = 7
GATE, UP, DOWN = 2 * ROWS * 3 * 5, 2 * ROWS * 2 * 3 * 4, 2 * ROWS * 2 * 4 * 3
SPELLED = count()


def experts(fields: str = "choose: k, weights: scores, to: o", body: str = BODY) -> str:
    """The entry of experts with these fields."""
    lines = "\n    ".join(["experts: E", "from: t", *fields.split(", ")])
    return f"- mlp.experts:\n    {lines}\n    graph:{body}"


def spec(*entries: str, head: str = HEAD) -> str:
    lines = "\n".join(entries).splitlines()
    return head + "".join(f"  {line}\n" for line in lines) + "outputs: [o]\n"


def figures(text: str, folder: Path, train: tuple[str, ...] = ("*",), **config: Any) -> tuple[int, int, int]:
    """Parameters, forward and backward."""
    path = folder / f"small{next(SPELLED)}.yaml"
    path.write_text(text)
    estimator = load(path).estimator({**CONFIG, **config}, Regime("r", train=train), "torch")
    moments = estimator.moments(**BATCH)
    return estimator.parameters, estimator.forward(moments), estimator.backward(moments)


def load_program(text: str, folder: Path) -> Any:
    path = folder / f"small{next(SPELLED)}.yaml"
    path.write_text(text)
    return load(path).program(["full"], ["torch"])


def shapes(text: str, folder: Path, **config: Any) -> dict[str, tuple[int, ...]]:
    path = folder / f"small{next(SPELLED)}.yaml"
    path.write_text(text)
    estimator = load(path).estimator({**CONFIG, **config})
    return instances_of(estimator.program, estimator.sizes)


def findings(text: str) -> list[tuple[str, str]]:
    try:
        build(read(Source("small.yaml", text), lambda name: None))
    except SpecError as error:
        return [(item.code, item.message) for item in error.diagnostics]
    return []


def test_parameters_have_a_leading_dimension(tmp_path: Path) -> None:
    assert shapes(spec(ROUTER, experts()), tmp_path) == {
        "mlp.gate.weight": (5, 3),
        "mlp.experts.up": (5, 4, 3),
        "mlp.experts.up_bias": (5, 4),
        "mlp.experts.down": (5, 3, 4),
    }


def test_work_of_the_chosen_rows_stands_under_the_module(tmp_path: Path) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(spec(ROUTER, experts()))
    estimator = load(path).estimator(CONFIG, "full", "torch")
    found = estimator.by_module(estimator.moments(**BATCH))
    assert {name: flops.forward for name, flops in found.items()} == {"mlp.gate": GATE, "mlp.experts": UP + DOWN}


@pytest.mark.parametrize(
    ("train", "backward"),
    [
        (("*",), GATE + UP + 2 * DOWN),  # the input needs no gradient
        (("mlp.gate.*",), GATE),  # through the weights of the sum alone
        (("mlp.experts.*",), UP + 2 * DOWN),
        (("mlp.experts.down",), DOWN),
        ((), 0),
    ],
)
def test_gradients(train: tuple[str, ...], backward: int, tmp_path: Path) -> None:
    parameters = 5 * 3 + 5 * (4 * 3 + 4) + 5 * 3 * 4
    assert figures(spec(ROUTER, experts()), tmp_path, train) == (parameters, GATE + UP + DOWN, backward)


def test_without_weights_the_router_gets_no_gradient(tmp_path: Path) -> None:
    text = spec(ROUTER, experts("choose: k, to: o"))
    assert figures(text, tmp_path, ("mlp.gate.*",))[2] == 0
    assert figures(text, tmp_path)[2] == UP + 2 * DOWN


def test_experts_that_are_not_chosen_all_run(tmp_path: Path) -> None:
    text = spec(ROUTER, experts("weights: scores, to: o"))
    assert figures(text, tmp_path)[1] == GATE + (UP + DOWN) * 5 // 2


def test_no_grad(tmp_path: Path) -> None:
    text = spec(ROUTER, experts("choose: k, weights: scores, no_grad: true, to: o"))
    parameters, forward, backward = figures(text, tmp_path)
    assert (parameters, forward, backward) == (155, GATE + UP + DOWN, 0)


@pytest.mark.parametrize("flag", [False, True])
def test_no_grad_under_a_condition(flag: bool, tmp_path: Path) -> None:
    """One closed form for both; the parameters are there once."""
    text = spec(ROUTER, experts("choose: k, weights: scores, no_grad: flag, to: o"))
    assert not load_program(text, tmp_path).fixed
    assert figures(text, tmp_path, flag=flag) == (155, GATE + UP + DOWN, 0 if flag else GATE + UP + 2 * DOWN)
    assert sorted(shapes(text, tmp_path, flag=flag)) == ["mlp.experts.down", "mlp.experts.up", "mlp.experts.up_bias", "mlp.gate.weight"]


LIST = """
      - up: {op: linear, from: x, width: M, to: h}
      - down: {op: linear, from: h, width: D, bias: false, to: y}"""


def test_modules_of_a_list(tmp_path: Path) -> None:
    """The same work and as many parameters, in a module for each expert."""
    text = spec(ROUTER, experts("choose: k, list: true, weights: scores, to: o", LIST))
    assert figures(text, tmp_path) == (155, GATE + UP + DOWN, GATE + UP + 2 * DOWN)
    found = shapes(text, tmp_path)
    assert found["mlp.experts.4.up.weight"] == (4, 3) and found["mlp.experts.0.down.weight"] == (3, 4)
    assert len(found) == 1 + 5 * 3
    assert figures(text, tmp_path, ("mlp.experts.*.down.*",)) == (155, GATE + UP + DOWN, DOWN)
    assert figures(text, tmp_path, experts=0)[0] == 0


def test_lists_of_experts_in_a_repeat(tmp_path: Path) -> None:
    entries = "\n".join((ROUTER, experts("choose: k, list: true, weights: scores, to: t", LIST)))
    inner = "\n".join(f"      {line}" for line in entries.splitlines())
    text = spec(f"- layers:\n    repeat: L\n    graph:\n{inner}", "- out: {op: linear, from: t, width: 1, to: o}")
    found = shapes(text, tmp_path, layers=3)
    assert sum(name.startswith("layers.2.mlp.experts.") for name in found) == 5 * 3
    assert figures(text, tmp_path, layers=3)[0] == 3 * 155 + 4


def test_an_adapter_on_each_expert_of_a_list(tmp_path: Path) -> None:
    text = spec(ROUTER, experts("choose: k, list: true, weights: scores, to: o", LIST))
    path = tmp_path / "small.yaml"
    path.write_text(text)
    estimator = load(path).estimator(CONFIG, regime_of("lora:r=2,targets=*.up"), "torch")
    assert estimator.trainable_parameters == 5 * (2 * 3 + 4 * 2)


def test_no_pattern_selects_one_expert_of_a_list(tmp_path: Path) -> None:
    """How much of the work is its own depends on the data."""
    text = spec(ROUTER, experts("choose: k, list: true, weights: scores, to: o", LIST))
    with pytest.raises(SpecError, match="matches nothing"):
        figures(text, tmp_path, ("mlp.experts.1.up.*",))


def test_a_condition_leaves_them_out(tmp_path: Path) -> None:
    text = spec(ROUTER, "- o: {op: linear, from: t, width: D}", experts("choose: k, weights: scores, when: flag, to: o"))
    linear = 2 * ROWS * 9
    assert figures(text, tmp_path) == (15 + 12, GATE + linear, linear)  # the router is a dead end
    assert figures(text, tmp_path, flag=True) == (15 + 12 + 140, GATE + linear + UP + DOWN, GATE + UP + 2 * DOWN)


def test_names_of_the_body_stay_inside(tmp_path: Path) -> None:
    text = spec(ROUTER, "- first: {op: linear, from: t, width: 7, to: y}", experts(), "- o: {op: linear, from: y, width: 1}")
    first = 2 * ROWS * 3 * 7
    assert figures(text, tmp_path)[1] == GATE + first + UP + DOWN + 2 * ROWS * 7


def test_in_a_repeat_the_rows_have_gradients_after_the_first(tmp_path: Path) -> None:
    body = spec(ROUTER, experts("choose: k, weights: scores, to: e"), "- add: {op: add, from: [t, e], to: t}")
    lines = body.removeprefix(HEAD).removesuffix("outputs: [o]\n").splitlines()
    text = HEAD + "  - layers:\n      repeat: L\n      graph:\n" + "".join(f"      {line}\n" for line in lines)
    text += "  - o: {op: mul, from: t}\noutputs: [o]\n"
    layer = GATE + UP + DOWN
    for layers in range(4):
        assert figures(text, tmp_path, layers=layers) == (
            155 * layers,
            layer * layers,
            2 * layer * layers - (GATE + UP) * (layers > 0),
        )
    assert shapes(text, tmp_path, layers=2)["layers.1.mlp.experts.down"] == (5, 3, 4)


def test_a_block_and_an_inner_path(tmp_path: Path) -> None:
    blocks = (
        "blocks:\n  two:\n    inputs: [a]\n    outputs: [b]\n    graph: [w1: {op: linear, from: a, width: D, to: b}]\ngraph:\n"
    )
    text = spec(
        ROUTER, experts(body="\n      - inner: {block: two, from: x, to: y}"), head=HEAD.replace("graph:\n", blocks)
    )  # fmt: skip
    assert shapes(text, tmp_path) == {
        "mlp.gate.weight": (5, 3), "mlp.experts.inner.w1.weight": (5, 3, 3), "mlp.experts.inner.w1.bias": (5, 3),
    }  # fmt: skip


def test_experts_of_experts(tmp_path: Path) -> None:
    inner = """
      - inner:
          experts: 2
          choose: 1
          from: x
          to: y
          graph:
            - {op: linear, from: x, width: D, bias: false, weight: deep, to: y}"""
    text = spec(ROUTER, experts(body=inner))
    assert shapes(text, tmp_path)["mlp.experts.inner.deep"] == (5, 2, 3, 3)
    assert figures(text, tmp_path)[1] == GATE + 2 * ROWS * 2 * 9


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (spec(ROUTER, experts(body="\n      - {op: linear, from: x, width: M, weight: up, to: z}")), "unknown-value", "'y'"),
        (spec(ROUTER, experts(body="\n      - {op: linear, from: t, width: M, weight: up, to: y}")), "unknown-value", "'t'"),
        (spec(ROUTER, experts(body="\n      - {op: linear, from: x, width: M, when: flag, weight: up, to: y}")), "unknown-value", "always"),
        (spec(ROUTER, experts(body="\n      - y: {op: pool, from: x, axes: {x: 1}}")), "row-mismatch", "'y'"),
        (spec(ROUTER, experts("choose: k, weights: v, to: o")), "row-mismatch", "'v'"),
        (spec(ROUTER, experts("choose: k, weights: nothing, to: o")), "unknown-value", "nothing"),
        (spec(ROUTER, experts("choose: \"'two'\", to: o")), "bad-field", "choose"),
        (spec(ROUTER, experts("choose: k, to: [o p]")).replace("[o p]", "[o, p]"), "result-count", "2 names"),
        (spec(ROUTER, experts()).replace("from: t\n", "from: [t, t]\n"), "operand-count", "one value"),
    ],
)  # fmt: skip
def test_mistakes(text: str, code: str, words: str) -> None:
    found = findings(text)
    assert [item for item in found if item[0] == code and words in item[1]], found


def test_weights_per_sample(tmp_path: Path) -> None:
    text = spec("- mlp.gate: {op: linear, from: s, width: E, bias: false, to: scores}", experts())
    assert figures(text, tmp_path)[1] == UP + DOWN + 2 * 2 * 2 * 5
