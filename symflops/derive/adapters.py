"""Adapters: a graph in which each targeted operator has low-rank projections beside it.

For ``y = W x`` an adapter adds ``y += B (A x)`` with ``A`` from the width of ``x`` to the rank and ``B`` from there to the
width of ``y``. A convolution gets a convolution of its own shape to ``rank`` channels and a pointwise one. The base weight
moves to the name that the adapter's library gives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sympy import Expr, Integer

from symflops.algebra.truth import Truth, any_of
from symflops.diagnostics.findings import Diagnostic, SpecError
from symflops.model.contraction import Contraction, Extent, Operand
from symflops.model.graph import Graph
from symflops.model.nodes import Loop, Node, Operator, Parameter, Value
from symflops.model.path import Path
from symflops.model.patterns import matches
from symflops.model.regime import Adapter

KINDS = ("linear", "conv")


def adapt(graph: Graph, adapters: Sequence[Adapter]) -> Graph:
    """``graph`` with ``adapters`` put in, one after another.

    Raises:
        SpecError: a target is a module that has no weight to adapt.
    """
    for adapter in adapters:
        work = _Adapting(
            adapter, dict(graph.chosen), list(graph.values), max((op.id for op in graph.operators()), default=0) + 1000
        )
        body = work.region(graph.body)
        graph = replace(graph, body=body, values=tuple(work.values))
    return graph


@dataclass
class _Adapting:
    adapter: Adapter
    chosen: Mapping[Expr, frozenset[str]]
    values: list[Value]
    next: int
    made: list[Node] = field(default_factory=list)

    def region(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        found: list[Node] = []
        for node in nodes:
            if isinstance(node, Loop):
                found.append(replace(node, classes=tuple((truth, self.region(body)) for truth, body in node.classes)))
            elif isinstance(node, Operator) and node.parameters and self.targeted(node):
                found.extend(self.adapted(node))
            else:
                found.append(node)
        return tuple(found)

    def targeted(self, node: Operator) -> bool:
        if not any(matches(target, node.path, self.chosen) for target in self.adapter.targets):
            return False
        if node.kind not in KINDS:
            message = f"an adapter cannot stand on '{node.path}', whose kind is '{node.kind}'"
            raise SpecError([Diagnostic("bad-adapter", message, node.span, "targets are linears and convolutions")])
        return True

    def value(self, like: Value, width: Expr | None) -> Value:
        value = replace(like, id=len(self.values), width=width)
        self.values.append(value)
        return value

    def number(self) -> int:
        self.next += 1
        return self.next

    def adapted(self, node: Operator) -> list[Node]:
        """The operator under its new name, the two projections, and the sum."""
        base_name, down_name, up_name = self.adapter.names
        (contraction,) = node.contractions
        source = next(operand for operand in contraction.operands if operand.values)
        weights = next(operand for operand in contraction.operands if operand.parameters).parameters
        weight = node.parameters[weights[0]]
        plain = tuple(self.value(self.values[result], self.values[result].width) for result in node.results)
        exists = any_of(node.parameters[position].exists for position in weights)  # one of several names, where it is tied
        moved = tuple(replace(parameter, path=self.below(node, parameter, base_name)) for parameter in node.parameters)
        rank = Integer(self.adapter.rank)
        out, inner = weight.shape[0], weight.shape[1:]
        first = self.values[node.results[0]]
        low, high = self.value(first, rank), self.value(first, out)
        nodes: list[Node] = [
            replace(node, path=node.path.join(base_name), parameters=moved, results=tuple(v.id for v in plain))
        ]
        size, ones = contraction.size, (Integer(1),) * (len(inner) - 1)
        down = self.projection(node, down_name, (rank, *inner), exists, source, low, _scaled(size, rank, out), contraction)
        low_side = Operand("low", (low.id,))
        up = self.projection(node, up_name, (out, rank, *ones), exists, low_side, high, rank * out, contraction)
        nodes += [down, up]
        if self.adapter.kind == "dora":
            nodes.append(self.magnitude(node, weight, exists, high))
        total = Operator(
            self.number(), "add", node.path, (*(v.id for v in plain), high.id), node.results,
            guard=node.guard, saves="nothing", flows=node.flows, span=node.span, visits=node.visits,
        )  # fmt: skip
        return [*nodes, total]

    def below(self, node: Operator, parameter: Parameter, name: str) -> Path:
        """The path of a parameter of the base: with the base's name between the module and its own."""
        own = str(parameter.path).rpartition(".")[2]
        inside = parameter.path.parent == node.path
        return node.path.join(name).join(own) if inside else parameter.path

    def projection(
        self,
        node: Operator,
        name: str,
        shape: tuple[Expr, ...],
        exists: Truth,
        source: Operand,
        result: Value,
        size: Expr,
        like: Contraction,
    ) -> Operator:
        path = node.path.join(name)
        parameter = Parameter(path.join("weight"), shape, exists, span=node.span, adapter=True, lists=node.parameters[0].lists)
        contraction = Contraction(like.name, (source, Operand("W", parameters=(0,))), size, like.items, like.extent, like.kind)
        return Operator(
            self.number(), node.kind, path, source.values, (result.id,), (parameter,), (contraction,), node.guard,
            "operands", node.flows, node.role, f"rank {self.adapter.rank}", node.span, node.visits,
        )  # fmt: skip

    def magnitude(self, node: Operator, weight: Parameter, exists: Truth, high: Value) -> Operator:
        """DoRA: the norm of the adapted weight, from ``B A`` on the unit vectors, outside of the gradient, once a pass."""
        rank, (out, inner) = Integer(self.adapter.rank), weight.shape[:2]
        down = self.adapter.names[1]
        path = node.path.join(down.replace("lora_A", "lora_magnitude_vector") if "lora_A" in down else "magnitude")
        parameter = Parameter(path.join("weight"), (out,), exists, span=node.span, adapter=True, lists=weight.lists)
        once = Extent(Integer(1), Integer(1))
        unit = Operand("unit vectors")
        sizes = (inner * inner * rank, inner * rank * out)
        works = tuple(
            Contraction(name, (unit, unit), size, "once", once) for name, size in zip(("A I", "B A"), sizes, strict=True)
        )
        result = self.value(self.values[node.results[0]], high.width)
        return Operator(
            self.number(), "map", path, (), (result.id,), (parameter,), works, node.guard,
            "nothing", False, node.role, "norm", node.span, node.visits,
        )  # fmt: skip


def _scaled(size: Expr, rank: Expr, out: Expr) -> Expr:
    """The multiply-adds of a projection to ``rank`` instead of ``out``."""
    return size / out * rank
