"""Parameters as work (6N): each counts one multiply-add per token of the main stream, however often it is read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from sympy import Add, Expr, Integer

from symflops.derive.adapters import is_bias
from symflops.derive.decode import tokens_run
from symflops.formula.functions import CeilDiv, PerToken, unpadded
from symflops.formula.polynomial import Polynomial
from symflops.ir.contraction import Contraction, Extent, Operand
from symflops.ir.convention import regions_of, role_of
from symflops.ir.graph import Derivation, Gradient, Graph, ParameterCount, Work
from symflops.ir.index_sets import ONCE, SAMPLES
from symflops.ir.nodes import CHOICE, Operator

TOWERS = frozenset(("vision", "audio"))


def parameter_work(derivation: Derivation, experts: str) -> Iterator[tuple[Work, str, tuple[str, ...], bool]]:
    """Yield (work, role, regions, whether it trains) for each parameter.

    The work is a contraction with one multiply-add per element and token. Role and regions are those of the first operator that
    reads the parameter; a bias has a role of its own. ``experts`` says which experts count per token: ``all``, those it is
    ``routed`` to, or those ``executed`` for it.
    """
    graph = derivation.graph
    items, rows = main_rows(graph)
    rows = rows.xreplace(tokens_run(derivation.decodes, derivation.regime.decode))
    for entry, operator, position in first_readers(derivation):
        bias = operator.kind in ("linear", "conv") and is_bias(operator, position)
        role = ("conv_bias" if operator.kind == "conv" else "bias") if bias else role_of(operator)
        extent = Extent(rows, rows)
        side = Operand("W", parameters=(position,))
        size = entry.parameter.count * (Integer(1) if experts == "all" else share(graph, operator, experts))
        name = str(entry.parameter.path).rpartition(".")[2]
        contraction = Contraction(name, (side,), size, items, extent, "parameters", True, role)
        times = entry.copies * entry.exists.expr * derivation.regime.passes.runs
        gradient = Gradient("W", "weight", times if entry.trains else Integer(0), "")
        yield Work(operator, contraction, times, (gradient,)), role, regions_of(operator), entry.trains


def first_readers(derivation: Derivation) -> Iterator[tuple[ParameterCount, Operator, int]]:
    """Yield each parameter with the first operator that reads it, and its position in that operator."""
    readers: dict[object, tuple[Operator, int]] = {}
    for operator in derivation.graph.operators():
        for position, parameter in enumerate(operator.parameters):
            readers.setdefault((parameter.path, parameter.shape), (operator, position))
    for entry in derivation.parameters:
        yield entry, *readers[entry.parameter.path, entry.parameter.shape]


def shares(derivation: Derivation) -> Iterator[tuple[ParameterCount, Expr]]:
    """Yield each parameter with the share of its elements that is active per token.

    The share is below 1 for parameters of experts: routed experts per token over all experts.
    """
    for entry, operator, _ in first_readers(derivation):
        yield entry, share(derivation.graph, operator, "routed")


def tokens(derivation: Derivation, filled: bool = False) -> tuple[str, Expr] | None:
    """Tokens of one pass as (index set, number of rows without padding per item).

    None if no stream varies with the batch. With ``filled``, the rows that the model adds to fill its last chunk count, too.
    """
    if not any(name != ONCE and stream.rows.free_symbols for name, stream in derivation.graph.streams):
        return None
    items, rows = main_rows(derivation.graph)
    rows = rows.xreplace(tokens_run(derivation.decodes, derivation.regime.decode))
    rows = unpadded(rows, items != ONCE)
    return items, rows if filled else unrounded(rows)


def unrounded(rows: Expr) -> Expr:
    """Subtract from ``rows`` those that only fill a last chunk.

    For example, ``ceil(x, c)`` chunks of ``c`` rows each become ``x`` rows.
    """
    total: Expr = Integer(0)
    for monomial, factor in Polynomial.of(rows).terms.items():
        term = Polynomial({monomial: factor}).expr
        for chunks, _ in monomial:
            if isinstance(chunks, CeilDiv):
                filled, size = term / chunks, chunks.args[1]
                whole = Polynomial.of(filled).quotient(Polynomial.of(size))
                if whole is not None and whole.expr.is_integer:
                    term = whole.expr * chunks.args[0]
        total += term
    return total


def share(graph: Graph, operator: Operator, experts: str) -> Expr:
    """The share of an operator's experts that count per token; 1 if it belongs to no expert.

    ``experts`` says which count: those that a token is ``routed`` to, or those ``executed`` for it.
    """
    for value in (*operator.operands, *operator.results):
        chosen = graph.values[value].stream.parts[0].get(CHOICE)
        if chosen is not None and operator.parameters:
            return per_token(chosen, experts) / operator.parameters[0].shape[0]
    return Integer(1)


@lru_cache(maxsize=1 << 15)
def per_token(rows: Expr, experts: str) -> Expr:
    """Replace each number of experts per token in ``rows`` by the one that counts.

    ``experts`` says which: those that a token is ``routed`` to, or (any other text) those that run for it.
    """
    return rows.xreplace({one: one.args[experts == "routed"] for one in rows.atoms(PerToken)})


def main_rows(graph: Graph) -> tuple[str, Expr]:
    """Tokens as (index set, rows): the queries of the first attention outside towers and experts.

    If later ones join these with others, as after blocks that refine a prompt alone, all of them are tokens. Queries whose
    number the batch does not change, such as latents, are none. If there are no others, the first stream that varies with the
    batch is used; without such a stream (each column of a table is a token), the fixed queries are.
    """
    varies = {length.symbol for length in graph.lengths}
    fixed: Expr | None = None
    found: Expr | None = None
    for operator in graph.operators():
        queries = next((work.operands[0].values for work in operator.contractions if work.extent.pairs is not None), ())
        streams = [graph.values[query].stream for query in queries]
        rows = Add(*(stream.rows for stream in streams))
        inside = {*TOWERS, "experts"} & set(regions_of(operator))
        if streams and streams[0].items == SAMPLES and not inside:
            if rows.free_symbols.isdisjoint(varies):
                fixed = fixed or rows
            elif found is None or Polynomial.of(found).terms.items() < Polynomial.of(rows).terms.items():
                found = rows
    if found is not None:
        return SAMPLES, found
    streams = [stream for name, stream in graph.streams if name != ONCE]
    stream = next((one for one in streams if not one.rows.free_symbols.isdisjoint(varies)), None)
    if stream is None and fixed is not None:
        return SAMPLES, fixed
    stream = stream or next((one for one in streams if one.rows.free_symbols), None)
    return (stream.items, stream.rows) if stream else (SAMPLES, Integer(1))


def main_width(graph: Graph) -> Expr | None:
    """The width of the model: of the first result with one row per token; None without such a result."""
    items, rows = main_rows(graph)
    values = (graph.values[result] for operator in graph.operators() for result in operator.results)
    tokens = (
        value for value in values if (value.stream.items, Polynomial.of(value.stream.rows)) == (items, Polynomial.of(rows))
    )
    return next((value.width for value in tokens if value.width is not None), None)
