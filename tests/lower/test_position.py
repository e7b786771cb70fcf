"""A size that is a place in a list, counted from the end where it is negative: ``type: position``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from symflops.api import Model
from symflops.support.findings import SymflopsError
from tests.shipped import load
from tests.standalone import published

SPEC = """
language: 2
name: one
sizes:
  L: {key: layers, default: 4}
  f: {key: feature_layer, default: -2}
derived: {N: f if f >= 0 else L + 1 + f}
streams: {text: [x]}
inputs: {t: {stream: text, width: 2}}
graph:
  - layers: {repeat: N, graph: [{a: {op: linear, from: t, width: 2, bias: false, to: t}}]}
  - feature: {op: identity, from: t, to: o}
  - layers: {repeat: "max(0, L-N)", start: N, graph: [{a: {op: linear, from: t, width: 2, bias: false, to: t}}]}
outputs: [o]
"""


@pytest.fixture
def model(tmp_path: Path) -> Model:
    (tmp_path / "one.yaml").write_text(SPEC, "utf-8")
    return load(tmp_path / "one.yaml")


def generated(model: Model) -> Any:
    """The generated module of the spec: it knows every config."""
    return published(model.program(["full"], ["torch"]))


@pytest.mark.parametrize(
    ("config", "trained"),
    [({}, 3), ({"feature_layer": -1}, 4), ({"feature_layer": 0}, 0), ({"feature_layer": 1}, 1), ({"feature_layer": -5}, 0), ({"layers": 1}, 0)],
)
def test_layers_after_the_feature_run_but_get_no_gradients(model: Model, config: dict[str, Any], trained: int) -> None:
    module, layers = generated(model), config.get("layers", 4)
    for structure in (None, config):
        derived = model.derive("full", "torch", structure).estimator(config)
        for estimator in (derived, module.Estimator(module.Sizes.from_config(config), convention="torch")):
            moments = estimator.moments(text=[5, 2])
            assert (estimator.parameters, estimator.forward(moments)) == (4 * layers, 2 * 7 * 4 * layers)
            assert estimator.backward(moments) == 2 * 7 * 4 * max(0, 2 * trained - 1)


@pytest.mark.parametrize("value", ["1", 1.5, True, [1], 10**6, -(10**6)])
def test_what_is_no_position_is_refused(model: Model, value: Any) -> None:
    module = generated(model)
    with pytest.raises(SymflopsError, match="not a position"):
        model.estimator({"feature_layer": value})
    with pytest.raises(ValueError, match="not a position"):
        module.Sizes.from_config({"feature_layer": value})
