"""Inserts LoRA on parameters into a graph: each forward pass adds ``B A`` to the weight that a module then uses.

PEFT wraps the module that holds the parameter, so all that is inside moves to the wrapper's ``base_layer``. ``B A`` is built
once per pass, for all experts if the weight is a stack of their weights. The products of the module read the sum, so they have
a gradient with respect to it although the weight itself is frozen. PEFT's folded form lets PyTorch check the sum, which builds
it once more without gradients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sympy import Expr, Integer, Mul

from symflops.ir.contraction import Contraction, Extent, Operand
from symflops.ir.graph import Graph
from symflops.ir.index_sets import ONCE
from symflops.ir.nodes import Loop, Node, Operator, Parameter, Part, Stream, Value, with_operators
from symflops.ir.patterns import Path, any_matches
from symflops.ir.regime import Adapter
from symflops.support.findings import Diagnostic, SpecError

ONE = Integer(1)
STREAM = Stream(ONCE, (Part(()),))


def without(path: Path, name: str) -> Path:
    """``path`` without the components ``name``."""
    parts = (part.replace(f".{name}", "") if isinstance(part, str) else part for part in path.parts)
    return Path(tuple(part for part in parts if part != ""))


def merge(graph: Graph, adapter: Adapter) -> Graph:
    """``graph`` with ``adapter`` on parameters inserted.

    Raises:
        SpecError: a target is no weight of a module that runs, or several operators read it.
    """
    chosen, found = dict(graph.chosen), set[Path]()
    for operators in regions(graph.body):
        readers: Counter[Path] = Counter()
        for operator in operators:
            for parameter in operator.parameters:
                if parameter.adapter or not any_matches(adapter.targets, without(parameter.path, adapter.names[0]), chosen):
                    continue
                readers[parameter.path] += 1
                found.add(parameter.path)
                if why := refusal(operator, parameter, readers[parameter.path]):
                    message = f"an adapter cannot stand on '{parameter.path}', {why}"
                    raise SpecError([Diagnostic("bad-adapter", message, operator.span, "targets are weights of modules")])
    inserted = _Merging(adapter, {without(path, adapter.names[0]).parent for path in found}, found, list(graph.values), graph)
    return replace(graph, body=with_operators(graph.body, inserted.replaced), values=tuple(inserted.values))


def regions(nodes: tuple[Node, ...]) -> Iterator[list[Operator]]:
    """Yield the operators of each body, those of ``nodes`` first: of two bodies of a loop, an iteration runs one."""
    yield [node for node in nodes if isinstance(node, Operator)]
    for node in nodes:
        if isinstance(node, Loop):
            for _, body in node.classes:
                yield from regions(body)


def refusal(operator: Operator, parameter: Parameter, readers: int) -> str:
    """Why an adapter cannot stand on a parameter that ``operator`` reads; empty if it can."""
    if parameter.path.parent not in operator.modules:
        return f"which '{operator.path}' uses without calling its module"
    if readers > 1:
        return "which several operators read"
    if parameter.lists or len(parameter.shape) not in (2, 3):
        return "which is no matrix and no stack of matrices"
    return ""


@dataclass
class _Merging:
    """Inserts one adapter on the parameters ``targets`` of ``modules``; new values are appended to ``values``."""

    adapter: Adapter
    modules: set[Path]
    targets: set[Path]
    values: list[Value]
    graph: Graph

    def __post_init__(self) -> None:
        self.last = max((operator.id for operator in self.graph.operators()), default=0) + 1000

    def replaced(self, node: Operator) -> Iterator[Node]:
        """Yield the operators that build the sums that ``node`` reads, and ``node`` reading them."""
        sums: dict[int, int] = {}
        for position, parameter in enumerate(node.parameters):
            if parameter.path in self.targets:
                built = list(self.built(node, parameter))
                yield from built
                sums[position] = built[-1].results[0]
        works = (
            replace(work, operands=tuple(replace(side, values=(*side.values, *read(side, sums))) for side in work.operands))
            for work in node.contractions
        )
        yield replace(
            node,
            path=self.moved(node.path),
            parameters=tuple(replace(one, path=self.moved(one.path)) for one in node.parameters),
            operands=(*node.operands, *sums.values()),
            contractions=tuple(works),
        )

    def moved(self, path: Path) -> Path:
        """The path of what is at ``path`` once its module is wrapped."""
        inner = ((module, path.below(module)) for module in self.modules)
        return next((module.join(self.adapter.names[0]).extend(rest) for module, rest in inner if rest is not None), path)

    def built(self, node: Operator, weight: Parameter) -> Iterator[Operator]:
        """Yield the operators that build ``B A``: first the one of the check if there is one."""
        *stack, one, two = weight.shape
        out, inner = (two, one) if self.adapter.in_out else (one, two)
        experts, rank = Mul(*stack), Integer(self.adapter.rank)
        shapes: tuple[tuple[Expr, ...], ...] = ((rank * experts, inner), (out, rank * experts))
        module = without(weight.path, self.adapter.names[0]).parent
        parameters = tuple(
            Parameter(module.join(name).join("weight"), shape, weight.exists, span=node.span, adapter=True)
            for name, shape in zip(self.adapter.names[1:], shapes, strict=True)
        )
        sides = (Operand("B", parameters=(1,)), Operand("A", parameters=(0,)))
        work = Contraction("B A", sides, experts * rank * inner * out, ONCE, Extent(ONE, ONE))
        for flows in (False, True) if self.adapter.kind == "folded" else (True,):
            value = Value(len(self.values), "W", STREAM, weight.count)
            self.values.append(value)
            self.last += 1
            yield Operator(
                self.last, "map", module, (), (value.id,), parameters, (work,), node.guard, "factors" if flows else "nothing",
                flows, node.role, f"rank {rank}", node.span, node.visits, node.regions,
                inferred=node.inferred, shown=node.shown, turns=node.turns,
            )  # fmt: skip


def read(side: Operand, sums: dict[int, int]) -> Iterator[int]:
    """Yield the sums, by position of their weight, that ``side`` of a contraction reads."""
    yield from (sums[position] for position in side.parameters if position in sums)
