"""What a batch gives to a model, as a program says it: streams with their batch variables, and inputs with their layouts."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Symbol

from symflops.algebra.truth import YES
from symflops.lower.formulas import Formulas
from symflops.lower.graph_queries import has_default
from symflops.model.graph import Graph, Length
from symflops.model.index_sets import ONCE
from symflops.model.program import InputInfo, StreamInfo


def stream_infos(graph: Graph, formulas: Formulas, measures: Mapping[Symbol, tuple[Length, ...]]) -> tuple[StreamInfo, ...]:
    """The declared streams; a length that two share is given with its own."""
    infos: list[StreamInfo] = []
    measured = {length.items for length in graph.lengths}
    for name, stream in graph.streams:
        if stream.items == ONCE:
            continue
        used = {symbol for part in stream.parts for _, length in part.axes for symbol in length.free_symbols}
        own = {length.symbol for length in graph.lengths if length.stream == name}
        mine = tuple(length.symbol.name for known, group in measures.items() if known in used & own for length in group)
        users = [item for item in graph.spec.inputs if item.stream and item.stream.text == name]
        absent = 1 if mine and all(has_default(item.layout, mine) for item in users if item.layout) else 0
        optional = bool(absent) or (bool(users) and all(item.when is not None for item in users))
        counts = stream.items not in measured and all(info.items != stream.items for info in infos)
        infos.append(StreamInfo(name, stream.items, mine, formulas.of(stream.rows), optional, counts, absent))
    return tuple(infos)


def input_infos(graph: Graph, formulas: Formulas) -> tuple[InputInfo, ...]:
    """The inputs, with the stream, layout and width of each, and when it is there."""
    present = {name: formulas.of(there.expr) for name, _, there in graph.inputs if there is not YES}
    values = {name: graph.values[identity].width for name, identity, _ in graph.inputs}
    widths = {name: formulas.of(width) for name, width in values.items() if width is not None}
    named = ((item.name.text, item.stream.text if item.stream else "", item) for item in graph.spec.inputs)
    return tuple(
        InputInfo(name, stream, item.layout, item.over, widths.get(name), present.get(name)) for name, stream, item in named
    )
