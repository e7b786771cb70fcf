"""Contractions: products of two operands, with their size and how often they run."""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Expr, Integer

from symflops.formula.masks import Mask
from symflops.formula.truth import Truth

ONE = Integer(1)


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a contraction: values, parameters (by position in the operator) or results of its other contractions.

    ``seen`` says whether PyTorch's counter sees the work of this operand's gradient; None takes the contraction's ``seen``.
    ``counted`` is how often it counts that work, by mistake more than once.
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
    """How often a contraction runs per item: ``executed`` times, of which ``useful`` ones are left by the masks.

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
    """A product of two operands: ``size`` multiply-adds, ``extent`` times per item of the index set ``items``.

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
