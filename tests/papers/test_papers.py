"""Each witness of a paper runs both passes at drawn configs, and does the products that the paper's definitions ask for."""

from __future__ import annotations

import pkgutil
import random
from importlib import import_module

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tests.papers import cases
from tests.sampling import sampled

NAMES = [module.name for module in pkgutil.iter_modules(cases.__path__)]
COUNTED_APART = (nn.Linear, nn.Conv1d, nn.Conv2d)


@pytest.mark.parametrize("seed", sampled(range(3), 3, 1))
@pytest.mark.parametrize("name", NAMES)
def test_a_witness_runs_both_passes_and_does_no_other_products(name: str, seed: int) -> None:
    case, rng = import_module(f"tests.papers.cases.{name}"), random.Random(seed)
    torch.manual_seed(seed)
    config, batch = case.draw(rng)
    model = import_module(f"tests.papers.{name}").Model(config)
    with FlopCounterMode(depth=None, display=False) as counter:
        outputs = model(**case.inputs(config, batch))
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    sum(output.sum() for output in outputs).backward()

    apart = {path for path, module in model.named_modules() if isinstance(module, COUNTED_APART)}
    layers = sum(
        sum(found.values()) for path, found in counter.get_flop_counts().items() if path.removeprefix("Model.") in apart
    )
    assert counter.get_total_flops() - layers == 2 * sum(case.products(config, sample) for sample in batch)
    assert all(output.isfinite().all() for output in outputs)
    silent = [path for path, weight in model.named_parameters() if weight.grad is None]
    assert [path for path in silent if not any(part in path for part in getattr(case, "UNREAD", ()))] == []
    assert all(weight.grad.isfinite().all() for weight in model.parameters() if weight.grad is not None)
