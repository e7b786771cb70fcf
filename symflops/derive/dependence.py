"""Which operators later calls of a decoding model run again, and which the first call alone runs."""

from __future__ import annotations

from sympy import Symbol

from symflops.ir.graph import Graph
from symflops.ir.nodes import OF_OTHERS


def run_once(graph: Graph, tokens: frozenset[Symbol]) -> frozenset[int]:
    """Ids of the operators that run in the first call alone.

    A result that depends on new ``tokens`` is made in each call. Others are made again if such a result reads them, unless
    they depend on items that come with the first call, such as images, or attention keeps the keys that were made of them.
    """
    import networkx

    drawn = graph.to_networkx()
    drawn.add_nodes_from(("new", "first", "again"))
    lengths = {length.symbol for length in graph.lengths}
    made = {f"op:{one.id}": one.results for one in graph.operators()}
    for node, values in (made | {f"input:{name}": (value,) for name, value, _ in graph.inputs}).items():
        read = {symbol for value in values for symbol in graph.values[value].stream.rows.free_symbols & lengths}
        drawn.add_edges_from([("new" if read & tokens else "first", node)] if read else [])
    new, first = (networkx.descendants(drawn, source) for source in ("new", "first"))
    for operator in graph.operators():
        if any(kept.kind == OF_OTHERS for kept in operator.keeps):
            names = {graph.values[value].name for field in ("key", "value") for value in operator.named[field]}
            edges = list(drawn.in_edges(f"op:{operator.id}", data="value"))
            drawn.remove_edges_from([(one, other) for one, other, name in edges if name in names])
    drawn.remove_nodes_from(first - new)
    drawn.add_edges_from((node, "again") for node in new)
    again = networkx.ancestors(drawn, "again")
    return frozenset(operator.id for operator in graph.operators() if f"op:{operator.id}" not in again)
