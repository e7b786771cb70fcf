"""One training step of a live module under PyTorch's FLOP counter, beside what symflops reads off the module."""

from __future__ import annotations

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import symflops
from symflops.verify.running import counter


def tensors_in(value):
    if torch.is_tensor(value):
        yield value
    elif isinstance(value, dict):
        yield from (tensor for item in value.values() for tensor in tensors_in(item))
    elif isinstance(value, (tuple, list)):
        yield from (tensor for item in value for tensor in tensors_in(item))


def counted(module, inputs):
    """FLOPs of both passes of a training step, recomputation included."""
    module.train()
    with sdpa_kernel(SDPBackend.MATH), counter(False) as forward:
        out = module(**inputs)
        loss = out.get("loss") if hasattr(out, "get") else None
        if loss is None:
            loss = sum(tensor.sum() for tensor in tensors_in(out if isinstance(out, (dict, tuple)) else vars(out)) if tensor.requires_grad)
    with sdpa_kernel(SDPBackend.MATH), counter(False) as backward:
        if torch.is_tensor(loss) and loss.requires_grad:
            loss.backward()
    return forward.get_total_flops(), backward.get_total_flops()


def derived(module, batch, **options):
    """What symflops says of the same step."""
    model = symflops.of_model(module, convention="torch", **options)
    moments = model.moments(**batch)
    return model.forward(moments), model.backward(moments) + model.recomputed(moments)


def trained(module):
    """The elements that have a gradient after a step."""
    return sum(tensor.numel() for tensor in module.parameters() if tensor.grad is not None)
