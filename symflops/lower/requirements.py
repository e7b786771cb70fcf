"""What the sizes of a model must fulfil: a sequence that loops fill is emptied by as many iterations as fill it."""

from __future__ import annotations

from sympy import Expr, Integer

from symflops.algebra.polynomial import Polynomial
from symflops.derive.iterations import all_iterations
from symflops.lower.formulas import Formulas
from symflops.model.graph import Graph
from symflops.model.nodes import Loop, Node, Pop, Push
from symflops.model.program import Requirement


def requirements(graph: Graph, formulas: Formulas) -> tuple[Requirement, ...]:
    """The differences that must be 0, without those that always are."""
    left: dict[str, Expr] = {}
    _count(graph.body, Integer(1), left)
    sums = ((name, Polynomial.of(number)) for name, number in left.items())
    return tuple(Requirement(formulas.plain(number), _text(name)) for name, number in sums if number)


def _count(nodes: tuple[Node, ...], times: Expr, left: dict[str, Expr]) -> None:
    """Add what each sequence gains, and subtract what it loses, in a region that runs ``times`` times."""
    for node in nodes:
        if isinstance(node, (Push, Pop)):
            change = times * node.guard.expr if isinstance(node, Push) else -times * node.guard.expr
            left[node.sequence] = left.get(node.sequence, Integer(0)) + change
        elif isinstance(node, Loop):
            for bracket, body in node.classes:
                _count(body, times * all_iterations(node, bracket), left)


def _text(name: str) -> str:
    return f"it does not take as many values from the stack '{name}' as it puts there"
