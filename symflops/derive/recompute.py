"""Activation checkpointing: which forward work the backward pass recomputes, and reentrant checkpoints as autograd functions.

The backward pass recomputes a group when it needs a tensor that the group saved: when an operator in the group is live, its
result needs a gradient, and it saves something (a linear that trains only its bias saves nothing).

- Without early stop, the whole group is recomputed, dead operators included.
- With early stop, PyTorch's default for ``use_reentrant=False``, recomputation stops at the last operator that saves a tensor
  and whose result needs a gradient. Of this operator, only contractions whose result it saves are recomputed: an attention
  saves its softmax, so the scores are recomputed and the mix is not.
- A reentrant checkpoint recomputes a whole group if a value that enters it needs a gradient and a value that leaves it is live.

A loop inside a group is recomputed with all its iterations, or, if recomputation stops before it, not at all.

PyTorch runs a reentrant group (``use_reentrant=True``) without gradients, and again in the backward pass. From outside, it is
one autograd function. Each value that leaves it needs a gradient if any value that enters it does, so trained weights on frozen
inputs get none. Its backward pass fills unused gradients with zeros, so if one value that leaves it is live, all are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sympy import Expr, Integer

from symflops.derive.analyses import Trains, operand_need
from symflops.derive.iterations import Facts, all_iterations, reachable_bodies
from symflops.formula.truth import NO, Truth, any_of
from symflops.ir.graph import Graph
from symflops.ir.nodes import Checkpoint, Loop, Node, Operator, Pop, Push, Select, Value, call_of
from symflops.ir.patterns import Path, any_matches, prefixes
from symflops.ir.regime import Recompute
from symflops.support.findings import Diagnostic, SpecError

Chosen = Mapping[Expr, frozenset[str]]
Counts = dict[tuple[int, int], Expr]
"""(operator id, position of a contraction) -> number of recomputations."""

Names = Mapping[int, int]
"""Id of a value inside a reentrant group -> its id outside."""

ONE = Integer(1)


def groups_of(nodes: tuple[Node, ...], recompute: Recompute, chosen: Chosen) -> dict[str, list[Operator | Loop]]:
    """Map each call of a recomputed group, as text, to its operators and loops in ``nodes``, in order."""
    found: dict[str, list[Operator | Loop]] = {}
    for node in nodes:
        if isinstance(node, (Operator, Loop)):
            group = group_of(node.modules, recompute, chosen)
            if group:
                found.setdefault(repr((group, call_of(node, group[-1]))), []).append(node)
    return found


def is_inside(loop: Loop, recompute: Recompute | None, chosen: Chosen) -> bool:
    """Whether ``loop`` lies inside a recomputed group, so that it is recomputed as a whole."""
    return recompute is not None and not recompute.attention_only and bool(group_of(loop.modules, recompute, chosen))


def group_of(modules: Iterable[Path], recompute: Recompute, chosen: Chosen) -> tuple[Path, ...]:
    """The first of ``modules``, up to and with the recomputed group; empty if none of them is a group.

    A module is a group if a pattern of ``recompute`` matches it and none of its parents, whether its parents run or not. So a
    part of a matching module is no group, even if it is called from elsewhere.
    """
    outer: list[Path] = []
    for module in modules:
        outer.append(module)
        if any_matches(recompute.groups, module, chosen):
            around = next(prefix for prefix in prefixes(module) if any_matches(recompute.groups, prefix, chosen))
            return tuple(outer) if around == module else ()
    return ()


def recomputed(
    nodes: tuple[Node, ...], recompute: Recompute, chosen: Chosen, need: Facts, live: Facts, trains: Trains
) -> Counts:
    """Number of recomputations of each contraction of ``nodes`` each time that ``nodes`` run."""
    found: Counts = {}
    if recompute.reentrant and not recompute.attention_only:
        known = {node.id: node for node in nodes if isinstance(node, (Operator, Loop))}
        for checkpoint in (node for node in nodes if isinstance(node, Checkpoint)):
            entered = any_of(need.values[value] for value in checkpoint.inputs)
            alive = entered & any_of(live.values.get(result, NO) for result in checkpoint.results)
            for member in checkpoint.members:
                _mark(found, known[member], alive)
        return found
    for group in groups_of(nodes, recompute, chosen).values():
        if not recompute.attention_only:
            _group(found, group, recompute.early_stop, need, live, trains)
            continue
        for node in group:
            if isinstance(node, Operator) and node.kind == "attention":  # its scores, if its backward pass runs
                alive = live.operators[node.id] & any_of(need.values[result] for result in node.results)
                _mark(found, node, alive, intermediate(node))
    return found


def _group(found: Counts, group: list[Operator | Loop], early_stop: bool, need: Facts, live: Facts, trains: Trains) -> None:
    """Record in ``found`` the recomputed nodes: all, or with ``early_stop`` up to the last that saves."""
    saving = {node.id: _keeps(node, need, live, trains) for node in group}
    alive = any_of(wanted for _, wanted in saving.values())
    later = NO
    for node in reversed(group):
        saves, _ = saving[node.id]
        if not early_stop:
            _mark(found, node, alive)
            continue
        _mark(found, node, alive & later)
        if isinstance(node, Loop):
            if not (alive & saves).implies(later):
                message = f"recomputation may stop inside the repeat '{node.path}'"
                raise SpecError(
                    [Diagnostic("bad-recompute", message, node.span, "recompute without early stop, or another group")]
                )
        elif node.saves != "nothing":
            _mark(found, node, alive & (later | saves), intermediate(node))
        later = later | saves


def _keeps(node: Operator | Loop, need: Facts, live: Facts, trains: Trains) -> tuple[Truth, Truth]:
    """(Condition under which autograd saves a tensor of ``node``, condition under which the backward pass needs it)."""
    if isinstance(node, Operator):
        saves = saved(node, need, trains)
        return saves & node.guard, live.operators[node.id] & saves
    found = [(NO, NO)]
    for reached, body, inner_need, inner_live in reachable_bodies(node, need, live):
        inside = [_keeps(one, inner_need, inner_live, trains) for one in body if isinstance(one, (Operator, Loop))]
        found += [(saves & reached, wanted & reached) for saves, wanted in inside]
    return any_of(saves for saves, _ in found), any_of(wanted for _, wanted in found)


def saved(operator: Operator, need: Facts, trains: Trains) -> Truth:
    """Condition under which autograd saves a tensor of ``operator``.

    An operator that saves its ``factors`` does so only if one of them needs a gradient.
    """
    if operator.saves == "nothing":
        return NO
    if operator.saves != "factors":
        return any_of(need.values[result] for result in operator.results)
    sides = [side for contraction in operator.contractions for side in contraction.operands]
    return any_of(operand_need(side, operator, need, trains) for side in sides) if operator.flows else NO


def intermediate(operator: Operator) -> frozenset[str]:
    """Contractions of ``operator`` that feed another of its contractions; autograd saves their results."""
    return frozenset(name for contraction in operator.contractions for side in contraction.operands for name in side.inner)


def _mark(found: Counts, node: Node, truth: Truth, only: frozenset[str] | None = None, times: Expr = ONE) -> None:
    """Record in ``found`` that contractions of ``node`` are recomputed if ``truth``.

    In a loop, they are recomputed in all iterations. ``only`` are the names of the contractions to record, by default all.
    ``times`` is the number of recomputations per run of ``node``, more than one inside a loop.
    """
    if isinstance(node, Loop):
        for bracket, body in node.classes:
            for inner in body:
                _mark(found, inner, truth, only, times * all_iterations(node, bracket))
    elif isinstance(node, Operator):
        for position, contraction in enumerate(node.contractions):
            if only is None or contraction.name in only:
                found[node.id, position] = times * (truth & node.guard).expr


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
        """Insert checkpoints into ``nodes``: (new nodes, id of a value inside a group -> its id outside).

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
    """Map each group, as text of :func:`groups_of`, to the positions of its nodes; ``owners`` maps node ids to groups.

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
            sides = ([replace(side, values=_all(side.values, names)) for side in work.operands] for work in node.contractions)
            works = (replace(work, operands=tuple(some)) for work, some in zip(node.contractions, sides, strict=True))
            return replace(node, operands=_all(node.operands, names), contractions=tuple(works))
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


def _all(values: tuple[int, ...], names: Names) -> tuple[int, ...]:
    return tuple(names.get(value, value) for value in values)
