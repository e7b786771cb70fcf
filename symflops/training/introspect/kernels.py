"""FLOPs of PyTorch's operators: the formulas of PyTorch's own counter, and those that it lacks or has wrong.

Grouped convolutions: PyTorch counts the gradient of their weight ``groups`` times. Fused attention: the gradients count that
the backward pass needs, two products forward and one for each gradient; a kernel that computes scores again is no other work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

FUSED = (
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
)  # fmt: skip
"""Kernels of attention in ``aten``; the backward one has the name of the forward one and ``_backward``."""
IN_PLACE = ("addmm", "baddbmm")
"""Products that also add to their first argument in place."""
GROUPED = ("_grouped_mm", "_scaled_grouped_mm")


def convolution_backward(*given: Any, out_val: Any = None, **_: Any) -> Any:
    """FLOPs of the gradients of a convolution, which may be grouped; the arguments are those of the operator."""
    from torch.utils.flop_counter import conv_backward_flop

    *shared, groups, mask = given

    def count(*wanted: bool) -> Any:  # perhaps a symbolic integer
        return conv_backward_flop(*shared, groups, list(wanted), out_val=out_val)

    return count(mask[0], False, False) + count(False, mask[1], False) // groups


convolution_backward._get_raw = True  # type: ignore[attr-defined]  # makes PyTorch's counter pass tensors, not shapes


def attention(query: Any, key: Any, value: Any, *rest: Any, **_: Any) -> int:
    """FLOPs of the two products of fused attention, each over all pairs of queries and keys."""
    batch, heads, queries, width = query.shape
    return int(2 * batch * heads * queries * key.shape[-2] * (width + value.shape[-1]))


def attention_backward(gradient: Any, query: Any, key: Any, value: Any, *rest: Any, **_: Any) -> int:
    """FLOPs of the gradients of fused attention that the running node of autograd needs."""
    import torch

    node = torch._C._current_autograd_node()
    edges = node.next_functions[:3] if node is not None else ()
    q, k, v = (edge[0] is not None for edge in edges) if len(edges) == 3 else (True, True, True)
    batch, heads, queries, width = query.shape
    return int(2 * batch * heads * queries * key.shape[-2] * (width * (q + k) + value.shape[-1] * (v + (q or k))))


def grouped(one: Any, two: Any, *rest: Any, **_: Any) -> int:
    """FLOPs of a product in which each group of rows (or columns) has a matrix of its own."""
    if one.dim() == 2 or two.dim() == 2:  # together, the groups have all rows or columns once
        return int(2 * one.shape[-2] * one.shape[-1] * two.shape[-1])
    return int(2 * prod(one.shape) * two.shape[-1])


@lru_cache(maxsize=1)
def formulas() -> dict[Any, Callable[..., Any]]:
    """Map each operator that multiplies to a function of its arguments (and ``out_val``) that returns FLOPs."""
    import torch
    from torch.utils.flop_counter import flop_registry

    found: dict[Any, Callable[..., Any]] = dict(flop_registry)
    found[torch.ops.aten.convolution_backward] = convolution_backward
    for names, function in (
        (FUSED, attention),
        ([f"{name}_backward" for name in FUSED], attention_backward),
        (GROUPED, grouped),
    ):
        found.update({getattr(torch.ops.aten, name): function for name in names if hasattr(torch.ops.aten, name)})
    for name in IN_PLACE:
        found[getattr(torch.ops.aten, f"{name}_")] = found[getattr(torch.ops.aten, name)]
    return found


def flops_of(operator: Any, arguments: Sequence[Any], named: dict[str, Any], result: Any) -> int | None:
    """FLOPs of one call of an operator; None if it has no formula."""
    formula = formulas().get(getattr(operator, "_overloadpacket", operator))
    return None if formula is None else int(formula(*arguments, **named, out_val=result))
