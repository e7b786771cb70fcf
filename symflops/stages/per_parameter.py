"""Parameters as work: each counts as one multiply-add per token of the main stream, whatever reads it and how often."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sympy import Expr, Integer

from symflops.model.contraction import Contraction, Extent, Operand
from symflops.model.derivation import Derivation, Gradient, ParameterCount, Work
from symflops.model.graph import ONCE, Graph, Operator, Stream
from symflops.model.roles import regions_of, role_of

CHOICE = "expert_choice"


class ParameterWork(NamedTuple):
    """One parameter as work, its role and regions, and whether it trains."""

    work: Work
    role: str
    regions: tuple[str, ...]
    trains: bool


def parameter_work(derivation: Derivation, experts: str) -> Iterator[ParameterWork]:
    """Each parameter once with all its copies; of ``experts``, all or the ``active`` ones."""
    graph = derivation.graph
    readers: dict[object, tuple[Operator, int]] = {}
    for operator in graph.operators():
        for position, parameter in enumerate(operator.parameters):
            readers.setdefault((parameter.path, parameter.shape), (operator, position))
    rows = main_stream(graph)
    for entry in derivation.parameters:
        operator, position = readers[entry.parameter.path, entry.parameter.shape]
        bias = operator.kind in ("linear", "conv") and is_bias(operator, position)
        role = ("conv_bias" if operator.kind == "conv" else "bias") if bias else role_of(operator)
        extent = Extent(rows.rows, rows.rows)
        side = Operand("W", parameters=(position,))
        size = entry.parameter.count * (share(graph, operator) if experts == "active" else Integer(1))
        name = str(entry.parameter.path).rpartition(".")[2]
        contraction = Contraction(name, (side,), size, rows.items, extent, "parameters", True, role)
        times = copies(entry) * derivation.regime.passes.runs
        gradient = Gradient("W", "weight", times if entry.trains else Integer(0), "")
        yield ParameterWork(Work(operator, contraction, times, (gradient,)), role, regions_of(operator), entry.trains)


def is_bias(operator: Operator, position: int) -> bool:
    """Whether a parameter of a linear or convolution is none of those that a contraction reads."""
    return all(position not in side.parameters for work in operator.contractions for side in work.operands)


def copies(entry: ParameterCount) -> Expr:
    """How many of a parameter there are, where it exists."""
    return entry.copies * entry.exists.expr


def share(graph: Graph, operator: Operator) -> Expr:
    """The share of routed experts that a row goes through; all, outside of experts."""
    for value in (*operator.operands, *operator.results):
        chosen = graph.values[value].stream.parts[0].get(CHOICE)
        if chosen is not None and operator.parameters:
            return chosen / operator.parameters[0].shape[0]
    return Integer(1)


def main_stream(graph: Graph) -> Stream:
    """The first stream that varies with the batch: the tokens of a language model."""
    return next(stream for name, stream in graph.streams if name != ONCE and stream.rows.free_symbols)


def main_width(graph: Graph) -> Expr:
    """The width of the first value of the main stream that an operator makes: that of the model."""
    rows = main_stream(graph)
    for operator in graph.operators():
        for result in operator.results:
            value = graph.values[result]
            if value.width is not None and value.stream.alike(rows):
                return value.width
    return Integer(0)
