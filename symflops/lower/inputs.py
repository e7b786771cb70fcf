"""The inputs of a program: streams with their batch variables, and input tensors with their layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sympy import Symbol

from symflops.formula.expression import names as letters
from symflops.formula.formula import ZERO
from symflops.formula.truth import YES
from symflops.ir.batch import ONCE, SAMPLES, InputInfo, StreamInfo
from symflops.ir.graph import Graph, Length
from symflops.ir.spec import InputSpec
from symflops.lower.formulas import Formulas


class Inputs:
    """Looks up which inputs a graph has, and what it means if a batch omits a stream."""

    def __init__(self, graph: Graph) -> None:
        self.decided = {letter for letter, _ in graph.spec.constants}
        self.present = {name: condition for name, _, condition in graph.inputs}
        self.defaults = {stream.name.text: stream.default for stream in graph.spec.streams}
        measured = {(length.items, length.stream) for length in graph.lengths}
        sets = [items for items, _ in measured]
        self.alone = {stream for items, stream in measured if items != SAMPLES and sets.count(items) == 1}  # omitted: no items
        self.streams: dict[str, list[InputSpec]] = {}
        for item in graph.spec.inputs:
            if item.stream:
                self.streams.setdefault(item.stream.text, []).append(item)

    def is_given(self, item: InputSpec) -> bool:
        """Whether this class can have the input: False only if a size that the class decides excludes it."""
        by_class = item.when is not None and all(letter in self.decided for letter, _ in letters(item.when))
        return item.stream is None or not by_class or item.name.text in self.present

    def when_absent(self, stream: str, variables: Sequence[str]) -> tuple[int, bool]:
        """(Length of ``stream`` if a batch omits it, 0 without a default; whether a batch may omit it).

        ``variables`` are the names of the lengths that a batch would otherwise give for the stream.
        """
        inputs = self.streams.get(stream, [])
        default = self.defaults.get(stream)
        if variables and default is not None:
            return default, True
        layouts = [item.layout for item in inputs if item.layout]
        short = all(f"{name}=1" in layout.axes for layout in layouts for name in variables)  # without the axis, the length is 1
        if variables and (layouts or stream in self.alone) and short:
            return 1, True
        needed = (item.when is None or (item.needed and self.present.get(item.name.text) is YES) for item in inputs)
        return 0, bool(inputs) and not any(needed)


def stream_infos(graph: Graph, formulas: Formulas, measures: Mapping[Symbol, tuple[Length, ...]]) -> tuple[StreamInfo, ...]:
    """The streams of a program: the declared ones, except those whose inputs this class cannot have.

    A length that two streams share is listed only with the stream that declares it.
    """
    inputs, infos = Inputs(graph), []
    counted = {length.items for length in graph.lengths}
    owned: dict[str, list[Symbol]] = {}
    for length in graph.lengths:
        owned.setdefault(length.stream, []).append(length.symbol)
    for name, stream in graph.streams:
        own = inputs.streams.get(name, [])
        if stream.items != ONCE and (not own or any(map(inputs.is_given, own))):
            used = {symbol for part in stream.parts for _, length in part.axes for symbol in length.free_symbols}
            groups = [measures[symbol] for symbol in owned.get(name, ()) if symbol in used]
            variables = tuple(length.symbol.name for group in groups for length in group)
            absent, optional = inputs.when_absent(name, variables)
            counts = stream.items not in counted
            counted.add(stream.items)
            infos.append(StreamInfo(name, stream.items, variables, formulas.of(stream.rows), optional, counts, absent))
    return tuple(infos)


def input_infos(graph: Graph, formulas: Formulas) -> tuple[InputInfo, ...]:
    """The inputs of a program: the arguments that this class can have."""
    inputs = Inputs(graph)
    present = {name: formulas.of(there.expr) for name, there in inputs.present.items() if there is not YES}
    present |= {
        item.name.text: ZERO for item in graph.spec.inputs if item.when is not None and item.name.text not in inputs.present
    }
    values = {name: graph.values[identity].width for name, identity, _ in graph.inputs}
    widths = {name: formulas.of(width) for name, width in values.items() if width is not None}
    return tuple(
        InputInfo(name, item.stream.text if item.stream else "", item.layout, item.over, widths.get(name), present.get(name))
        for item in graph.spec.inputs
        for name in [item.name.text]
        if inputs.is_given(item)
    )
