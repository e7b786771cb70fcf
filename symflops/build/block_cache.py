"""Cache of block calls: a call like an earlier one gets a copy of its nodes under its own path.

An unrolled structure calls one block hundreds of times, and a call sees only its parameters, its operands and the conditions
around it. If those are equal, so are its nodes, up to paths and the numbers of values and nodes. A call with an effect beyond
its own nodes (a repeat, a stack, a finding, a path from the root) is not cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from symflops.algebra.truth import Truth
from symflops.build.parameter_table import Claims
from symflops.build.scopes import Binding, Frame
from symflops.build.services import Services
from symflops.model.contraction import Contraction
from symflops.model.nodes import Operator, Parameter, Select, Value
from symflops.model.path import Path
from symflops.model.spec import Block


@dataclass(frozen=True, slots=True)
class State:
    """The sizes of a graph before a call, the operands of the call, and the counts of effects so far."""

    values: int
    numbers: int
    operators: int
    nodes: int
    claims: int
    operands: tuple[int, ...]
    effects: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CachedCall:
    """What one call under the path ``base`` added to the graph."""

    base: str
    before: State
    numbers: int
    operators: int
    values: tuple[Value, ...]
    nodes: tuple[Operator | Select, ...]
    claims: tuple[tuple[Path, Claims], ...]
    results: tuple[tuple[int | None, Truth], ...]


class BlockCache:
    """The cached calls of one graph."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.calls: dict[Any, CachedCall] = {}

    def place(self, block: Block, frame: Frame, place_body: Callable[[], list[Binding]]) -> list[Binding]:
        """The results of a call of ``block`` in ``frame``: a copy of an equal call, else those of ``place_body``."""
        key = self._key(block, frame)
        if key is None:
            return place_body()
        if key in self.calls:
            found = _Copy(self.services, self.calls[key], frame).place()
            return place_body() if found is None else found
        before = self._state(frame)
        results = place_body()
        call = self._recorded(before, frame, results)
        if call is not None:
            self.calls[key] = call
        return results

    def _state(self, frame: Frame) -> State:
        graph, operators, claims = self.services.graph, self.services.limit.operators, self.services.parameters.claims
        counts = len(graph.values), graph.nodes, operators, len(frame.nodes), len(claims)
        return State(*counts, _operands(frame), self._effects())

    def _recorded(self, before: State, frame: Frame, results: list[Binding]) -> CachedCall | None:
        """What was added since ``before``, or None if the call had another effect."""
        claims, base = self.services.parameters.claims, str(frame.path)
        nodes = tuple(node for node in frame.nodes[before.nodes :] if isinstance(node, (Operator, Select)))
        operators = [node for node in nodes if isinstance(node, Operator)]
        own = dict.fromkeys(parameter.path for node in operators for parameter in node.parameters)
        added = len(frame.nodes) - before.nodes, len(claims) - before.claims, self._effects()
        if added != (len(nodes), len(own), before.effects) or not _below(base, (*own, *(node.path for node in operators))):
            return None
        graph = self.services.graph
        return CachedCall(
            base, before, graph.nodes - before.numbers, self.services.limit.operators - before.operators,
            tuple(graph.values[before.values :]), nodes, tuple((path, claims[path]) for path in own),
            tuple((None if result.value is None else result.value.id, result.present) for result in results),
        )  # fmt: skip

    def _key(self, block: Block, frame: Frame) -> Any:
        """All that a call depends on but its path, or None if it depends on more."""
        services = self.services
        around = services.patterns or services.parameters.sharing or services.graph.depth
        if around or not _is_plain(frame) or any(map(services.graph.is_poisoned, frame.values.values())):
            return None
        names = frame.sizes if block.local else {}
        own = tuple((name, value) for name, value in frame.names.items() if names.get(name) is not value)
        key = (id(block), own, _given(frame), frame.guard, frame.no_grad, frame.regions, frame.role)
        try:
            hash(key)
        except TypeError:
            return None
        return key

    def _effects(self) -> tuple[int, ...]:
        """Counts of what a call may leave behind beyond its own nodes."""
        services, graph = self.services, self.services.graph
        choices, repeats = len(graph.chosen) + len(graph.listed), len(graph.indices) + len(graph.returned)
        others = services.stacks.uses, services.evaluator.absolute
        return len(services.report.diagnostics), choices, repeats, len(graph.poisoned), *others


