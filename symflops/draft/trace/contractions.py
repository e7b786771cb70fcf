"""Which operators of PyTorch are contractions, and their index sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}  # how many tensors are added, and come first


@dataclass(frozen=True, slots=True)
class Contraction:
    """A contraction as a node has it: its two sides come first among the ``tensors``, then what is added to its result."""

    kind: str
    tensors: tuple[Any, ...]
    sizes: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


def contraction_of(name: str, args: Sequence[Any], shape: tuple[int, ...]) -> Contraction | None:
    """The contraction of a call with a result of this shape; None for any other operator."""
    if name in PRODUCTS:
        added = PRODUCTS[name]
        return product(*args[added : added + 2], *args[:added])
    if name in ("convolution", "_convolution"):
        return convolution(args, shape)
    if name == "linalg_solve_triangular":
        left, right = args[:2]
        sizes = (prod(left.shape[:-2]), left.shape[-1], left.shape[-1], right.shape[-1])
        return Contraction("solve", (left, right), sizes)
    return None


def product(left: Any, right: Any, *added: Any) -> Contraction:
    """A product of matrices, or of batches of them."""
    batch = left.shape[0] if left.dim() == 3 else 1
    return Contraction("matmul", (left, right, *added), (batch, left.shape[-2], left.shape[-1], right.shape[-1]))


def convolution(args: Sequence[Any], shape: tuple[int, ...]) -> Contraction:
    """A convolution of any rank, transposed or not."""
    value, kernel, bias, stride, padding, dilation, transposed, extra, groups = args[:9]
    places = value.shape[2:] if transposed else shape[2:]
    sizes = (value.shape[0], kernel.shape[0], kernel.shape[1], *kernel.shape[2:], *places)
    rank = kernel.dim() - 2
    options = {
        "stride": per_axis(stride, rank), "padding": per_axis(padding, rank), "dilation": per_axis(dilation, rank),
        "output_padding": per_axis(extra, rank), "kernel": tuple(kernel.shape[2:]),
        "transposed": transposed, "groups": groups,
    }  # fmt: skip
    return Contraction("conv", (value, kernel, *(() if bias is None else (bias,))), sizes, options)


def per_axis(values: Sequence[int], rank: int) -> tuple[int, ...]:
    """An option of a convolution for every axis; a single number holds for all."""
    return tuple(values) * rank if len(values) == 1 else tuple(values)
