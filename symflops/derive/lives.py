"""lives: which operators the loss depends on, found backwards from the outputs that it uses.

live(output of the loss) = yes
live(operator)           = one of its results is live, and gradients flow through the operator
live(operand)            = one of the operators that read it is live
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Integer

from symflops.algebra.functions import AtLeast
from symflops.algebra.truth import NO, YES, Truth, any_of
from symflops.derive.iterations import Facts, State, iterate
from symflops.diagnostics.findings import Diagnostic, SpecError, did_you_mean
from symflops.model.graph import Graph
from symflops.model.nodes import Checkpoint, Loop, Node, Operator, Pop, Push, Select
from symflops.model.regime import Regime


def lives(graph: Graph, regime: Regime) -> Facts:
    """Which values and operators of ``graph`` the loss of ``regime`` depends on.

    Raises:
        SpecError: the loss uses an output that the model does not have.
    """
    facts = Facts(dict.fromkeys(loss_values(graph, regime), YES))
    _region(graph.body, facts)
    return facts


def loss_values(graph: Graph, regime: Regime) -> list[int]:
    """The outputs that the loss uses: those that ``regime`` names, or all.

    Raises:
        SpecError: the loss uses an output that the model does not have.
    """
    outputs = dict(graph.outputs)
    for name in regime.loss:
        if name not in outputs:
            hint = did_you_mean(name, outputs, f"outputs: {', '.join(outputs)}")
            raise SpecError([Diagnostic("unknown-value", f"the loss uses '{name}', which is no output", None, hint)])
    return [value for name, value in graph.outputs if not regime.loss or name in regime.loss]


def _region(nodes: Sequence[Node], facts: Facts) -> None:
    for node in reversed(nodes):
        match node:
            case Operator():
                truth = any_of(facts.values.get(result, NO) for result in node.results) & node.guard
                truth = truth if node.flows else NO
                facts.operators[node.id] = truth
                for operand in node.operands:
                    _add(facts, operand, truth)
            case Select():
                truth = facts.values.get(node.result, NO)
                _add(facts, node.then, truth & node.condition)
                _add(facts, node.otherwise, truth & ~node.condition)
            case Checkpoint():
                truth = any_of(facts.values.get(result, NO) for result in node.results)
                for value in node.made:
                    _add(facts, value, truth)
            case Loop():
                _loop(node, facts)
            case Pop():
                facts.settle(node, facts.values.get(node.result, NO))
            case Push():
                _add(facts, node.value, facts.sequences.get(node.sequence, NO))


def _loop(loop: Loop, facts: Facts) -> None:
    def body(position: int, state: State) -> tuple[Facts, State]:
        inner = facts.inside({})
        carries = loop.carries[position]
        for carry, truth in zip(carries, state, strict=True):
            _add(inner, carry.final, truth)
        _region(loop.classes[position][1], inner)
        return inner, tuple(inner.values.get(carry.argument, NO) for carry in carries)

    first = tuple(facts.values.get(carry.result, NO) for carry in loop.carries[0])
    trace = facts.traces[loop.id] = iterate(loop, first, body)
    for carry, truth in zip(loop.carries[0], trace.after(loop.count), strict=True):
        _add(facts, carry.initial, truth)
    for step, classes in enumerate(trace.facts):
        reached = Truth.of(AtLeast(loop.count, Integer(step + 1)))
        for inner in classes:
            for value, truth in inner.values.items():
                _add(facts, value, truth & reached)


def _add(facts: Facts, value: int, truth: Truth) -> None:
    facts.values[value] = facts.values.get(value, NO) | truth
