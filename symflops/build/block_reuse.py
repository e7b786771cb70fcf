"""Blocks that are called again under a like call: what the first one placed is placed once more, under another path.

A structure that is written out calls one block hundreds of times, and a call sees nothing but its parameters, its operands
and the conditions that it stands under. Where those are alike, so is all that it places, up to paths and the numbers of
values and nodes. What a call does beyond its own nodes (a repeat, a stack, a finding, a path from the root) is not
recorded, and such a call is placed anew each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from symflops.algebra.truth import Truth
from symflops.build.scopes import Binding, Frame
from symflops.model.contraction import Contraction, Operand
from symflops.model.nodes import Operator, Parameter, Select, Value
from symflops.model.path import Path
from symflops.model.spec import Block

if TYPE_CHECKING:
    from symflops.build.builder import Builder

Claims = tuple[tuple[Parameter, bool], ...]


@dataclass(frozen=True, slots=True)
class Begun:
    """Where a graph stood when a call began, and what the call was given."""

    values: int
    number: int
    placed: int
    nodes: int
    parameters: int
    operands: tuple[int, ...]
    effects: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """What one call placed under the path ``base``, after how much."""

    base: str
    before: Begun
    numbers: int
    placed: int
    values: tuple[Value, ...]
    nodes: tuple[Operator | Select, ...]
    claims: tuple[tuple[Path, Claims], ...]
    results: tuple[tuple[int | None, Truth], ...]


class Replays:
    """The recordings of one graph."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.known: dict[Any, Recording] = {}

    def place(self, block: Block, frame: Frame, anew: Callable[[], list[Binding]]) -> list[Binding]:
        """The results of a call of ``block`` in ``frame``: as a like call before placed it, else as ``anew`` does."""
        key = self.key(block, frame)
        if key is None:
            return anew()
        if key in self.known:
            found = _Again(self.builder, self.known[key], frame).place()
            return anew() if found is None else found
        before = self.begun(frame)
        results = anew()
        recording = self.recorded(before, frame, results)
        if recording is not None:
            self.known[key] = recording
        return results

    def begun(self, frame: Frame) -> Begun:
        """Where the graph stands before a call."""
        builder = self.builder
        counts = len(builder.values), builder.count, builder.placed, len(frame.nodes), len(builder.parameters)
        return Begun(*counts, _operands(frame), self.effects())

    def recorded(self, before: Begun, frame: Frame, results: list[Binding]) -> Recording | None:
        """What was placed since ``before``, where that is all that happened."""
        builder, base = self.builder, str(frame.path)
        nodes = tuple(node for node in frame.nodes[before.nodes :] if isinstance(node, (Operator, Select)))
        operators = [node for node in nodes if isinstance(node, Operator)]
        own = dict.fromkeys(parameter.path for node in operators for parameter in node.parameters)
        alone = len(nodes) == len(frame.nodes) - before.nodes and len(own) == len(builder.parameters) - before.parameters
        below = all(_below(path, base) for path in (*own, *(node.path for node in operators)))
        if not alone or not below or self.effects() != before.effects:
            return None
        claims = tuple((path, builder.parameters[path]) for path in own)
        there = tuple((None if one.value is None else one.value.id, one.present) for one in results)
        grown = builder.count - before.number, builder.placed - before.placed
        return Recording(base, before, *grown, tuple(builder.values[before.values :]), nodes, claims, there)

    def key(self, block: Block, frame: Frame) -> Any:
        """All that a call depends on but its path, or None where it depends on more."""
        builder = self.builder
        plain = len(frame.path.parts) == 1 and isinstance(frame.path.parts[0], str) and frame.decide is Frame.decide
        if not plain or builder.patterns or builder.sharing or builder.depth or frame.copies or frame.lists or frame.visits:
            return None
        given: list[tuple[Any, ...]] = []
        order: dict[int, int] = {}
        for name, binding in frame.values.items():
            value = binding.value
            if value is None:
                given.append((name, binding.present))
            elif value.id in builder.poisoned:
                return None
            else:
                same = order.setdefault(value.id, len(order))
                given.append((name, binding.present, same, value.name, value.stream, value.stream.groups, value.width))
        names = frame.sizes if block.local else {}
        own = tuple((name, value) for name, value in frame.names.items() if names.get(name) is not value)
        key = (id(block), own, tuple(given), frame.guard, frame.no_grad, frame.regions)
        try:
            hash(key)
        except TypeError:
            return None
        return key

    def effects(self) -> tuple[int, ...]:
        """What a call may leave behind beyond its own nodes."""
        builder = self.builder
        findings, choices = len(builder.report.diagnostics), len(builder.chosen) + len(builder.listed)
        repeats = len(builder.indices) + len(builder.returned)
        return findings, choices, repeats, len(builder.poisoned), builder.stacks.uses, builder.rooted


