"""Regimes and conventions as data: what trains and is recomputed, and what of the derived work is counted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Regime:
    """How a model is trained: patterns over parameter names that train or are frozen, and what the loss uses.

    ``decode`` runs causal self-attention over a cache: ``step`` for new tokens over ``past`` ones, ``generate`` for a whole
    generation of ``new`` tokens after a ``prompt``, summed over its steps.

    ``loss`` names outputs (all, where it is empty), ``input_grad`` inputs that need a gradient, ``force_grad`` paths
    whose result is made
    to need one.
    """

    name: str
    train: tuple[str, ...] = ("*",)
    freeze: tuple[str, ...] = ()
    loss: tuple[str, ...] = ()
    input_grad: tuple[str, ...] = ()
    force_grad: tuple[str, ...] = ()
    decode: str = ""
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Convention:
    """What of the derived work is counted.

    ``pairs`` is ``useful`` or ``all`` (masked pairs too), ``unseen`` says whether work counts that PyTorch's counter does
    not see, ``length`` is ``real`` or ``padded``.
    """

    name: str
    pairs: str = "useful"
    unseen: bool = True
    length: str = "real"
    doc: str = ""