def _is_plain(frame: Frame) -> bool:
    """Whether a call depends on nothing around it: its path is a text, and no repeat or group of experts is around."""
    path = frame.path.parts
    around = frame.copies or frame.lists or frame.visits
    return len(path) == 1 and isinstance(path[0], str) and frame.decide is Frame.decide and not around


def _operands(frame: Frame) -> tuple[int, ...]:
    """The operands of a call, each once."""
    return tuple(dict.fromkeys(binding.value.id for binding in frame.values.values() if binding.value is not None))


def _given(frame: Frame) -> tuple[tuple[Any, ...], ...]:
    """The operands of a call by name, up to the ids of values: which are equal, and what each looks like."""
    given: list[tuple[Any, ...]] = []
    order: dict[int, int] = {}
    for name, binding in frame.values.items():
        value = binding.value
        if value is None:
            given.append((name, binding.present))
        else:
            same = order.setdefault(value.id, len(order))
            given.append((name, binding.present, same, value.name, value.stream, value.stream.groups, value.width))
    return tuple(given)


def _below(base: str, paths: Iterable[Path]) -> bool:
    return all(len(path.parts) == 1 and f"{path}.".startswith(f"{base}.") for path in paths)


class _Copy:
    """Copies a cached call into another frame, with its path and numbers shifted."""

    def __init__(self, services: Services, call: CachedCall, frame: Frame) -> None:
        self.services, self.call, self.frame = services, call, frame
        self.base, self.cut = str(frame.path), len(call.base)
        self.shift = len(services.graph.values) - call.before.values
        self.numbers = services.graph.nodes - call.before.numbers
        self.ids: Mapping[int, int] = dict(zip(call.before.operands, _operands(frame), strict=True))
        self.parameters: dict[int, Parameter] = {}

    def place(self) -> list[Binding] | None:
        """The results, or None if one of its parameters is claimed already."""
        graph, table, call = self.services.graph, self.services.parameters, self.call
        claims = [(self.path(path), claim) for path, claim in call.claims]
        if any(path in table.claims for path, _ in claims):
            return None
        self.services.limit.grow(call.operators)
        given = {binding.value.id: binding.value for binding in self.frame.values.values() if binding.value is not None}
        graph.values.extend(replace(value, id=value.id + self.shift) for value in call.values)
        self.frame.nodes.extend(map(self.node, call.nodes))
        for path, claim in claims:
            table.claims[path] = tuple((self.parameter(parameter), tied) for parameter, tied in claim)
        graph.nodes += call.numbers
        results = []
        for identity, present in call.results:
            new = None if identity is None else self.value(identity)
            value = None if new is None else given[new] if new in given else graph.values[new]
            results.append(Binding(value, present))
        return results

    def path(self, path: Path) -> Path:
        return Path((self.base + str(path)[self.cut :],))

    def value(self, identity: int) -> int:
        return identity + self.shift if identity >= self.call.before.values else self.ids[identity]

    def values(self, identities: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(map(self.value, identities))

    def node(self, node: Operator | Select) -> Operator | Select:
        if isinstance(node, Select):
            return Select(self.value(node.result), node.condition, self.value(node.then), self.value(node.otherwise))
        return replace(
            node,
            id=node.id + self.numbers,
            path=self.path(node.path),
            operands=self.values(node.operands),
            results=self.values(node.results),
            parameters=tuple(map(self.parameter, node.parameters)),
            contractions=tuple(map(self.contraction, node.contractions)),
        )

    def parameter(self, parameter: Parameter) -> Parameter:
        if id(parameter) not in self.parameters:
            self.parameters[id(parameter)] = replace(parameter, path=self.path(parameter.path))
        return self.parameters[id(parameter)]

    def contraction(self, contraction: Contraction) -> Contraction:
        operands = tuple(
            replace(operand, values=self.values(operand.values)) if operand.values else operand
            for operand in contraction.operands
        )
        return replace(contraction, operands=operands)
