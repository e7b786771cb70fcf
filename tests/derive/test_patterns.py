"""Patterns that select iterations of a repeat, against explicitly chosen layers of an unrolled model."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from symflops.api import Model
from symflops.build.build import build
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.ir.regime import Regime
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SpecError
from tests.sampling import sampled

from ..oracle.interpreter import run

SMALL = """language: 2
name: small
sizes: {D: width, L: layers}
streams: {text: [x]}
inputs:
  t: {stream: text, width: D}
graph:
  - first: {op: linear, from: t, width: D, to: h}
  - blocks:
      repeat: L
      graph:
        - up: {op: linear, from: h, width: 2*D, bias: false, to: u}
        - net.0: {op: linear, from: u, width: 3*D, to: v}
        - to_out.0: {op: linear, from: v, width: D, bias: false, add_to: h}
  - last: {op: linear, from: h, width: 1, to: o}
outputs: [o]
"""
NESTED = """language: 2
name: nested
sizes: {D: width, L: layers, K: inner}
streams: {text: [x]}
inputs:
  t: {stream: text, width: D}
graph:
  - outer:
      repeat: L
      graph:
        - before: {op: linear, from: t, width: D, bias: false, add_to: t}
        - blocks:
            repeat: K
            graph:
              - a: {op: linear, from: t, width: 2*D, bias: false, to: u}
              - b: {op: linear, from: u, width: D, bias: false, add_to: t}
outputs: [t]
"""
BATCH = {"text": [3, 4]}
SELECTORS = ("2", "0", "-1", "-3", "::4", ":2", "-2:", "1:", ":-1", "1:3", "::2", "1::3", "2:-1", "9")


@cache
def model_of(text: str) -> Model:
    return Model(SpecFile(Path("."), Path("case.yaml"), "case.yaml"), read(Source("case.yaml", text), lambda name: None))


@cache
def program_of(text: str, train: tuple[str, ...], freeze: tuple[str, ...]) -> Any:
    """The closed forms for every number of layers."""
    regime = Regime("case", train=train, freeze=freeze)
    return model_of(text).program([regime], ["torch"])


def derived(text: str, config: dict[str, int], train: tuple[str, ...], freeze: tuple[str, ...]) -> tuple[int, ...]:
    estimator = InterpretedEstimator(program_of(text, train, freeze), config, regime="case", convention="torch")
    moments = estimator.moments(**BATCH)
    return estimator.trainable_parameters, estimator.forward(moments), estimator.backward(moments)


def unrolled(text: str, config: dict[str, int], train: tuple[str, ...], freeze: tuple[str, ...]) -> tuple[int, ...]:
    result = run(yaml.safe_load(text), config, BATCH, train=train, freeze=freeze, convention="torch")
    return result.trainable_parameters, result.forward, result.backward


def indices(selector: str, layers: int) -> list[int]:
    """What Python selects."""
    every = list(range(layers))
    if ":" in selector:
        return every[slice(*(int(part) if part else None for part in selector.split(":")))]
    index = int(selector)
    return [every[index]] if -layers <= index < layers else []


def spelled(pattern: str, selector: str, layers: int) -> tuple[str, ...]:
    """The pattern once per selected layer."""
    return tuple(pattern.replace("@", str(index)) for index in indices(selector, layers))


@pytest.mark.parametrize("selector", sampled(SELECTORS, 4, 1))
@pytest.mark.parametrize("pattern", ["blocks.@.*", "blocks.@.up.weight", "*.@.to_out.0.*", "blocks.@.net.0.bias"])
def test_one_selector(selector: str, pattern: str) -> None:
    one = (pattern.replace("@", selector),)
    for layers in range(10):
        config = {"width": 5, "layers": layers}
        several = spelled(pattern, selector, layers)
        assert derived(SMALL, config, one, ()) == unrolled(SMALL, config, several, ()), ("train", layers)
        assert derived(SMALL, config, ("*",), one) == unrolled(SMALL, config, ("*",), several), ("freeze", layers)


@pytest.mark.parametrize(
    ("train", "freeze"),
    [
        (("blocks.1.*", "blocks.-1.*"), ()),
        (("blocks.:3.*",), ("blocks.1.*",)),
        (("blocks.-3:.*", "first.*"), ("blocks.-1.up.*",)),
        (("blocks.0.up.*", "blocks.1.net.*", "blocks.2.to_out.*"), ()),
        (("blocks.::2.up.*",), ("blocks.::3.*",)),
        (("*",), ("blocks.2:.*", "first.bias")),
        (("last.*", "blocks.4.*"), ("*.bias",)),
    ],
)
def test_several_selectors(train: tuple[str, ...], freeze: tuple[str, ...]) -> None:
    def explicit(patterns: tuple[str, ...], layers: int) -> tuple[str, ...]:
        found: list[str] = []
        for pattern in patterns:
            head, middle, tail = pattern.partition(".") if pattern.startswith("blocks.") else (pattern, "", "")
            selector, dot, rest = tail.partition(".")
            found += spelled(f"{head}.@.{rest}", selector, layers) if dot else [pattern]
        return tuple(found)

    for layers in range(10):
        config = {"width": 3, "layers": layers}
        want = unrolled(SMALL, config, explicit(train, layers), explicit(freeze, layers))
        assert derived(SMALL, config, train, freeze) == want, layers


@pytest.mark.parametrize("outer", ["1", "-1", ":2", "*"])
@pytest.mark.parametrize("inner", sampled(["0", "-1", "1:", "*"], 2, 1))
def test_nested_repeats(outer: str, inner: str) -> None:
    pattern = f"outer.{outer}.blocks.{inner}.a.weight"
    for layers in range(5):
        for depth in range(4):
            config = {"width": 3, "layers": layers, "inner": depth}
            outers = ["*"] if outer == "*" else indices(outer, layers)
            inners = ["*"] if inner == "*" else indices(inner, depth)
            several = tuple(f"outer.{i}.blocks.{j}.a.weight" for i in outers for j in inners)
            assert derived(NESTED, config, (pattern,), ()) == unrolled(NESTED, config, several, ()), (layers, depth)


def test_a_number_that_is_no_index() -> None:
    """``to_out.0`` is a name: it selects nothing and cuts nothing."""
    for pattern in ("*.to_out.0.*", "*.net.0.bias", "blocks.*.to_out.0.weight"):
        assert len(build(model_of(SMALL).spec, {}, (pattern,)).body) == 3
        for layers in range(4):
            config = {"width": 4, "layers": layers}
            assert derived(SMALL, config, (pattern,), ()) == unrolled(SMALL, config, (pattern,), ())


WRITTEN_OUT = """language: 2
name: alternating
sizes: {D: width, L: layers}
streams: {text: [x]}
inputs:
  h: {stream: text, width: D}
