"""What an estimator returns per item sums to the total, by the array's own sum too; masks are never ignored."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from symflops.generated.language.llama import Estimator, Sizes, moments

from symflops.api import load

MANY, LENGTH = 10_000, 65_000
ARRAYS = {
    "int64": lambda: np.full(MANY, LENGTH), "int32": lambda: np.full(MANY, LENGTH, np.int32), "uint16": lambda: np.full(MANY, LENGTH, np.uint16),
    "tensor": lambda: torch.full((MANY,), LENGTH), "list": lambda: [LENGTH] * MANY,
}  # fmt: skip


@pytest.mark.parametrize("kind", ARRAYS)
def test_costs_per_sample_sum_to_the_total(kind):
    """10,000 samples of 65,000 tokens of Llama-2-7B: FLOPs that wrap around in 64 bits."""
    model = Estimator(Sizes.from_config({}))
    text = ARRAYS[kind]()
    costs = model.per_sample(text=text)
    total = model.total(model.moments(text=text))
    assert total > 2**63 and sum(int(cost) for cost in costs) == total
    assert not hasattr(costs, "sum") or costs.sum() == total


@pytest.mark.parametrize("masked", [np.ma.array([3, 4], mask=[0, 1]), np.ma.array([3] * 200, mask=[1] + [0] * 199)])
def test_masked_arrays_are_refused(masked):
    for read in (moments, Estimator(Sizes.from_config({})).moments, Estimator(Sizes.from_config({})).per_sample, load("llama").estimator({}).moments):
        with pytest.raises(Exception, match="mask|whole number"):
            read(text=masked)
    assert moments(text=masked.compressed()) == moments(text=masked.compressed().tolist())
