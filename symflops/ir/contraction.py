"""Contractions: products of two operands such as matmuls, with their size and number of executions."""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Expr, Integer

from symflops.formula.masks import Mask
from symflops.formula.truth import Truth

ONE = Integer(1)


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a contraction.

    Attributes:
        label: What pages call it, such as ``W``.
        values: Ids of the values that it is made of.
        parameters: Positions, among the operator's parameters, of those that it is made of.
        inner: Names of other contractions of the operator whose results it is made of.
        seen: Whether PyTorch's counter counts the gradient of this operand; None: the same as ``Contraction.seen``.
        counted: How often PyTorch's counter counts that gradient; more than 1 is an error of the counter.
    """

    label: str
    values: tuple[int, ...] = ()
    parameters: tuple[int, ...] = ()
    inner: tuple[str, ...] = ()
    seen: bool | None = None
    counted: Expr = ONE

    @property
    def is_weight(self) -> bool:
        """Whether the operand is made of parameters, so that its gradient is a weight gradient."""
        return bool(self.parameters)


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of one softmax attention: ``fold`` times ``queries`` by ``keys``, under ``masks``.

    Attributes:
        fold: Product of the axes that are treated as batch.
        queries: Number of queries.
        keys: Number of keys.
        masks: Each mask with the condition under which it applies.
        heads: Number of query heads.
    """

    fold: Expr
    queries: Expr
    keys: Expr
    masks: tuple[tuple[Mask, Truth], ...]
    heads: Expr


@dataclass(frozen=True, slots=True)
class Extent:
    """How often a contraction runs per item, such as rows of a linear or pairs of an attention.

    Attributes:
        executed: Runs of the real model.
        useful: Runs for pairs that the mask leaves; equal to ``executed`` without a mask.
        mask: Name of the mask; empty without one.
        tokens: Number of queries if this is causal self-attention, which can run token by token over a cache; else None.
        pairs: The pairs, for conventions that count them in their own way; None if this is not attention.
    """

    executed: Expr
    useful: Expr
    mask: str = ""
    tokens: Expr | None = None
    pairs: Pairs | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Contraction:
    """A product of two operands: ``size`` multiply-adds, run ``extent`` times per item of an index set.

    Attributes:
        name: Its formula, such as ``y = xW``.
        operands: The two sides.
        size: Multiply-adds per run, in sizes.
        items: The index set.
        extent: Runs per item.
        kind: Class of work: ``linear``, ``attention``, ``product``, ...
        seen: Whether PyTorch's FLOP counter counts it.
        role: Its role, if other than that of the operator; else empty.
        side: ``real`` or ``padded`` if its lengths are always these; empty if the convention decides.
    """

    name: str
    operands: tuple[Operand, ...]
    size: Expr
    items: str
    extent: Extent
    kind: str = "linear"
    seen: bool = True
    role: str = ""
    side: str = ""
