"""Derivations: how often each contraction runs forward, and how often each of its gradients is computed, with reasons."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr, Integer, Symbol

from symflops.algebra.truth import Truth
from symflops.model.contraction import Contraction
from symflops.model.graph import Graph
from symflops.model.nodes import Operator, Parameter
from symflops.model.regime import Regime

NONE = Integer(0)
DEAD_END = "dead end"


@dataclass(frozen=True, slots=True)
class Gradient:
    """The gradient of one operand: how often it is computed in one step, and the reason if it is not."""

    operand: str
    kind: str
    count: Expr
    reason: str

    @property
    def is_dead(self) -> bool:
        """Whether it is needed, and the loss does not depend on its operator."""
        return self.reason.startswith(DEAD_END)


@dataclass(frozen=True, slots=True)
class Work:
    """One contraction in one step: how often it runs forward, for the gradient of each operand, and recomputed."""

    operator: Operator
    contraction: Contraction
    forward: Expr
    gradients: tuple[Gradient, ...]
    recomputed: Expr = NONE


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """A parameter with its copies over repeats, when it exists, and whether it trains.

    ``within`` are the classes of iterations counted in this entry, by the index of their loop; None means every use.
    """

    parameter: Parameter
    copies: Expr
    exists: Truth
    trains: bool
    within: tuple[tuple[Symbol, Truth], ...] | None = None


@dataclass(frozen=True, slots=True)
class Derivation:
    """Both passes of a graph under a regime, and its parameters; ``decodes`` are the lengths generated token by token.

    ``rules`` are those by which the regime differs from a step in which everything trains, each with the operator kinds that it
    acts on (:mod:`symflops.derive.rules`).
    """

    graph: Graph
    regime: Regime
    work: tuple[Work, ...]
    parameters: tuple[ParameterCount, ...]
    decodes: frozenset[Symbol] = frozenset()
    rules: tuple[tuple[str, frozenset[str]], ...] = ()

    def __repr__(self) -> str:
        return f"Derivation('{self.graph.name}', regime='{self.regime.name}', contractions={len(self.work)})"
