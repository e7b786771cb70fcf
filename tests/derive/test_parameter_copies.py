"""Copies of parameters over loops whose layers differ, against counting them one by one."""

from __future__ import annotations

from itertools import product

import pytest

from symflops.evaluate.parameters import instances_of
from tests.sampling import sampled
from tests.shipped import load

SPEC = """language: 2
name: small
sizes: {L: layers, K: first, kinds: {key: kinds, type: list, optional: true}}
streams: {text: [x]}
inputs: {t: {stream: text, width: 2}}
graph:
  - layers:
      repeat: L
      index: i
      graph:
        - all: {op: linear, from: t, width: 2, bias: false, add_to: t}
        - dense: {op: linear, from: t, width: 2, bias: false, add_to: t, when: "kinds[i] == 'd' if kinds != null else i < K"}
        - routed: {op: linear, from: t, width: 2, bias: false, add_to: t, when: "kinds[i] == 'r' if kinds != null else i >= K"}
outputs: [t]
"""


@pytest.mark.parametrize(("kinds", "first"), sampled(list(product([None, "", "d", "r", "rddr", "drrd", "dddd", "rrrr", "rxdr"], [0, 1, 3, 9])), 5, 1))
def test_a_layer_whose_kind_is_listed_or_follows_from_a_number(tmp_path, kinds, first):
    path = tmp_path / "small.yaml"
    path.write_text(SPEC)
    listed = "d" * min(first, 4) + "r" * (4 - first) if kinds is None else kinds
    config = {"layers": len(listed), "first": first, "kinds": None if kinds is None else list(kinds)}
    expected = {f"layers.{i}.all.weight": (2, 2) for i in range(len(listed))}
    names = {"d": "dense", "r": "routed"}
    expected |= {f"layers.{i}.{names[kind]}.weight": (2, 2) for i, kind in enumerate(listed) if kind in names}
    for structure in (None, config):
        estimator = load(path).derive("full", "symflops", structure).estimator(config)
        assert estimator.parameters == 4 * len(expected)
        assert instances_of(estimator.program, estimator.sizes) == expected
        counted = {"all": len(listed), "dense": listed.count("d"), "routed": listed.count("r")}
        assert {name: sum(count for path, count in estimator.tensors().items() if f".{name}." in path) for name in counted} == {
            name: 4 * count for name, count in counted.items()
        }
