"""A product of two operands: what it multiplies, how often, and over which pairs."""

from __future__ import annotations

from dataclasses import dataclass, field

from sympy import Expr

from symflops.algebra.masks import Mask
from symflops.algebra.truth import Truth


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of a contraction: values, parameters (by position in the operator) or results of its other contractions.

    ``seen`` says whether PyTorch's counter sees its gradient, where that is not as it is of the contraction itself.
    """

    label: str
    values: tuple[int, ...] = ()
    parameters: tuple[int, ...] = ()
    inner: tuple[str, ...] = ()
    seen: bool | None = None

    @property
    def is_weight(self) -> bool:
        """Whether its gradient is a weight gradient."""
        return bool(self.parameters)


@dataclass(frozen=True, slots=True)
class Pairs:
    """What the pairs of softmax attention are made of: folded axes, queries, keys, masks with their conditions, and heads."""

    fold: Expr
    queries: Expr
    keys: Expr
    masks: tuple[tuple[Mask, Truth], ...]
    heads: Expr


@dataclass(frozen=True, slots=True)
class Extent:
    """How often a contraction's unit runs per item: as executed, and the part of it that is useful (masks discard the rest).

    ``mask`` names what was discarded, for conventions that count it their own way; empty where nothing is. Where queries
    are their own keys and look back only, ``tokens`` are their number: such attention can run token by token over a cache.
    """

    executed: Expr
    useful: Expr
    mask: str = ""
    tokens: Expr | None = None
    pairs: Pairs | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Contraction:
    """A product of two operands: ``size`` multiply-adds, ``extent`` times per item of the index set ``items``.

    ``kind`` is its class of work (``linear``, ``attention``, ``product``, ...); ``seen`` is False for work that
    PyTorch's counter does not see. ``role`` is its own where it is not the operator's, ``side`` the lengths (``real`` or
    ``padded``) where it has its own.
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
