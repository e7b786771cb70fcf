"""Convolutions with every padding that their class takes, under PyTorch's counter as it is and as it is corrected."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from symflops.api import load
from symflops.support.errors import SymflopsError
from symflops.verify.running import counter
from tests.sampling import amount
from tests.standalone import published

FAULTS = (SymflopsError, ValueError)


def drawn(chance: random.Random) -> tuple[int, dict[str, Any], list[int]]:
    """The number of axes, a config and the lengths of one item."""
    axes, groups = chance.choice([1, 2, 3]), chance.choice([1, 2])
    kernel = [chance.randint(1, 4) for _ in range(axes)]
    config = {
        "in_channels": 4 * groups, "out_channels": 6 * groups, "kernel_size": chance.choice([kernel, kernel[0]]),
        "stride": chance.choice([1, 1, 2]), "dilation": chance.choice([1, 2]), "groups": groups, "bias": chance.random() < 0.5,
        "padding": chance.choice(["same", "valid", chance.randint(0, 2), [chance.randint(0, 2) for _ in range(axes)]]),
    }  # fmt: skip
    return axes, config, [chance.randint(7, 12) for _ in range(axes)]


def counted(axes: int, config: dict[str, Any], lengths: list[int]) -> dict[str, tuple[int, int, int]] | None:
    """Parameters and FLOPs of both passes of two items in the real class, by convention; None if it refuses the config."""
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in config.items()}
    try:
        module = getattr(torch.nn, f"Conv{axes}d")(**given, device="meta")
    except ValueError:
        return None
    found = {}
    for convention, made in (("torch", counter), ("torch-raw", partial(FlopCounterMode, display=False))):
        with made() as forward:
            result = module(torch.empty(2, config["in_channels"], *lengths, device="meta")).sum()
        with made() as backward:
            result.backward()
        parameters = sum(item.numel() for item in module.parameters())
        found[convention] = parameters, forward.get_total_flops(), backward.get_total_flops()
    return found


@pytest.mark.drawn
@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("seed", range(amount(20, 2000, 60)))
def test_a_convolution_takes_the_padding_that_its_class_takes(seed):
    axes, config, lengths = drawn(random.Random(seed))
    model, real = load(f"conv{axes}d"), counted(axes, config, lengths)
    if real is None:
        with pytest.raises(FAULTS, match="'same' padding goes with a stride of 1"):
            model.estimator(config, "full", "torch")
        return
    for convention, figures in real.items():
        estimator = model.estimator(config, "full", convention)
        m = estimator.moments(source=[lengths if axes > 1 else lengths[0]] * 2)
        assert (estimator.parameters, estimator.forward(m), estimator.backward(m)) == figures


def test_a_generated_module_takes_the_words():
    program = load("conv2d").typical(["full"], ["symflops"])
    module = vars(published(program))
    config = {"in_channels": 4, "out_channels": 6, "kernel_size": [4, 3], "dilation": [1, 2]}
    for padding in ("same", "valid", 1, [2, 0]):
        one, other = (made({**config, "padding": padding}) for made in (module["Sizes"].from_config, dict))
        found, expected = module["Estimator"](one), load("conv2d").estimator(other)
        batch = {"source": [[9, 10], [7, 8]]}
        assert found.total(found.moments(**batch)) == expected.total(expected.moments(**batch))
    for padding, told in (("some", "padding"), (["same", "same"], "same or valid")):
        with pytest.raises(FAULTS, match=told):
            module["Sizes"].from_config({**config, "padding": padding})
    with pytest.raises(FAULTS, match="stride of 1"):
        module["Estimator"](module["Sizes"].from_config({**config, "padding": "same", "stride": 2}))
