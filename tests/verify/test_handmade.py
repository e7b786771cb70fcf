"""Small modules by the counts of a trace: equal to arithmetic forward, and in both passes to PyTorch's counter on real tensors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import symflops
from symflops.verify.running import counter, plain_attention, summed_tensors
from symflops.verify.symbolic.inputs import Given
from symflops.verify.symbolic.target import LiveTarget
from symflops.verify.symbolic.tracer import Example
from tests.sampling import sampled

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from handmade import CASES, Case  # noqa: E402

sys.path.pop(0)
UNSEEN = {"LSTM, two layers, two ways", "TransformerEncoder, fast path"}
"""Modules that run as one kernel which PyTorch's counter does not see."""


def made(case: Case) -> tuple[nn.Module, tuple[object, ...]]:
    torch.manual_seed(0)
    return case.make(), case.inputs()


def counted(case: Case) -> tuple[int, int]:
    """FLOPs of both passes by PyTorch's counter on real tensors, attention as two products."""
    model, inputs = made(case)
    with plain_attention(), counter() as forward:
        output = model(*inputs)
    with plain_attention(), counter() as backward:
        for one in (one for one in summed_tensors(output, ()) if one.requires_grad):
            one.sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


def test_there_are_forty():
    assert len(CASES) >= 40


@pytest.mark.parametrize("name", CASES)
def test_counts_without_values_equal_arithmetic_and_the_counter(name):
    case = CASES[name]
    model, inputs = made(case)
    given = Given(inputs, {})
    found = Example(LiveTarget(model), {}, {}, dict(given.lengths), 0, "meta", given).real({}, given.lengths)
    assert found.forward == 2 * (case.products - case.gap) and bool(found.missed) == bool(case.gap)
    if name not in UNSEEN:
        assert (found.forward, found.backward) == counted(case)


@pytest.mark.parametrize("name", sampled(CASES, every=16, in_ci=8))
def test_a_trace_is_proven_and_says_the_same(name):
    case = CASES[name]
    model, inputs = made(case)
    found = symflops.trace(model, *inputs)
    assert found.numbers["forward"] == 2 * (case.products - case.gap)
    assert bool(found.missed) == bool(case.gap)
    assert found.proven or case.gap, found.unproven
