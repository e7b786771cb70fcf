"""Values that leave the modules that make them, and those whose gradient a regime forces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from symflops.formula.truth import NO, YES, Truth
from symflops.ir.graph import Graph
from symflops.ir.nodes import Call, Checkpoint, Loop, Node, Operator, Pop, Push, Select, call_of
from symflops.ir.patterns import Path, any_matches, prefixes
from symflops.ir.regime import Regime

Place = frozenset[Call]


def forced(graph: Graph, regime: Regime) -> dict[int, Truth]:
    """Map values to the condition under which ``regime`` or their class makes them need a gradient."""
    chosen = dict(graph.chosen)
    found: dict[int, Truth] = defaultdict(lambda: NO)
    for module, value, truth in leaving(graph, regime) if regime.force_grad else ():
        if any_matches(regime.force_grad, module, chosen):
            found[value] |= truth
    for operator in graph.operators() if regime.trains else ():
        if operator.forces is not NO and not any_matches(regime.no_force_grad, operator.path, chosen):
            found.update((value, found[value] | operator.forces) for value in operator.results)
    return found


def leaving(graph: Graph, regime: Regime) -> Iterator[tuple[Path, int, Truth]]:
    """Yield (module, value, condition) for each value that ``module`` makes under ``condition`` and others read.

    Values that nothing reads are included.
    """
    flow = _Flow(graph, regime)
    for value, calls in flow.made.items():
        read = [*flow.readers[value], *(place for pop in flow.popped(value) for place in flow.reached(pop))]
        for call, truth in calls.items():
            if any(call not in place for place in read) or not (read or flow.copies[value]):
                yield call[0], value, truth


class _Flow:
    """Which calls of modules make the values of a graph, and which read them.

    Attributes:
        made: Value -> the calls that make it, each with the condition.
        readers: Value -> for each reader, the calls that are running.
        copies: Value -> results of the selects that read it.
    """

    def __init__(self, graph: Graph, regime: Regime) -> None:
        self.regime, self.chosen = regime, dict(graph.chosen)
        self.made: dict[int, dict[Call, Truth]] = {}
        self.readers: dict[int, list[Place]] = defaultdict(list)
        self.copies: dict[int, list[int]] = defaultdict(list)
        self.pushed: dict[int, list[str]] = defaultdict(list)
        self.pops: dict[str, list[int]] = defaultdict(list)
        self._enter(graph.body)
        self._read((value for _, value in graph.outputs), frozenset())

    def popped(self, value: int) -> list[int]:
        """Values that are taken from the stacks that ``value`` is on."""
        return [pop for sequence in self.pushed[value] for pop in self.pops[sequence]]

    def reached(self, value: int) -> Iterator[Place]:
        """The readers of ``value``, those behind selects included."""
        yield from self.readers[value]
        for copy in self.copies[value]:
            yield from self.reached(copy)

    def _read(self, values: Iterable[int], place: Place) -> None:
        for value in values:
            self.readers[value].append(place)

    def _enter(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            match node:
                case Operator():
                    self._read(node.operands, _place(node))
                    self.made.update((value, dict.fromkeys(_place(node), YES)) for value in node.results)
                case Select():
                    calls: dict[Call, Truth] = defaultdict(lambda: NO)
                    for value, truth in ((node.then, node.condition), (node.otherwise, ~node.condition)):
                        self.copies[value].append(node.result)
                        for call, made in self.made.get(value, {}).items():
                            calls[call] |= made & truth
                    self.made[node.result] = calls
                case Checkpoint():
                    place = self._around(nodes, node)
                    self._read(node.made, place)
                    for value, result in zip(node.made, node.results, strict=True):
                        self.made[result] = {call: truth for call, truth in self.made.get(value, {}).items() if call in place}
                case Loop():
                    place = _place(node)
                    for (_, body), carries in zip(node.classes, node.carries, strict=True):
                        self._enter(body)
                        self._read((value for carry in carries for value in (carry.initial, carry.final)), place)
                    self.made.update((carry.result, dict.fromkeys(place, YES)) for carry in node.carries[0])
                case Push():
                    self.pushed[node.value].append(node.sequence)
                case Pop():
                    self.pops[node.sequence].append(node.result)

    def _around(self, nodes: tuple[Node, ...], checkpoint: Checkpoint) -> Place:
        """The calls that are running around the recomputed group of ``checkpoint``."""
        members = (node for node in nodes if isinstance(node, (Operator, Loop)) and node.id in checkpoint.members)
        groups = self.regime.recompute.groups if self.regime.recompute else ()
        shared = frozenset.intersection(*map(_place, members))
        inside = {call for call in shared for module in prefixes(call[0]) if any_matches(groups, module, self.chosen)}
        return shared - inside


def _place(node: Operator | Loop) -> Place:
    return frozenset(call_of(node, module) for module in node.modules)
