"""What a derivation takes from a config where the structure must know more: the right size, with the value that it has there."""

from __future__ import annotations

from pathlib import Path

import pytest

from symflops.api import Model
from symflops.compiler import next_size
from symflops.ir.regime import Regime
from tests.shipped import load

HEAD = """
language: 2
name: small
sizes:
  Y: {key: layers, default: 4}
  Z: {key: kept, default: 1}
  r: {key: rank, default: 3, optional: true}
derived: {M: 2*Z, N: Y - M}
streams: {text: [x]}
inputs: {t: {stream: text, width: 2}}
outputs: [t]
graph:
"""
LINEAR = "{op: linear, from: t, width: 2, to: t}"


def model(tmp_path: Path, *entries: str) -> Model:
    (tmp_path / "small.yaml").write_text(HEAD + "".join(f"  - {entry}\n" for entry in entries))
    return load(tmp_path / "small.yaml")


@pytest.mark.parametrize(("config", "copies"), [({}, 3), ({"rank": 2}, 2), ({"rank": None}, 1)])
def test_a_size_that_a_config_says_is_null_is_not_its_default(tmp_path, config, copies):
    small = model(tmp_path, f'layers: {{repeat: "range(r if r != null else 1)", graph: [{{a: {LINEAR}}}]}}')
    assert small.estimator(config).parameters == 6 * copies


@pytest.mark.parametrize("config", [{"layers": 6}, {"layers": 9, "kept": 4}, {"layers": 2}, {"layers": 9, "kept": 1}])
def test_for_a_derived_size_those_that_it_is_made_of_are_asked(tmp_path, config):
    """Layers by their numbers make too many combinations of ``N``, which only a number of layers resolves."""
    small = model(tmp_path, *(f"layers: {{repeat: {count}, graph: [{{a: {LINEAR}}}]}}" for count in ("N", "M, start: N")))
    estimator = small.estimator(config, Regime("some", freeze=("layers.1.a.bias", "layers.5.a.bias") if config["layers"] > 5 else ()))
    assert estimator.parameters == 6 * config["layers"]
    assert estimator.trainable_parameters == 6 * config["layers"] - (4 if config["layers"] > 5 else 0)
    assert [next_size(small.spec, "N", given) for given in ({}, {"Y": 4}, {"Y": 4, "Z": 1})] == ["Y", "Z", "N"]
    assert next_size(small.spec, "M", {"Y": 4}) == "Z" and next_size(small.spec, "Y", {"Y": 4}) == "Y"
