"""A size that a config may give as one number or as a list: ``type: each``, read by ``per``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from symflops.api import Model, load
from symflops.support.findings import SymflopsError
from tests.standalone import published

SPEC = """
language: 2
name: one
sizes:
  C: {key: channels, default: 4}
  k: {key: kernel_size, type: each}
  s: {key: stride, type: each, default: 1}
streams: {latent: [h, w]}
inputs: {pixels: {stream: latent, width: C}}
graph:
  - conv: {op: conv, from: pixels, width: C, kernel: "per(k, 2)", stride: "per(s, 2)", to: v}
outputs: [v]
"""
BATCH = {"latent": [[9, 8], [7, 5]]}


@pytest.fixture
def model(tmp_path: Path) -> Model:
    (tmp_path / "one.yaml").write_text(SPEC, "utf-8")
    return load(tmp_path / "one.yaml")


def generated(model: Model) -> Any:
    """The generated module of the spec: it knows every config."""
    return published(model.program(["full"], ["torch"]))


@pytest.mark.parametrize(
    ("config", "rows", "kernel"),
    [
        ({"kernel_size": 3}, 7 * 6 + 5 * 3, 9),
        ({"kernel_size": [3, 2], "stride": [2, 3]}, 4 * 3 + 3 * 2, 6),
        ({"kernel_size": [1, 4], "stride": 2}, 5 * 3 + 4 * 1, 4),
    ],
)
def test_one_number_stands_at_every_place(model: Model, config: dict[str, Any], rows: int, kernel: int) -> None:
    module = generated(model)
    for estimator in (model.estimator(config), module.Estimator(module.Sizes.from_config(config), convention="torch")):
        assert estimator.parameters == 4 * 4 * kernel + 4
        assert estimator.forward(estimator.moments(**BATCH)) == 2 * rows * 4 * 4 * kernel


@pytest.mark.parametrize("value", ["3", 1.5, True, [3, "x"], [3, -1], -1])
def test_what_is_neither_is_refused(model: Model, value: Any) -> None:
    module = generated(model)
    with pytest.raises(SymflopsError, match="not a number or list"):
        model.estimator({"kernel_size": value})
    with pytest.raises(ValueError, match="not a number or list"):
        module.Sizes.from_config({"kernel_size": value})


def test_a_list_that_is_too_short(model: Model) -> None:
    with pytest.raises(SymflopsError, match="has one entry, and the model reads entry 1"):
        model.estimator({"kernel_size": [3]}).moments(**BATCH)
    with pytest.raises(SymflopsError, match="has one entry, and the model reads entry 1"):
        _ = model.estimator({"kernel_size": [3]}).parameters
