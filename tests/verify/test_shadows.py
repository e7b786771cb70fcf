"""Stand-ins of the tracing process against the operators for which they stand: the same shapes, and gradients to the same inputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.nn import functional

from symflops.support.findings import SymflopsError
from symflops.verify import limits
from symflops.verify.symbolic import shadows

SIDES = (2, 6, 10, 14)


def inputs(make: Callable[..., torch.Tensor], sides: tuple[int, ...]) -> list[torch.Tensor]:
    """A tensor that needs a gradient, of these sides, and a further one."""
    return [make(sides).requires_grad_(), make(sides).requires_grad_()]


CALLS: dict[str, Callable[[torch.Tensor, torch.Tensor, Any], torch.Tensor]] = {
    "pad": lambda x, y, n: functional.pad(x, (1, n, 0, 2)),
    "pad of numbers": lambda x, y, n: functional.pad(x, (1, 2)),
    "interpolate to a size": lambda x, y, n: functional.interpolate(x, size=(n, 3 * n)),
    "interpolate by a factor": lambda x, y, n: functional.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "group_norm": lambda x, y, n: functional.group_norm(x, n),
    "masked_scatter": lambda x, y, n: x.masked_scatter(torch.ones_like(x, dtype=torch.bool), y),
    "linspace": lambda x, y, n: x * torch.linspace(0, 1, 14),
    "arange": lambda x, y, n: x.sum() * torch.arange(0, 1, 4 / (8 * n), dtype=torch.float32),
    "polar": lambda x, y, n: torch.polar(x, y).abs(),
    "expand": lambda x, y, n: torch.baddbmm(x[0][:, :1, :1], y[0], x[0].transpose(1, 2)),
    "numpy": lambda x, y, n: x * np.sqrt(n) + x * np.sqrt(x.numel() / y.numel()),
    "bilinear": lambda x, y, n: functional.bilinear(x, y, x.new_zeros(5, x.shape[-1], y.shape[-1])),
    "norm_except_dim": lambda x, y, n: torch.norm_except_dim(x, 2, 1) * y.sum(),
    "weight_norm": lambda x, y, n: torch._weight_norm(x, y[:1, :1, :1].sum() * torch.ones_like(torch.norm_except_dim(x, 2, 0)), 0),
    "sqrt": lambda x, y, n: x * nn.modules.conv.math.sqrt(n),
    "log2": lambda x, y, n: x.new_zeros(2 ** nn.modules.conv.math.ceil(nn.modules.conv.math.log2(n)), 1) + x.sum() + y.sum() * 0,
    "int": lambda x, y, n: x.new_zeros(vars(nn.modules.conv).get("int", int)(n), 1) + x.sum() + y.sum() * 0,
    "int as a dtype": lambda x, y, n: typed(x, y, n, vars(nn.modules.conv).get("int", int)),
    **{kind: lambda x, y, n, kind=kind: getattr(nn, kind)(14, 5, 2, batch_first=True)(x[0])[0] for kind in ("LSTM", "GRU", "RNN")},
}
"""Calls of a tensor of four sides, another one, and a number that divides 6."""


def typed(x: torch.Tensor, y: torch.Tensor, number: Any, kind: Any) -> torch.Tensor:
    whole = torch.zeros(number, dtype=kind) + torch.tensor([1], dtype=kind) + torch.ones(1).to(kind) + x.new_ones(1, dtype=kind)
    assert whole.dtype == torch.int64 and np.zeros(2, dtype=kind).dtype == np.ones(2).astype(kind).dtype == np.int64
    return x.sum() + y.sum() + whole


def outcome(call: Callable[..., torch.Tensor], tensors: list[torch.Tensor], number: Any) -> tuple[list[Any], list[bool]]:
    found = call(*tensors, number)
    found.sum().backward()
    return list(found.shape), [one.grad is not None for one in tensors]


def stood_in(name: str) -> tuple[list[int], list[bool], list[bool]]:
    """Shape by the values of the symbols, gradients, and which sides of the result are symbolic."""
    shadows.install()
    env = ShapeEnv(duck_shape=False)
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)

    def symbolic(sides: tuple[int, ...]) -> torch.Tensor:
        moving = DimDynamic.DYNAMIC if name not in ("linspace",) else DimDynamic.STATIC
        kinds = [moving] * (len(sides) - 1) + [DimDynamic.STATIC]
        return mode.from_tensor(torch.empty(sides), symbolic_context=StatelessSymbolicContext(dynamic_sizes=kinds))

    number = mode.from_tensor(torch.empty(1).expand(3), symbolic_context=StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC])).shape[0]
    tensors = [symbolic(SIDES), symbolic(SIDES)]
    with mode:
        leaves = [one.detach().requires_grad_() for one in tensors]
        shape, gradients = outcome(CALLS[name], leaves, number)
    hints = [side.node.hint if isinstance(side, torch.SymInt) else side for side in shape]
    return hints, gradients, [isinstance(side, torch.SymInt) for side in shape]


@pytest.mark.parametrize("name", CALLS)
def test_a_stand_in_has_the_shape_and_the_gradients_of_the_operator(name):
    hints, gradients, symbolic = limits.in_process(lambda: stood_in(name), 60, name)
    assert (hints, gradients) == outcome(CALLS[name], inputs(torch.zeros, SIDES), 3)
    assert any(symbolic) or name == "linspace"


def test_a_process_is_limited_and_its_faults_are_told():
    def fails() -> None:
        raise ValueError("no\nsuch thing")

    assert limits.in_process(lambda: {"a": (1, 2)}, 60, "it") == {"a": (1, 2)}
    with pytest.raises(SymflopsError, match="ValueError: no such thing"):
        limits.in_process(fails, 60, "it")
    with pytest.raises(SymflopsError, match="it needs more than 4 GB of memory, or crashed: it ended with code 3"):
        limits.in_process(lambda: os._exit(3), 60, "it")
    with pytest.raises(SymflopsError, match="MemoryError"):
        limits.in_process(lambda: len(bytearray(60 << 30)), 60, "it")