def _operands(frame: Frame) -> tuple[int, ...]:
    """The values that a call is given, each once."""
    return tuple(dict.fromkeys(binding.value.id for binding in frame.values.values() if binding.value is not None))


def _below(path: Path, base: str) -> bool:
    return len(path.parts) == 1 and f"{path}.".startswith(f"{base}.")


class _Again:
    """Places a recording in another frame."""

    def __init__(self, builder: Builder, recording: Recording, frame: Frame) -> None:
        self.builder, self.recording, self.frame = builder, recording, frame
        self.base, self.cut = str(frame.path), len(recording.base)
        self.shift = len(builder.values) - recording.before.values
        self.numbers = builder.count - recording.before.number
        self.ids: Mapping[int, int] = dict(zip(recording.before.operands, _operands(frame), strict=True))
        self.parameters: dict[int, Parameter] = {}

    def place(self) -> list[Binding] | None:
        """The results; None where a parameter of its own is there already."""
        builder, recording = self.builder, self.recording
        claims = [(self.path(path), one) for path, one in recording.claims]
        if any(path in builder.parameters for path, _ in claims):
            return None
        builder.grow(recording.placed)
        values = [Value(one.id + self.shift, one.name, one.stream, one.width, one.span) for one in recording.values]
        given = {binding.value.id: binding.value for binding in self.frame.values.values() if binding.value is not None}
        builder.values.extend(values)
        self.frame.nodes.extend(map(self.node, recording.nodes))
        for path, claim in claims:
            builder.parameters[path] = tuple((self.parameter(parameter), tied) for parameter, tied in claim)
        builder.count += recording.numbers
        results = []
        for identity, present in recording.results:
            new = None if identity is None else self.value(identity)
            value = None if new is None else given[new] if new in given else builder.values[new]
            results.append(Binding(value, present))
        return results

    def path(self, path: Path) -> Path:
        return Path((self.base + str(path)[self.cut :],))

    def value(self, identity: int) -> int:
        return identity + self.shift if identity >= self.recording.before.values else self.ids[identity]

    def values(self, identities: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(map(self.value, identities))

    def node(self, node: Operator | Select) -> Operator | Select:
        if isinstance(node, Select):
            return Select(self.value(node.result), node.condition, self.value(node.then), self.value(node.otherwise))
        return Operator(
            node.id + self.numbers, node.kind, self.path(node.path), self.values(node.operands), self.values(node.results),
            tuple(map(self.parameter, node.parameters)), tuple(map(self.contraction, node.contractions)), node.guard,
            node.saves, node.flows, node.role, node.caption, node.span, node.visits, node.regions,
        )  # fmt: skip

    def parameter(self, one: Parameter) -> Parameter:
        if id(one) not in self.parameters:
            self.parameters[id(one)] = Parameter(
                self.path(one.path), one.shape, one.exists, one.trainable, one.span, one.adapter, one.lists
            )
        return self.parameters[id(one)]

    def contraction(self, one: Contraction) -> Contraction:
        operands = tuple(
            Operand(side.label, self.values(side.values), side.parameters, side.inner, side.seen) if side.values else side
            for side in one.operands
        )
        return Contraction(one.name, operands, one.size, one.items, one.extent, one.kind, one.seen, one.role, one.side)
