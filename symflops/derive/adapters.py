"""Adapters (LoRA, DoRA): adds low-rank projections beside each targeted operator of a graph.

For ``y = W x`` an adapter adds ``y += B (A x)``: ``A`` projects the width of ``x`` to the rank, ``B`` the rank to the width of
``y``. For a convolution, ``A`` is a convolution of the same shape to ``rank`` channels, and ``B`` a pointwise one. The base
weight moves to the name that the adapter's library gives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sympy import Expr, Integer

from symflops.algebra.truth import Truth, any_of
from symflops.build.limits import MAX_OPERATORS
from symflops.diagnostics.findings import Diagnostic, SpecError
from symflops.model.contraction import Contraction, Extent, Operand
from symflops.model.graph import Graph
from symflops.model.nodes import Node, Operator, Parameter, Value, with_operators
from symflops.model.path import Path
from symflops.model.patterns import any_matches
from symflops.model.regime import Adapter

KINDS = ("linear", "conv")


def adapt(graph: Graph, adapters: Sequence[Adapter]) -> Graph:
    """``graph`` with ``adapters`` inserted, one after another.

    Raises:
        SpecError: a target is a module that has no weight to adapt.
    """
    for adapter in adapters:
        last = max((operator.id for operator in graph.operators()), default=0)
        insertion = _Insertion(adapter, dict(graph.chosen), list(graph.values), last + 1000)
        body = with_operators(graph.body, insertion.replaced)
        graph = replace(graph, body=body, values=tuple(insertion.values))
        if sum(1 for _ in graph.operators()) > MAX_OPERATORS:
            message = f"with its adapters the structure has more than {MAX_OPERATORS:,} operators"
            raise SpecError(
                [Diagnostic("regime-too-large", message, None, "an adapter also stands on those before it: narrow 'targets'")]
            )
    return graph


@dataclass
class _Insertion:
    """Inserts one adapter; ``values`` grows, ``last`` is the id of the latest operator."""

    adapter: Adapter
    chosen: Mapping[Expr, frozenset[str]]
    values: list[Value]
    last: int

    def replaced(self, node: Operator) -> list[Node]:
        return self.adapted(node) if node.parameters and self.targeted(node) else [node]

    def targeted(self, node: Operator) -> bool:
        if not any_matches(self.adapter.targets, node.path, self.chosen):
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
        self.last += 1
        return self.last

    def adapted(self, node: Operator) -> list[Node]:
        """The base operator under its new name, the two projections, and their sum."""
        base_name, down_name, up_name = self.adapter.names
        (contraction,) = node.contractions
        source = next(operand for operand in contraction.operands if operand.values)
        weights = next(operand for operand in contraction.operands if operand.parameters).parameters
        weight = node.parameters[weights[0]]
        plain = tuple(self.value(self.values[result], self.values[result].width) for result in node.results)
        exists = any_of(node.parameters[position].exists for position in weights)  # a tied weight has one of several names
        moved = tuple(replace(parameter, path=base_path(node, parameter, base_name)) for parameter in node.parameters)
        rank = Integer(self.adapter.rank)
        out, inner = weight.shape[0], weight.shape[1:]
        first = self.values[node.results[0]]
        low, high = self.value(first, rank), self.value(first, out)
        nodes: list[Node] = [
            replace(node, path=node.path.join(base_name), parameters=moved, results=tuple(v.id for v in plain))
        ]
        size, ones = contraction.size, (Integer(1),) * (len(inner) - 1)
        down = self.projection(node, down_name, (rank, *inner), exists, source, low, size / out * rank, contraction)
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
        """DoRA's norm of the adapted weight: ``B A`` applied to the unit vectors once a pass, without a gradient."""
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


def base_path(node: Operator, parameter: Parameter, name: str) -> Path:
    """The path of a parameter of the base, with the base's ``name`` after the module; a parameter elsewhere keeps its path."""
    own = str(parameter.path).rpartition(".")[2]
    return node.path.join(name).join(own) if parameter.path.parent == node.path else parameter.path
