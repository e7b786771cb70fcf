"""A graph as a networkx DiGraph, for drawings and for other tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import networkx

from symflops.formula.words import words_of
from symflops.ir.nodes import Checkpoint, Loop, Node, Operator, Pop, Push, Select, Value

Makers = dict[int | str, set[str]]
"""Value id -> the drawn nodes that make it; stack name -> the nodes that make its values."""
Values = Sequence[Value]


def network(
    name: str,
    values: Values,
    body: tuple[Node, ...],
    inputs: Iterable[tuple[str, int, object]],
    outputs: Iterable[tuple[str, int]],
) -> networkx.DiGraph:
    """The networkx graph of a body: a node per operator, input and output, and an edge per value.

    An edge goes from the maker of the value to one of its readers. Nodes have ``label``, ``kind`` and ``loops`` (the repeats
    around them). Edges have ``value`` and ``carried``: whether the value passes from one iteration to the next.

    Args:
        name: Name of the graph.
        values: The values by id.
        body: The nodes in execution order.
        inputs: (name, value id, condition) triples.
        outputs: (name, value id) pairs.
    """
    drawn = networkx.DiGraph(name=name)
    makers: Makers = {}
    for given, value, _ in inputs:
        drawn.add_node(f"input:{given}", label=given, kind="input", loops=())
        makers[value] = {f"input:{given}"}
    _region(values, body, (), drawn, makers)
    for made, value in outputs:
        drawn.add_node(f"output:{made}", label=made, kind="output", loops=())
        _connect(values, drawn, makers, value, f"output:{made}")
    return drawn


def _connect(values: Values, drawn: networkx.DiGraph, makers: Makers, value: int, reader: str) -> None:
    for maker in sorted(makers.get(value, ())):
        drawn.add_edge(maker, reader, value=values[value].name)


def _region(values: Values, nodes: tuple[Node, ...], loops: tuple[str, ...], drawn: networkx.DiGraph, makers: Makers) -> None:
    for node in nodes:
        match node:
            case Operator():
                name = f"op:{node.id}"
                drawn.add_node(name, label=str(node.path), kind=node.kind, loops=loops, caption=node.caption)
                for operand in dict.fromkeys(node.operands):
                    _connect(values, drawn, makers, operand, name)
                makers |= {result: {name} for result in node.results}
            case Select():
                makers[node.result] = makers.get(node.then, set()) | makers.get(node.otherwise, set())
            case Checkpoint():
                makers |= {value: makers.get(made, set()) for value, made in zip(node.results, node.made, strict=True)}
            case Loop():
                _loop(values, node, loops, drawn, makers)
            case Push():
                makers.setdefault(node.sequence, set()).update(makers.get(node.value, set()))
            case Pop():
                makers[node.result] = set(makers.get(node.sequence, set()))


def _loop(values: Values, loop: Loop, loops: tuple[str, ...], drawn: networkx.DiGraph, makers: Makers) -> None:
    inside = (*loops, f"{loop.path} x {words_of(loop.count)}")
    for (_, body), carries in zip(loop.classes, loop.carries, strict=True):
        makers |= {carry.argument: set(makers.get(carry.initial, ())) for carry in carries}
        _region(values, body, inside, drawn, makers)
        for carry in carries:
            made = makers.get(carry.final, set()) - makers.get(carry.argument, set())
            makers[carry.result] = makers.get(carry.result, set()) | (makers.get(carry.final, set()) or set())
            readers = [f"op:{node.id}" for node in body if isinstance(node, Operator) and carry.argument in node.operands]
            for maker in sorted(made):
                for reader in readers:
                    drawn.add_edge(maker, reader, value=values[carry.argument].name, carried=True)


MOVES = ("identity", "reshape", "expand", "pad", "pool", "slice", "select", "pad_batch", "flatten_batch")
STEPS = ("with", "mul", "act", "add", "map", "detach", "concat", "split", *MOVES, "zeros")


def mermaid(drawn: networkx.DiGraph) -> str:
    """The graph of :func:`network` as Mermaid text, with each repeat as a box."""
    lines = ["flowchart TD"]
    lines += _boxes(
        drawn, lambda name, data: f"{_id(name)}{_shape(data)}", lambda label, key: f'subgraph {key}["{_safe(label)}"]', "end"
    )
    for source, target, data in drawn.edges(data=True):
        arrow = '-. "next" .->' if data.get("carried") else "-->"
        lines.append(f"  {_id(source)} {arrow} {_id(target)}")
    return "\n".join(lines) + "\n"


def dot(drawn: networkx.DiGraph) -> str:
    """The graph of :func:`network` as DOT text, with each repeat as a cluster."""
    lines = [f'digraph "{_safe(drawn.name)}" {{', "  node [shape=box, fontname=Helvetica];"]
    lines += _boxes(
        drawn,
        lambda name, data: f'{_id(name)} [label="{_safe(_label(data))}"];',
        lambda label, key: f'subgraph cluster_{key} {{ label="{_safe(label)}";',
        "}",
    )
    for source, target, data in drawn.edges(data=True):
        style = ' [style=dashed, label="next", constraint=false]' if data.get("carried") else ""
        lines.append(f"  {_id(source)} -> {_id(target)}{style};")
    return "\n".join([*lines, "}"]) + "\n"


def _boxes(drawn: networkx.DiGraph, node: object, opening: object, closing: str) -> list[str]:
    lines: list[str] = []
    current: tuple[str, ...] = ()
    number = 0
    for name, data in drawn.nodes(data=True):
        loops = data["loops"]
        while current != loops[: len(current)]:
            current = current[:-1]
            lines.append("  " * (len(current) + 1) + closing)
        for label in loops[len(current) :]:
            number += 1
            lines.append("  " * (len(current) + 1) + opening(label, f"repeat{number}"))  # type: ignore[operator]
            current = (*current, label)
        lines.append("  " * (len(current) + 1) + node(name, data))  # type: ignore[operator]
    return [*lines, *("  " * depth + closing for depth in range(len(current), 0, -1))]


def _label(data: dict[str, str]) -> str:
    kind = "" if data["kind"] in ("input", "output") else f"{data['kind']}: "
    caption = f" ({data['caption']})" if data.get("caption") else ""
    return f"{kind}{data['label']}{caption}"


def _shape(data: dict[str, str]) -> str:
    text = _safe(_label(data))
    if data["kind"] in ("input", "output"):
        return f'(["{text}"])'
    return f'("{text}")' if data["kind"] in STEPS else f'["{text}"]'


def _id(name: str) -> str:
    return "".join(char if char.isalnum() else "_" for char in name)


def _safe(text: str) -> str:
    return str(text).replace('"', "'").replace("\\", "/").replace("\n", " ").replace("<", "(").replace(">", ")")
