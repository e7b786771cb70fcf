"""The skeleton of a graph: one PyTorch module with the parameters of the spec, whose forward pass runs the spec's steps.

Every value is a tensor ``[items, rows, width]``, with one item for what exists once per batch; all items are equally long.
Sizes stay letters. Conditions are decided, since they decide which modules there are; loops stay loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sympy import Integer, Rational, Symbol
from sympy.core.symbol import Str

from symflops.emit.skeleton.expressions import GapError, Known, code, items_name
from symflops.emit.skeleton.writer import Lines, Writer, used_helpers
from symflops.ir.graph import Graph
from symflops.ir.index_sets import ONCE
from symflops.ir.nodes import Push, Value, walk


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The text of a skeleton, with what it lacks.

    Attributes:
        text: The Python module.
        name: The name of its class.
        gaps: What has no form in PyTorch; there the forward pass raises ``NotImplementedError``.
        notes: Where something stands in for what a spec does not say.
        inputs: For each argument of ``forward``: name, value, and the lengths that are arguments of their own.
        lengths: The lengths that are keyword arguments of ``forward``, since no shape tells them.
        counts: Index sets without an input, whose numbers of items are keyword arguments.
    """

    text: str
    name: str
    gaps: tuple[str, ...]
    notes: tuple[str, ...]
    inputs: tuple[tuple[str, Value], ...]
    lengths: tuple[Symbol, ...]
    counts: tuple[str, ...]


def rendered(lines: Lines, depth: int) -> Iterator[str]:
    """The lines of code, indented."""
    for line in lines:
        if isinstance(line, str):
            yield ("    " * depth + line).rstrip()
        else:
            yield "    " * depth + line[0]
            yield from rendered(line[1], depth + 1)


def skeleton(graph: Graph, sizes: dict[str, Any], model: str) -> Skeleton:
    """Write the skeleton of ``graph``.

    Args:
        graph: The graph.
        sizes: Letter -> value of every size; a size that is no number, if the graph has it as a symbol.
        model: What the head of the module calls the model, such as its config.
    """
    writer = Writer(graph, Known(symbols_of(graph, sizes), dict(graph.definitions)))
    inputs, lengths, counts, head = arguments(writer)
    stacks = {node.sequence: None for node in walk(graph.body, Push)}
    writer.body += [f"{name} = []" for name in stacks]
    writer.nodes(graph.body)
    outputs = [writer.names[number] for _, number in graph.outputs if number in writer.names]
    writer.line(f"return {', '.join(outputs)}")
    name = "".join(part[:1].upper() + part[1:] for part in graph.name.split("_"))
    name = f"{name}Model" if name in writer.taken else name
    keywords = [*(length.name for length in lengths), *(items_name(items) for items in counts)]
    signature = ", ".join(["self", *(given for given, _ in inputs), *(["*"] if keywords else []), *keywords])
    code_of_class = [
        (f"class {name}(nn.Module):", [
            f'"""{graph.spec.title or graph.name}."""', "",
            ("def __init__(self):", ["super().__init__()", *writer.init]), "",
            (f"def forward({signature}):", [*head, *writer.body]),
        ])
    ]  # fmt: skip
    text = "\n".join(rendered(code_of_class, 0))
    constants = "\n".join(constants_of(graph, writer.known, text))
    helpers = "\n\n\n".join(used_helpers(text + " put weight Part"))
    gaps = "".join(f"\n# gap: {gap}" for gap in dict.fromkeys(writer.gaps))
    doc = f'"""{model}, as its spec describes it: a skeleton to run, count and train.\n\n{ABOUT}\n"""'
    imports = "import math\n\nimport torch\nfrom torch import nn\nfrom torch.nn import functional"
    whole = f"{doc}\n{gaps}\n{imports}\n\n{constants}\n\n\n{helpers}\n\n\n{text}\n"
    return Skeleton(whole, name, tuple(dict.fromkeys(writer.gaps)), tuple(dict.fromkeys(writer.notes)), inputs, lengths, counts)


def symbols_of(graph: Graph, sizes: dict[str, Any]) -> dict[Symbol, Any]:
    """The values of the sizes that are symbols in ``graph``; ``sizes`` has them by letter."""
    given = ((symbol, sizes.get(name)) for name, symbol in graph.sizes if isinstance(symbol, Symbol))
    return {symbol: as_symbol(value) for symbol, value in given if isinstance(value, (str, int, float, Fraction))}


ABOUT = """Values are tensors [items, rows, width], of equally long items; axes of a stream are flattened into its rows.
Lines after '# stands in' take the place of what the spec does not say."""


def as_symbol(value: Any) -> Any:
    """A value of a config for substitution into expressions: a number, or a text."""
    if isinstance(value, str):
        return Str(value)
    return Integer(value) if isinstance(value, int) else Rational(str(Fraction(value)))


def arguments(writer: Writer) -> tuple[tuple[tuple[str, Value], ...], tuple[Symbol, ...], tuple[str, ...], Lines]:
    """The inputs, the lengths and item counts that are arguments of their own, and the first lines of ``forward``."""
    found, told, head = [], set(), list[Any]()
    counted: set[str] = {ONCE}
    for _, number, present in writer.graph.inputs:
        value = writer.values[number]
        if writer.known.resolved(present.expr) == 0:
            continue
        variable = writer.bind(value)
        found.append((variable, value))
        axes = value.stream.parts[0].axes
        alone = axes[0][1] if len(value.stream.parts) == 1 and len(axes) == 1 else None
        if alone not in told and any(alone == length.symbol for length in writer.graph.lengths):
            told.add(alone)
            head.append(f"{alone} = {variable}.shape[1]")
        if value.stream.items not in counted:
            counted.add(value.stream.items)
            head.append(f"{items_name(value.stream.items)} = len({variable})")
        if value.width is None:
            head.append(f"{variable} = {variable}[..., None]")
    rest = tuple(length.symbol for length in writer.graph.lengths if length.symbol not in told)
    sets = {value.stream.items for value in writer.graph.values} - counted
    return tuple(found), rest, tuple(sorted(sets)), head


def constants_of(graph: Graph, known: Known, text: str) -> Iterator[str]:
    """A line for each size that the code reads, with what it is."""
    docs = {size.name.text: size.doc or ", ".join(size.keys) for size in graph.spec.sizes}
    lines: list[str] = []
    needed = set(re.findall(r"\w+", text))
    for symbol, formula in reversed(graph.definitions):
        if symbol.name in needed:
            try:
                written = code(formula)
            except GapError:
                written = str(known.resolved(formula))
            value = known.resolved(formula)
            written = written if value.is_Integer else str(value)
            needed.update(re.findall(r"\w+", written))
            lines.insert(0, f"{symbol.name} = {written}")
    for name, symbol in reversed(graph.sizes):
        if isinstance(symbol, Symbol) and symbol.name.removeprefix("?") in needed:
            value = "..." if known.resolved(symbol) == symbol else known.resolved(symbol)  # a size without a default
            lines.insert(0, f"{symbol.name.removeprefix('?')} = {value}  # {docs.get(name, '')}")
    return iter(lines)
