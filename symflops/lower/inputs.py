"""The inputs of a program: streams with their batch variables, and input tensors with their layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sympy import Symbol

from symflops.algebra.truth import YES
from symflops.lower.formulas import Formulas
from symflops.lower.graph_queries import has_default
from symflops.model.formula import ZERO
from symflops.model.graph import Graph, Length
from symflops.model.index_sets import ONCE
from symflops.model.nodes import Stream
from symflops.model.program import InputInfo, StreamInfo
from symflops.model.spec import InputSpec
from symflops.syntax.expression import names as letters


def stream_infos(graph: Graph, formulas: Formulas, measures: Mapping[Symbol, tuple[Length, ...]]) -> tuple[StreamInfo, ...]:
    """The declared streams; a length that two streams share is listed with the stream that owns it.

    A stream whose inputs are all of other classes is left out.
    """
    infos: list[StreamInfo] = []
    measured = {length.items for length in graph.lengths}
    for name, stream in graph.streams:
        inputs = [item for item in graph.spec.inputs if item.stream and item.stream.text == name]
        if stream.items != ONCE and (not inputs or any(is_given(graph, item) for item in inputs)):
            own = own_variables(graph, name, stream, measures)
            absent, optional = when_absent(graph, name, own)
            counts = stream.items not in measured and all(info.items != stream.items for info in infos)
            infos.append(StreamInfo(name, stream.items, own, formulas.of(stream.rows), optional, counts, absent))
    return tuple(infos)


def is_given(graph: Graph, item: InputSpec) -> bool:
    """Whether the class has the input, or it only carries lengths; an input that a config decides is one of the class."""
    decided = {letter for letter, _ in graph.spec.constants}
    by_class = item.when is not None and all(letter in decided for letter, _ in letters(item.when))
    return item.stream is None or not by_class or any(name == item.name.text for name, _, _ in graph.inputs)


def own_variables(graph: Graph, name: str, stream: Stream, measures: Mapping[Symbol, tuple[Length, ...]]) -> tuple[str, ...]:
    """The batch variables of the lengths that a stream owns and uses."""
    used = {symbol for part in stream.parts for _, length in part.axes for symbol in length.free_symbols}
    used &= {length.symbol for length in graph.lengths if length.stream == name}
    return tuple(length.symbol.name for symbol, group in measures.items() if symbol in used for length in group)


def when_absent(graph: Graph, name: str, variables: Sequence[str]) -> tuple[int, bool]:
    """The length of a stream that a batch leaves out (0 if it has no default), and whether a batch may leave it out."""
    inputs = [item for item in graph.spec.inputs if item.stream and item.stream.text == name]
    if variables and all(has_default(item.layout, variables) for item in inputs if item.layout):
        return 1, True
    there = {name for name, _, condition in graph.inputs if condition is YES}
    return 0, bool(inputs) and all(item.when is not None and not (item.needed and item.name.text in there) for item in inputs)


def input_infos(graph: Graph, formulas: Formulas) -> tuple[InputInfo, ...]:
    """The input tensors with stream, layout, width and the condition under which each is present."""
    present = {name: formulas.of(there.expr) for name, _, there in graph.inputs if there is not YES}
    known = {name for name, _, _ in graph.inputs}
    present |= {item.name.text: ZERO for item in graph.spec.inputs if item.when is not None and item.name.text not in known}
    values = {name: graph.values[identity].width for name, identity, _ in graph.inputs}
    widths = {name: formulas.of(width) for name, width in values.items() if width is not None}
    return tuple(
        InputInfo(name, item.stream.text if item.stream else "", item.layout, item.over, widths.get(name), present.get(name))
        for item in graph.spec.inputs
        for name in [item.name.text]
        if is_given(graph, item)
    )