graph:
  - blocks:
      repeat: L
      index: i
      graph:
        - qkv: {op: linear, from: h, width: 3*D, split: '[D, D, D]', to: [q, k, v]}
        - attn: {op: attention, heads: 1, mask: causal, sliding: '[2, 3][i % 2]', query: q, key: k, value: v, to: o}
        - out: {op: linear, from: o, width: D, add_to: h}
outputs: [h]
"""


@pytest.mark.parametrize("selector", sampled(SELECTORS, 4, 1))
def test_selectors_of_iterations_that_are_written_out(selector):
    """A selector is the layers that it selects, where an alternating window has them written out."""
    model = model_of(WRITTEN_OUT)
    config = {"width": 4, "layers": 5}
    parts = [int(text) if text else None for text in selector.split(":")]
    chosen = [index for index in range(5) if index - parts[0] in (0, 5)] if len(parts) == 1 else range(5)[slice(*parts)]
    if not chosen:
        with pytest.raises(SpecError, match="matches nothing"):
            model.program([Regime("drawn", train=(f"blocks.{selector}.*",))], ["torch"], config)
        return
    figures = []
    for patterns in ((f"blocks.{selector}.*",), tuple(f"blocks.{index}.*" for index in chosen)):
        program = model.program([Regime("drawn", train=patterns)], ["torch"], config)
        assert any(str(tensor.name).startswith("blocks.4.") for tensor in program.tensors)
        estimator = InterpretedEstimator(program, config, regime="drawn", convention="torch")
        moments = estimator.moments(**BATCH)
        figures.append((estimator.trainable_parameters, estimator.backward(moments)))
    assert figures[0] == figures[1] and figures[0][0] == len(chosen) * (3 * 4 * 5 + 4 * 5)


TWO_LISTS = """language: 2
name: two_lists
sizes: {D: width, L: layers}
streams: {text: [x]}
inputs:
  h: {stream: text, width: D}
graph:
  - net:
      graph:
        - repeat: L
          index: i
          graph:
            - norms.{i}: {op: rms_norm, from: h, to: n}
            - layers.{i}:
                graph:
                  - out: {op: linear, from: n, width: D, add_to: h}
            - /:
                graph:
                  - heads.{i}: {op: linear, from: h, width: D, to: made}
  - last: {op: linear, from: h, width: D, to: h}
outputs: [h]
"""


@pytest.mark.parametrize("module_list", ["net.layers", "net.norms", "heads"])
@pytest.mark.parametrize("selector", sampled(SELECTORS, 4, 1))
def test_a_repeat_through_several_module_lists_is_cut_by_the_names_of_each(module_list, selector):
    """A pattern that selects a layer chooses as many parameters as the names of all chosen layers."""
    model = model_of(TWO_LISTS)
    config = {"width": 4, "layers": 5}
    parts = [int(text) if text else None for text in selector.split(":")]
    chosen = [index for index in range(5) if index - parts[0] in (0, 5)] if len(parts) == 1 else range(5)[slice(*parts)]
    size = 4 if module_list == "net.norms" else 20
    program = model.program([Regime("drawn", train=(f"{module_list}.{selector}.*",))], ["torch"], config)
    estimator = InterpretedEstimator(program, config, regime="drawn", convention="torch")
    assert estimator.trainable_parameters == size * len(chosen)
