"""Contractions: products of two operands such as matmuls, with their size and number of executions."""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Expr, Integer

from symflops.formula.masks import Mask
from symflops.formula.truth import Truth

ONE = Integer(1)


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a contraction: values, parameters, or results of the operator's other contractions.

    ``parameters`` are positions in the operator. ``seen`` is True if PyTorch's counter counts this operand's gradient; None
    means the contraction's ``seen``.
    ``counted`` is the number of times that it counts that gradient; more than 1 is an error of the counter.
    """

    label: str
    values: tuple[int, ...] = ()
    parameters: tuple[int, ...] = ()
    inner: tuple[str, ...] = ()
    seen: bool | None = None
    counted: Expr = ONE

    @property
    def is_weight(self) -> bool:
        """Whether its gradient is a weight gradient."""
        return bool(self.parameters)


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of softmax attention: folded axes, queries, keys, masks with their conditions, and heads."""

    fold: Expr
    queries: Expr
    keys: Expr
    masks: tuple[tuple[Mask, Truth], ...]
    heads: Expr


@dataclass(frozen=True, slots=True)
class Extent:
    """Runs of a contraction per item: ``executed`` in all, ``useful`` after masking.

    ``mask`` names the mask, for conventions that count it their own way; empty without one. ``tokens`` is the number of queries
    in causal self-attention, which can run token by token over a cache; None elsewhere.
    """

    executed: Expr
    useful: Expr
    mask: str = ""
    tokens: Expr | None = None
    pairs: Pairs | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Contraction:
    """A product of two operands: ``size`` multiply-adds, ``extent`` times per item of ``items``.

    ``kind`` is its class of work (``linear``, ``attention``, ``product``, ...); ``seen`` is False for work that PyTorch's
    counter misses. ``role`` overrides the operator's role; ``side`` fixes its lengths to ``real`` or ``padded``. Empty means
    no override.
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
