"""Last uses of the values of a graph, after which their names are free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from symflops.ir.graph import Graph
from symflops.ir.nodes import Checkpoint, Loop, Node, Operator, Pop, Push, Select


def last_uses(graph: Graph) -> tuple[dict[int, int], dict[int, int]]:
    """Return (value id -> the place of its last use, place of each node), where places count up in execution order.

    The key of a node's place is its ``id``; those of ``id(body)`` and ``id(loop.classes)`` are the ends of a body and a loop.
    What is made before a loop and used in it is used until the loop ends.
    """
    last: Counter[int] = Counter()
    made: dict[int, int] = {}
    places: dict[int, int] = {}

    def use(values: Iterable[int]) -> None:
        for value in values:
            last[value] = max(last[value], len(places))

    def walk(nodes: Sequence[Node]) -> set[int]:
        used: set[int] = set()
        for node in nodes:
            start = places[id(node)] = len(places) + 1
            mine = set(read_by(node))
            use(mine)
            if isinstance(node, Loop):
                inner: set[int] = set()
                for (_, body), carries in zip(node.classes, node.carries, strict=True):
                    made.update((carry.argument, start) for carry in carries)
                    inner |= walk(body) | {carry.final for carry in carries}
                    places[id(body)] = len(places) + 1
                    use(carry.final for carry in carries)
                places[id(node.classes)] = len(places) + 1
                mine |= {value for value in inner if made.get(value, 0) < start}
                use(mine - set(read_by(node)))
            made.update(dict.fromkeys(made_by(node), start))
            used |= mine
        return used

    made.update((number, 0) for _, number, _ in graph.inputs)
    walk(graph.body)
    last.update({number: 10**9 for _, number in graph.outputs})
    return dict(last), places


def read_by(node: Node) -> Iterable[int]:
    """Ids of the values that a node reads, without those that the bodies of a loop read."""
    match node:
        case Operator():
            return node.operands
        case Select():
            return (node.then, node.otherwise)
        case Checkpoint():
            return node.made
        case Push():
            return (node.value,)
        case Loop():
            return (carry.initial for carries in node.carries for carry in carries)
    return ()


def made_by(node: Node) -> Iterable[int]:
    """Ids of the values that a node makes."""
    match node:
        case Operator() | Checkpoint():
            return node.results
        case Loop():
            return (carry.result for carries in node.carries for carry in carries)
        case Select() | Pop():
            return (node.result,)
    return ()
