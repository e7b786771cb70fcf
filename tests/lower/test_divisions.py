"""Lengths that a model divides must divide: each of them, not only their product, in every way that a batch is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from symflops.api import Model
from symflops.evaluate.interpreted import InterpretedEstimator
from symflops.library.catalog import catalogs
from symflops.read.read import read
from symflops.read.spec_files import SpecFile
from symflops.support.findings import Source, SymflopsError
from tests.standalone import published

SPEC = """language: 2
name: merged
sizes: {D: {key: width, default: 3}, p: {key: part, default: 2}, q: {key: other, default: 3}}
streams: {grid: [h, w]}
inputs: {x: {stream: grid, width: D}}
graph:
  - a: {op: linear, from: x, width: D, to: x}
  - {op: reshape, from: x, axes: {h: h/p, w: w/q}, width: p*q*D, to: m}
  - f: {op: linear, from: m, width: 5, to: y}
outputs: [x, y]
"""
SIZED = """language: 2
name: sized
sizes: {D: {key: width, default: 3}, S: {key: side, default: 6}, p: {key: part, default: 2}}
streams: {one: {s: S}}
inputs: {x: {stream: one, width: D}}
graph:
  - {op: reshape, from: x, axes: {s: S/p}, width: p*D, to: m}
  - f: {op: linear, from: m, width: 5, to: y}
outputs: [y]
"""


def model(text: str) -> Model:
    return Model(SpecFile(Path("."), Path("merged.yaml"), "merged.yaml"), read(Source("merged.yaml", text), lambda name: None))


PROGRAM = model(SPEC).program(["full"], ["torch"])
MODULE = published(PROGRAM)
REFUSED = "divide|the model needs at least"
sides = st.integers(0, 24)


@settings(max_examples=60)
@given(st.lists(st.tuples(sides, sides), min_size=1, max_size=3), st.integers(1, 4), st.integers(1, 4))
def test_a_batch_is_refused_exactly_if_a_length_leaves_a_remainder(grid: list[tuple[int, int]], p: int, q: int) -> None:
    config = {"part": p, "other": q}
    runs = all(h % p == w % q == 0 for h, w in grid)
    batch = [list(pair) for pair in grid]
    interpreted = InterpretedEstimator(PROGRAM, config, convention="torch")
    module = MODULE.Estimator(MODULE.Sizes.from_config(config), convention="torch")
    many = np.array(batch * 120)
    cost = sum(2 * h * w * (9 + 3 * 5) for h, w in grid)
    ways = [
        (interpreted, batch, 1), (module, batch, 1), (module, np.array(batch), 1), (module, torch.tensor(batch), 1), (module, many, 120),
    ]  # fmt: skip
    for estimator, given_, times in ways:
        if runs:
            assert estimator.forward(estimator.moments(grid=given_)) == times * cost
        else:
            with pytest.raises((SymflopsError, ValueError), match=REFUSED):
                estimator.forward(estimator.moments(grid=given_))
    for estimator in (interpreted, module):
        if runs:
            assert sum(estimator.per_sample(grid=batch)) >= cost
        else:
            with pytest.raises((SymflopsError, ValueError), match=REFUSED):
                estimator.per_sample(grid=batch)


def test_a_product_that_divides_is_not_enough() -> None:
    estimator = InterpretedEstimator(PROGRAM, {"other": 2}, convention="torch")
    with pytest.raises(SymflopsError, match=r"item 1 of 'grid' \(h = 3, w = 4\).*divide"):
        estimator.moments(grid=[[2, 2], [3, 4]])


@pytest.mark.parametrize(("side", "part", "fits"), [(6, 2, True), (6, 4, False), (6, 3, True), (5, 2, False)])
def test_a_length_of_sizes_must_divide(side: int, part: int, fits: bool) -> None:
    program = model(SIZED).program(["full"], ["torch"])
    config = {"side": side, "part": part}
    if fits:
        assert InterpretedEstimator(program, config, convention="torch").parameters == 5 * part * 3 + 5
    else:
        with pytest.raises(SymflopsError, match=r"the length S does not divide by p \(part, side\)"):
            InterpretedEstimator(program, config, convention="torch")


DIVIDED = {"lumina2": "latent", "auraflow": "latent", "cogview4": "latent", "qwen2_vl": "images", "cosmos": "latent"}


@pytest.mark.parametrize(("name", "stream"), sorted(DIVIDED.items()))
def test_patches_of_published_models_are_whole(name: str, stream: str) -> None:
    """5 by 4 has as many elements as five patches of 2 by 2, and none of its rows is whole."""
    catalog = catalogs()[-1]
    program = catalog.program(name)
    estimator = InterpretedEstimator(program, {})
    rows = {row[0]: [10**6] if row[0] == "text" else [64] * max(1, len(row[1])) for rows in estimator.sets.values() for row in rows}
    whole = {key: [value[0] if len(value) == 1 else value] for key, value in rows.items()}
    assert estimator.forward(estimator.moments(**whole)) > 0
    odd = [*rows[stream][:-2], 65, 64]
    with pytest.raises(SymflopsError, match="divide"):
        estimator.moments(**(whole | {stream: [odd]}))
