"""Reentrant checkpoints (``use_reentrant=True``): makes each recomputed group one autograd function.

PyTorch runs such a group without gradients, and again in the backward pass. From outside it is one function. Each value that
leaves it needs a gradient if any value that enters it does, so trained weights on frozen inputs get none. Its backward pass
fills unused gradients with zeros, so if one value that leaves it is live, all are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from symflops.derive.recompute import Chosen, groups_of
from symflops.ir.contraction import Contraction
from symflops.ir.graph import Graph
from symflops.ir.nodes import Checkpoint, Loop, Node, Operator, Pop, Push, Select, Value
from symflops.ir.regime import Recompute

Names = Mapping[int, int]


def reentrant(graph: Graph, recompute: Recompute | None) -> Graph:
    """Add a :class:`Checkpoint` after each recomputed group of ``graph`` if ``recompute`` is reentrant."""
    if recompute is None or not recompute.reentrant or recompute.attention_only:
        return graph
    insertion = _Insertion(recompute, dict(graph.chosen), list(graph.values))
    body, names = insertion.region(graph.body, graph.returned | {value for _, value in graph.outputs})
    outputs = tuple((name, names.get(value, value)) for name, value in graph.outputs)
    return replace(graph, body=body, outputs=outputs, values=tuple(insertion.values))


@dataclass
class _Insertion:
    """Inserts checkpoints into a graph; appends the values that they return to ``values``."""

    recompute: Recompute
    chosen: Chosen
    values: list[Value]

    def region(self, nodes: tuple[Node, ...], leaving: frozenset[int]) -> tuple[tuple[Node, ...], dict[int, int]]:
        """Insert checkpoints into ``nodes``; return the new nodes, and (id inside, id outside) of values.

        The map has the values that a checkpoint returns. ``leaving`` are the ids of values that are read after ``nodes``.
        """
        found_groups = groups_of(nodes, self.recompute, self.chosen)
        owners = {node.id: name for name, members in found_groups.items() for node in members}
        groups = _members(nodes, owners)
        for name in found_groups:
            together = _in_one_run(nodes, groups[name])
            if together is not nodes:
                nodes, groups = together, _members(together, owners)
        member_of = {position: group for group in groups.values() for position in group}
        last = {value: position for position, node in enumerate(nodes) for value in reads(node)}
        names: dict[int, int] = {}
        found: list[Node] = []
        for position, node in enumerate(nodes):
            group = member_of.get(position)
            inner = isinstance(node, Loop) and group is None
            found.append(self.loop(renamed(node, names)) if inner else renamed(node, names))
            if group is not None and position == group[-1]:
                made = _made(nodes, group)
                later = {value for value in made if last.get(value, -1) > position or value in leaving}
                found.append(self.checkpoint([nodes[member] for member in group], made, later, names))
        return tuple(found), names

    def loop(self, loop: Node) -> Node:
        """Insert checkpoints into the bodies of ``loop``."""
        assert isinstance(loop, Loop)
        classes, rows = [], []
        for (truth, body), carries in zip(loop.classes, loop.carries, strict=True):
            nodes, names = self.region(body, frozenset(carry.final for carry in carries))
            classes.append((truth, nodes))
            rows.append(tuple(replace(carry, final=names.get(carry.final, carry.final)) for carry in carries))
        return replace(loop, classes=tuple(classes), carries=tuple(rows))

    def checkpoint(self, group: Sequence[Node], made: set[int], later: Iterable[int], names: dict[int, int]) -> Checkpoint:
        """Make the checkpoint after ``group``, and give new ids to the values that it returns.

        Args:
            group: The nodes that it recomputes.
            made: Ids of the values that the group defines.
            later: Ids of those that are read after the group: the checkpoint returns them.
            names: Old id -> new id of such values, extended here.
        """
        entering = {names.get(value, value) for node in group for value in reads(node)} - made
        inner = sorted(later)
        outer = range(len(self.values), len(self.values) + len(inner))
        self.values += [replace(self.values[value], id=new) for value, new in zip(inner, outer, strict=True)]
        names.update(zip(inner, outer, strict=True))
        members = frozenset(node.id for node in group if isinstance(node, (Operator, Loop)))
        return Checkpoint(tuple(sorted(entering)), tuple(inner), tuple(outer), members)


def _members(nodes: tuple[Node, ...], owners: Mapping[int, str]) -> dict[str, list[int]]:
    """Map each group to the positions of its nodes; ``owners`` maps node ids to groups.

    A select between a value of the group and a value from before the group belongs to the group, too.
    """
    found: dict[str, list[int]] = {}
    makers: dict[int, tuple[str | None, int]] = {}  # the group and the position that made a value
    for position, node in enumerate(nodes):
        owner = owners.get(node.id) if isinstance(node, (Operator, Loop)) else None
        if isinstance(node, Select):
            sides = [makers.get(value, (None, -1)) for value in (node.then, node.otherwise)]
            begun = [name for name, _ in sides if name and all(by == name or at < found[name][0] for by, at in sides)]
            owner = next(iter(begun), None)
        if owner is not None:
            found.setdefault(owner, []).append(position)
        makers.update(dict.fromkeys(results(node), (owner, position)))
    return found


def _in_one_run(nodes: tuple[Node, ...], group: list[int]) -> tuple[Node, ...]:
    """Reorder ``nodes`` so that those at the positions ``group`` follow one another.

    Other nodes between them that read their values move behind the group. If the group reads values of such nodes, it cannot
    run as a whole, and the order is unchanged.
    """
    if group[-1] - group[0] < len(group):
        return nodes
    members = frozenset(group)
    made, waiting = _made(nodes, group), set[int]()
    early: list[Node] = []
    late: list[Node] = []
    for position in range(group[0], group[-1] + 1):
        node = nodes[position]
        if position in members:
            if waiting & set(reads(node)):
                return nodes
            early.append(node)
        elif (made | waiting) & set(reads(node)):
            late.append(node)
            waiting |= set(results(node))
        else:
            early.append(node)
    return (*nodes[: group[0]], *early, *late, *nodes[group[-1] + 1 :])


def _made(nodes: tuple[Node, ...], group: Iterable[int]) -> set[int]:
    return {value for position in group for value in results(nodes[position])}


def results(node: Node) -> Iterator[int]:
    """Yield the ids of the values that a node defines."""
    match node:
        case Operator() | Checkpoint():
            yield from node.results
        case Select() | Pop():
            yield node.result
        case Loop():
            yield from (carry.result for carry in node.carries[0])


def reads(node: Node) -> Iterator[int]:
    """Yield the ids of values that a node, or a node in its bodies, reads and that are defined outside it."""
    match node:
        case Operator():
            yield from node.operands
        case Checkpoint():
            yield from (*node.inputs, *node.made)
        case Select():
            yield from (node.then, node.otherwise)
        case Push():
            yield node.value
        case Loop():
            yield from (carry.initial for carries in node.carries for carry in carries)
            for (_, body), carries in zip(node.classes, node.carries, strict=True):
                inside = {carry.argument for carry in carries} | _made(body, range(len(body)))
                yield from (value for inner in body for value in reads(inner) if value not in inside)


def renamed(node: Node, names: Names) -> Node:
    """``node`` with the ids of the values that it reads replaced according to ``names``."""
    if not names:
        return node
    match node:
        case Operator():
            works = tuple(_contraction(contraction, names) for contraction in node.contractions)
            return replace(node, operands=_all(node.operands, names), contractions=works)
        case Checkpoint():
            return replace(node, inputs=_all(node.inputs, names))
        case Select():
            return replace(node, then=names.get(node.then, node.then), otherwise=names.get(node.otherwise, node.otherwise))
        case Push():
            return replace(node, value=names.get(node.value, node.value))
        case Pop():
            return node
        case Loop():
            rows = (tuple(replace(c, initial=names.get(c.initial, c.initial)) for c in carries) for carries in node.carries)
            classes = tuple((truth, tuple(renamed(inner, names) for inner in body)) for truth, body in node.classes)
            return replace(node, classes=classes, carries=tuple(rows))


def _contraction(contraction: Contraction, names: Names) -> Contraction:
    operands = tuple(replace(operand, values=_all(operand.values, names)) for operand in contraction.operands)
    return replace(contraction, operands=operands)


def _all(values: tuple[int, ...], names: Names) -> tuple[int, ...]:
    return tuple(names.get(value, value) for value in values)
