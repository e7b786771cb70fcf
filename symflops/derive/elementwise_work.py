"""Element-wise work as contractions of its own, for conventions that count it.

Each role has its number of elements: a look-up, norm, product or sum those of its result, a bias those of the result that it
is added to, the weighted sum of experts those of all expert outputs, a softmax one per score.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sympy import Integer

from symflops.model.contraction import Contraction, Extent, Operand
from symflops.model.graph import Graph
from symflops.model.nodes import Node, Operator, with_operators
from symflops.model.roles import ROLES, role_of


def with_elements(graph: Graph, wanted: frozenset[str]) -> Graph:
    """``graph`` with the element-wise work of the ``wanted`` roles as contractions."""

    def extended(operator: Operator) -> list[Node]:
        more = tuple(work for work in _elements(graph, operator) if work.role in wanted)
        return [replace(operator, contractions=(*operator.contractions, *more)) if more else operator]

    return replace(graph, body=with_operators(graph.body, extended)) if wanted else graph


def _elements(graph: Graph, operator: Operator) -> Iterator[Contraction]:
    role = role_of(operator)
    read = Operand("x", tuple(dict.fromkeys(operator.operands)))
    if ROLES.get(role, ROLES["linear"]).group == "elements" and operator.results:
        yield _work(graph, operator, role, read, tuple(range(len(operator.parameters))))
    elif operator.kind in ("linear", "conv"):
        biases = (position for position in range(len(operator.parameters)) if is_bias(operator, position))
        yield from (_bias(graph, operator, position) for position in biases)
    for work in operator.contractions:
        if work.extent.pairs is not None and work.name.startswith("scores"):
            yield replace(work, name="softmax", size=work.extent.pairs.heads, kind="elements", seen=False, role="softmax")


def _work(graph: Graph, operator: Operator, role: str, read: Operand, parameters: tuple[int, ...]) -> Contraction:
    result = graph.values[operator.operands[0] if role == "combine" else operator.results[0]]
    sides = (read, Operand("W", parameters=parameters)) if parameters else (read,)
    width = Integer(1) if result.width is None else result.width
    rows = Extent(result.stream.rows, result.stream.rows)
    return Contraction(role, sides, width, result.stream.items, rows, "elements", False, role)


def _bias(graph: Graph, operator: Operator, position: int) -> Contraction:
    """The work of adding a bias: the width of all results, where the bias exists."""
    bias = operator.parameters[position]
    results = [graph.values[result] for result in operator.results]
    width = sum((value.width for value in results if value.width is not None), Integer(0)) * bias.exists.expr
    rows = Extent(results[0].stream.rows, results[0].stream.rows)
    side = Operand("b", parameters=(position,))
    role = "conv_bias" if operator.kind == "conv" else "bias"
    return Contraction(role, (side,), width, results[0].stream.items, rows, "elements", False, role)


def is_bias(operator: Operator, position: int) -> bool:
    """Whether no contraction of a linear or convolution reads its parameter at ``position``."""
    return all(position not in side.parameters for work in operator.contractions for side in work.operands)
