"""The inputs and the parameters of a program: streams with their batch variables, tensors with their layouts, and weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sympy import Expr, Symbol

from symflops.count.per_parameter import shares
from symflops.derive.analyses import ParameterReaders
from symflops.formula.expression import names as letters
from symflops.formula.formula import ONE, ZERO, Formula
from symflops.formula.polynomial import Polynomial
from symflops.formula.truth import YES
from symflops.ir.batch import InputInfo, StreamInfo
from symflops.ir.graph import Derivation, Graph, Length, ParameterCount
from symflops.ir.index_sets import ONCE, SAMPLES
from symflops.ir.nodes import Loop
from symflops.ir.program import Tensor
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


class Measure(NamedTuple):
    """Formulas that parameters share if shape, number of copies and condition are equal.

    Attributes:
        elements: Number of elements of all copies, as a polynomial.
        shape: The shape of one copy.
        copies: Number of copies.
        total: ``elements`` as a formula.
        exists: 1 if the model has the parameter, else 0.
    """

    elements: Polynomial
    shape: tuple[Formula, ...]
    copies: Formula
    total: Formula
    exists: Formula


class Parameters:
    """Converts the parameters of derivations to those of a program, and adds up their elements."""

    def __init__(self, formulas: Formulas) -> None:
        self.formulas = formulas
        self.known: dict[object, Measure] = {}

    def tensor(self, readers: ParameterReaders, entry: ParameterCount) -> Tensor:
        """A parameter as a program stores it; ``readers`` finds the loops around the operators that read it."""
        path, one, of = entry.parameter.path, self.measure(entry), self.formulas.of
        template = tuple(part if isinstance(part, str) else of(part) for part in path.parts)
        loops = tuple(
            (loop.index.name, of(loop.offset), of(loop.offset + loop.count), of(bracket))
            for loop, bracket in enclosing(readers, entry)
        )
        lists = tuple((index.name, ZERO, of(count), ONE) for index, count in entry.parameter.lists)
        return Tensor(str(path), one.shape, one.copies, one.total, template, one.exists, loops + lists)

    def total(self, entries: Sequence[ParameterCount]) -> Formula:
        """The number of elements of all ``entries`` together."""
        times = Counter(map(identity, entries))
        some = {identity(entry): entry for entry in entries}
        elements = (self.measure(some[equal]).elements.scale(number) for equal, number in times.items())
        return self.formulas.simplified(Polynomial.total(elements))

    def active(self, derivation: Derivation) -> Formula:
        """The number of parameters that one token uses: all but the experts that it is not routed to."""
        parts = list(shares(derivation))
        if all(times == 1 for _, times in parts):
            return self.total(derivation.parameters)
        alike = Counter((identity(entry), times) for entry, times in parts)
        some = {identity(entry): entry for entry, _ in parts}
        elements = (self.measure(some[equal]).elements * Polynomial.of(times).scale(n) for (equal, times), n in alike.items())
        return self.formulas.simplified(Polynomial.total(elements))

    def measure(self, entry: ParameterCount) -> Measure:
        """The formulas of a parameter's shape, numbers of copies and elements, and condition.

        They are cached for all parameters with the same :func:`identity`.
        """
        key = identity(entry)
        if key not in self.known:
            parameter, exists, of = entry.parameter, entry.exists.expr, self.formulas.of
            elements = Polynomial.of(parameter.count) * Polynomial.of(entry.copies) * Polynomial.of(exists)
            shape = tuple(map(of, parameter.shape))
            self.known[key] = Measure(elements, shape, of(entry.copies), self.formulas.plain(elements), of(exists))
        return self.known[key]


def enclosing(readers: ParameterReaders, entry: ParameterCount) -> Iterator[tuple[Loop, Expr]]:
    """Yield the loops whose index is in the path of a parameter, outermost first.

    Each comes with the condition on the index under which the body that reads the parameter runs.
    """
    indices = entry.parameter.path.indices
    for loop, bracket in readers.classes(entry.parameter) if indices else ():
        if loop.index in indices and (entry.within is None or (loop.index, bracket) in entry.within):
            yield loop, bracket.expr


def identity(entry: ParameterCount) -> object:
    """The shape, number of copies and condition of a parameter, which decide its formulas."""
    return entry.parameter.shape, entry.copies, entry.exists
