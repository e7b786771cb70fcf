"""needs: which values need a gradient, found forwards from what trains.

need(parameter) = it trains
need(result)    = an operand or a parameter of its operator needs a gradient, and gradients flow through the operator;
                  or the class makes it need one

What the loss depends on does not enter here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sympy import Expr

from symflops.algebra.truth import NO, YES, Truth, any_of
from symflops.derive.iterations import Facts, State, Within, iterate
from symflops.model.contraction import Operand
from symflops.model.graph import Graph
from symflops.model.nodes import Checkpoint, Loop, Node, Operator, Parameter, Pop, Push, Select
from symflops.model.patterns import any_matches
from symflops.model.regime import Regime

Trains = Callable[[Parameter], bool]


def needs(graph: Graph, regime: Regime, trains: Trains) -> Facts:
    """Which values of ``graph`` need a gradient; ``trains`` is what :func:`trainable` returns for ``regime``."""
    chosen = dict(graph.chosen)
    facts = Facts({value: YES if name in regime.input_grad else NO for name, value, _ in graph.inputs})

    trained = bool(regime.train or regime.adapters)

    def forced(operator: Operator) -> Truth:
        if any_matches(regime.force_grad, operator.path, chosen):
            return YES
        return operator.forces if trained and not any_matches(regime.no_force_grad, operator.path, chosen) else NO

    _region(graph.body, facts, trains, forced)
    return facts


def trainable(regime: Regime, chosen: Mapping[Expr, frozenset[str]]) -> Trains:
    """A predicate of parameters: whether the patterns of ``regime`` train one."""
    known: dict[int, tuple[Parameter, bool]] = {}  # by identity: the answer is needed several times per parameter

    def trains(parameter: Parameter) -> bool:
        if id(parameter) not in known:
            wanted = parameter.adapter or any_matches(regime.train, parameter.path, chosen)
            frozen = any_matches(regime.freeze, parameter.path, chosen)
            known[id(parameter)] = (parameter, parameter.trainable and wanted and not frozen)
        return known[id(parameter)][1]

    return trains


def operand_need(operand: Operand, operator: Operator, facts: Facts, trains: Trains) -> Truth:
    """Whether an operand of a contraction needs a gradient: a value, a parameter or an inner contraction in it does."""
    truth = any_of(facts.values[value] for value in operand.values)
    chosen = [operator.parameters[position] for position in operand.parameters]
    truth = truth | any_of(parameter.exists for parameter in chosen if trains(parameter))
    for name in operand.inner:
        inner = {contraction.name: contraction for contraction in operator.contractions}[name]
        truth = truth | any_of(operand_need(other, operator, facts, trains) for other in inner.operands)
    return truth


def _region(nodes: Sequence[Node], facts: Facts, trains: Trains, forced: Callable[[Operator], Truth]) -> None:
    for node in nodes:
        match node:
            case Operator():
                truth = any_of(facts.values[operand] for operand in node.operands)
                truth = truth | any_of(parameter.exists for parameter in node.parameters if trains(parameter))
                truth = (truth if node.flows else NO) | forced(node)
                truth = truth & node.guard
                for result in node.results:
                    facts.values[result] = truth
            case Select():
                then, otherwise = facts.values[node.then], facts.values[node.otherwise]
                facts.values[node.result] = node.condition.choose(then, otherwise)
            case Checkpoint():
                entered = any_of(facts.values[value] for value in node.inputs)
                facts.values.update(dict.fromkeys(node.results, entered))
            case Loop():
                _loop(node, facts, trains, forced)
            case Push():
                facts.settle(node, facts.values[node.value])
            case Pop():
                facts.values[node.result] = facts.sequences[node.sequence]


def _loop(loop: Loop, facts: Facts, trains: Trains, forced: Callable[[Operator], Truth]) -> None:
    def body(position: int, state: State) -> tuple[Facts, State]:
        inner = facts.inside(Within(facts.values))
        carries = loop.carries[position]
        inner.values.update({carry.argument: truth for carry, truth in zip(carries, state, strict=True)})
        _region(loop.classes[position][1], inner, trains, forced)
        return inner, tuple(inner.values[carry.final] for carry in carries)

    first = tuple(facts.values[carry.initial] for carry in loop.carries[0])
    trace = facts.traces[loop.id] = iterate(loop, first, body)
    for carry, truth in zip(loop.carries[0], trace.after(loop.count), strict=True):
        facts.values[carry.result] = truth
