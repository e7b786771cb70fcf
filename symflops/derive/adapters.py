"""Inserts adapters (LoRA, DoRA) and the element-wise work that a convention counts into a graph.

For ``y = W x`` an adapter adds ``y += B (A x)``: ``A`` projects the width of ``x`` to the rank, ``B`` the rank to the width of
``y``. For a convolution, ``A`` is a convolution of the same shape to ``rank`` channels, and ``B`` a pointwise one. The base
weight moves to the name that the adapter's library gives it.

Element-wise work becomes a contraction of its own. Its number of elements depends on the role: a lookup, norm, product or sum
counts those of its result, a bias those of the result that it is added to, the weighted sum of experts those of all expert
outputs, a softmax one per score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from sympy import Add, Expr, Integer, Mul, expand

from symflops.build.scopes import MAX_OPERATORS
from symflops.derive.merged import merge
from symflops.formula.truth import Truth, any_of
from symflops.ir.contraction import Contraction, Extent, Operand
from symflops.ir.convention import ROLES, role_of
from symflops.ir.graph import Graph
from symflops.ir.nodes import Node, Operator, Parameter, Value, with_operators
from symflops.ir.patterns import Path, any_matches
from symflops.ir.regime import MERGED, Adapter
from symflops.support.findings import Diagnostic, SpecError

KINDS = ("linear", "conv")


def adapt(graph: Graph, adapters: Sequence[Adapter]) -> Graph:
    """``graph`` with ``adapters`` inserted, one after another.

    Raises:
        SpecError: a target is a module that has no weight to adapt.
    """
    bases: dict[Path, Path] = {}
    for adapter in adapters:
        if adapter.kind in MERGED:
            graph = merge(graph, adapter)
            continue
        last = max((operator.id for operator in graph.operators()), default=0)
        insertion = _Insertion(adapter, dict(graph.chosen), list(graph.values), count(last + 1001), bases)
        body = with_operators(graph.body, insertion.replaced)
        graph = replace(graph, body=body, values=tuple(insertion.values))
        if sum(1 for _ in graph.operators()) > MAX_OPERATORS:
            message = f"with its adapters the structure has more than {MAX_OPERATORS:,} operators"
            raise SpecError([Diagnostic("regime-too-large", message, None, "narrow 'targets'")])
    return graph


@dataclass
class _Insertion:
    """Inserts one adapter into a graph.

    Attributes:
        adapter: The adapter.
        chosen: Index -> the regime's selectors that choose its iteration.
        values: The values of the graph; new ones are appended.
        ids: Yields the ids of new operators.
        bases: Path of a base operator -> path of the module around it, also for adapters inserted before this one.
    """

    adapter: Adapter
    chosen: Mapping[Expr, frozenset[str]]
    values: list[Value]
    ids: Iterator[int]
    bases: dict[Path, Path]

    def replaced(self, node: Operator) -> list[Node]:
        module = self.bases.get(node.path, node.path)
        adaptable = node.parameters and node.kind != "act"  # a pattern for a whole layer means its linears
        return self.adapted(node, module) if adaptable and self.targeted(node, module) else [node]

    def targeted(self, node: Operator, module: Path) -> bool:
        if any(parameter.adapter for parameter in node.parameters):
            return False
        if not any_matches(self.adapter.targets, module, self.chosen):
            return False
        if node.kind not in KINDS:
            message = f"an adapter cannot stand on '{node.path}', whose kind is '{node.kind}'"
            raise SpecError([Diagnostic("bad-adapter", message, node.span, "targets are linears and convolutions")])
        if node.bare:
            weight = node.parameters[0].path
            message = f"an adapter cannot stand on '{node.path}', which uses '{weight}' without calling a module"
            raise SpecError([Diagnostic("bad-adapter", message, node.span, "targets are modules: linears and convolutions")])
        return True

    def value(self, like: Value, width: Expr | None) -> Value:
        value = replace(like, id=len(self.values), width=width)
        self.values.append(value)
        return value

    def adapted(self, node: Operator, module: Path) -> list[Node]:
        """Build the nodes that replace ``node``: the renamed base, two projections, and the sum.

        ``module`` is the path of the adapted module, without names that adapters added.
        """
        base_name, down_name, up_name = self.adapter.names
        (contraction,) = node.contractions
        source = next(operand for operand in contraction.operands if operand.values)
        side = next(operand for operand in contraction.operands if operand.parameters)
        weights = side.parameters
        weight = node.parameters[weights[0]]
        plain = tuple(self.value(self.values[result], self.values[result].width) for result in node.results)
        exists = any_of(node.parameters[position].exists for position in weights)  # a tied weight has one of several names
        base = node if node.path in self.bases else renamed(node, base_name)
        self.bases[base.path] = module
        rank = Integer(self.adapter.rank)
        out, inner = self.sides(node, weight)
        first = self.values[node.results[0]]
        low, high = self.value(first, rank), self.value(first, out)
        nodes: list[Node] = [replace(base, results=tuple(v.id for v in plain))]
        size, ones = contraction.size, (Integer(1),) * (len(inner) - 1)
        outer = replace(node, path=module)
        reads = (source, replace(side, parameters=(0,)))
        down = self.projection(outer, down_name, (rank, *inner), exists, reads, low, size / out * rank, contraction)
        reads = (Operand("low", (low.id,)), Operand("W", parameters=(0,)))
        up = self.projection(outer, up_name, (out, rank, *ones), exists, reads, high, rank * out, contraction)
        nodes += [down, up]
        results = [*plain, high]
        if self.adapter.kind == "dora":
            nodes.append(self.magnitude(outer, (out, *inner), exists, high))
        if self.adapter.kind == "dora" and self.adapter.dropout:
            results.append(self.value(first, out))
            nodes.append(replace(base, id=next(self.ids), results=(results[-1].id,)))
        total = Operator(
            next(self.ids), "add", module, tuple(v.id for v in results), node.results,
            guard=node.guard, saves="nothing", flows=node.flows, span=node.span, visits=node.visits, turns=node.turns,
        )  # fmt: skip
        return [*nodes, total]

    def sides(self, node: Operator, weight: Parameter) -> tuple[Expr, tuple[Expr, ...]]:
        """Split the shape of ``weight`` into (output width, other sizes).

        A linear's weight may be stored as (out, in) or as (in, out).
        """
        shape = weight.shape
        if node.kind != "linear":
            return shape[0], shape[1:]
        out = expand(Add(*(self.values[result].width or 0 for result in node.results)))
        if expand(shape[0] - out) == 0:
            return shape[0], shape[1:]
        if len(shape) == 2 and expand(shape[1] - out) == 0:
            return shape[1], shape[:1]
        message = f"an adapter cannot stand on '{node.path}', which uses a slice of the weight"
        raise SpecError([Diagnostic("bad-adapter", message, node.span, "targets have weights of their own")])

    def projection(
        self,
        node: Operator,
        name: str,
        shape: tuple[Expr, ...],
        exists: Truth,
        reads: tuple[Operand, Operand],
        result: Value,
        size: Expr,
        like: Contraction,
    ) -> Operator:
        path = node.path.join(name)
        parameter = Parameter(path.join("weight"), shape, exists, span=node.span, adapter=True, lists=node.parameters[0].lists)
        contraction = Contraction(like.name, reads, size, like.items, like.extent, like.kind)
        parameters: tuple[Parameter, ...] = (parameter,)
        if self.adapter.bias and name == self.adapter.names[2]:
            parameters += (replace(parameter, path=path.join("bias"), shape=shape[:1]),)
        return Operator(
            next(self.ids), node.kind, path, reads[0].values, (result.id,), parameters, (contraction,), node.guard,
            "operands", node.flows, node.role, f"rank {self.adapter.rank}", node.span, node.visits,
            node.regions, inferred=node.inferred, shown=node.shown, turns=node.turns,
        )  # fmt: skip

    def magnitude(self, node: Operator, shape: Sequence[Expr], exists: Truth, high: Value) -> Operator:
        """Build the operator that computes DoRA's norm of the weight, once per pass and without a gradient.

        It multiplies the projections, ``B A``; for a linear it does so by applying them to unit vectors, ``B (A I)``.
        """
        rank, out, inner = Integer(self.adapter.rank), shape[0], Mul(*shape[1:])
        down = self.adapter.names[1]
        path = node.path.join(down.replace("lora_A", "lora_magnitude_vector") if "lora_A" in down else "magnitude")
        lists = node.parameters[0].lists
        is_conv = node.kind == "conv"
        own = (Integer(1), out, *(Integer(1),) * (len(shape) - 2)) if is_conv else (out,)
        parameter = Parameter(path.join("weight"), own, exists, span=node.span, adapter=True, lists=lists)
        once = Extent(Integer(1), Integer(1))
        unit = Operand("unit vectors")
        sizes = {"A I": inner * inner * rank, "B A": inner * rank * out}
        works = tuple(
            Contraction(name, (unit, unit), size, "once", once) for name, size in sizes.items() if name == "B A" or not is_conv
        )
        result = self.value(self.values[node.results[0]], high.width)
        return Operator(
            next(self.ids), "map", path, (), (result.id,), (parameter,), works, node.guard,
            "nothing", False, node.role, "norm", node.span, node.visits,
            node.regions, inferred=node.inferred, shown=node.shown, turns=node.turns,
        )  # fmt: skip


def renamed(node: Operator, name: str) -> Operator:
    """``node`` with ``name`` appended to its path; parameters of other modules keep their paths."""
    path = node.path.join(name)
    own = [parameter.path.parent == node.path for parameter in node.parameters]
    moved = (
        replace(parameter, path=path.join(str(parameter.path).rpartition(".")[2])) if mine else parameter
        for parameter, mine in zip(node.parameters, own, strict=True)
    )
    return replace(node, path=path, parameters=tuple(moved))


def with_elements(graph: Graph, wanted: frozenset[str]) -> Graph:
    """Add the element-wise work of the roles ``wanted`` to ``graph``, as contractions."""

    def extended(operator: Operator) -> list[Node]:
        more = tuple(work for work in _elements(graph, operator) if work.role in wanted)
        return [replace(operator, contractions=(*operator.contractions, *more)) if more else operator]

    return replace(graph, body=with_operators(graph.body, extended)) if wanted else graph


def _elements(graph: Graph, operator: Operator) -> Iterator[Contraction]:
    role = role_of(operator)
    read = Operand("x", tuple(dict.fromkeys(operator.operands)))
    if ROLES.get(role, ROLES["linear"]).group == "elements" and operator.results:
        yield _work(graph, operator, role, read, tuple(range(len(operator.parameters))))
    elif operator.kind in ("linear", "conv"):
        biases = (position for position in range(len(operator.parameters)) if is_bias(operator, position))
        yield from (_bias(graph, operator, position) for position in biases)
    for work in operator.contractions:
        if work.extent.pairs is not None and work.name.startswith("scores"):
            yield replace(work, name="softmax", size=work.extent.pairs.heads, kind="elements", seen=False, role="softmax")


def _work(graph: Graph, operator: Operator, role: str, read: Operand, parameters: tuple[int, ...]) -> Contraction:
    result = graph.values[operator.operands[0] if role == "combine" else operator.results[0]]
    sides = (read, Operand("W", parameters=parameters)) if parameters else (read,)
    width = Integer(1) if result.width is None else result.width
    rows = Extent(result.stream.rows, result.stream.rows)
    return Contraction(role, sides, width, result.stream.items, rows, "elements", False, role)


def _bias(graph: Graph, operator: Operator, position: int) -> Contraction:
    """Make the contraction that adds the bias at ``position``.

    Its size is the total width of the results, times 1 if the bias exists, else 0.
    """
    bias = operator.parameters[position]
    results = [graph.values[result] for result in operator.results]
    width = sum((value.width for value in results if value.width is not None), Integer(0)) * bias.exists.expr
    rows = Extent(results[0].stream.rows, results[0].stream.rows)
    side = Operand("b", parameters=(position,))
    role = "conv_bias" if operator.kind == "conv" else "bias"
    return Contraction(role, (side,), width, results[0].stream.items, rows, "elements", False, role)


def is_bias(operator: Operator, position: int) -> bool:
    """Whether the parameter of a linear or convolution at ``position`` is a bias: no contraction reads it."""
    return all(position not in side.parameters for work in operator.contractions for side in work.operands)
