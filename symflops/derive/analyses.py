"""Gradient analyses (``needs`` forward from trained parameters, ``lives`` backward from the loss), and parameter copies.

need(parameter) = it trains
need(result)    = an operand or a parameter of its operator needs a gradient, and gradients flow through the operator;
                  or the class makes it need one

live(output of the loss) = yes
live(operator)           = one of its results is live, and gradients flow through the operator
live(operand)            = one of the operators that read it is live

The two analyses are independent. A parameter has one copy per path, however many operators read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sympy import Expr, Integer, Mul, Symbol

from symflops.derive.iterations import Facts, State, Within, all_iterations, iterate
from symflops.derive.leaving import forced
from symflops.formula.functions import AtLeast
from symflops.formula.truth import NO, YES, Truth, any_of
from symflops.ir.contraction import Operand
from symflops.ir.graph import Graph, ParameterCount
from symflops.ir.nodes import Checkpoint, Loop, Node, Operator, Parameter, Pop, Push, Select, with_operators
from symflops.ir.patterns import Path, any_matches
from symflops.ir.regime import Regime
from symflops.support.findings import Diagnostic, SpecError, did_you_mean

Trains = Callable[[Parameter], bool]


def needs(graph: Graph, regime: Regime, trains: Trains) -> Facts:
    """Find the conditions under which the values of ``graph`` need a gradient.

    ``trains`` returns whether a parameter is trained; :func:`trainable` makes it.
    """
    facts = Facts({value: YES if name in regime.input_grad else NO for name, value, _ in graph.inputs})

    _forwards(graph.body, facts, trains, forced(graph, regime))
    return facts


def with_entries(graph: Graph, regime: Regime) -> Graph:
    """The graph in which the operators that ``enter_grad`` of ``regime`` names have operands that need a gradient."""
    if not regime.enter_grad:
        return graph
    chosen = dict(graph.chosen)
    return replace(
        graph,
        body=with_operators(graph.body, lambda one: [replace(one, enters=any_matches(regime.enter_grad, one.path, chosen))]),
    )


def trainable(regime: Regime, chosen: Mapping[Expr, frozenset[str]]) -> Trains:
    """Make a cached function that returns whether ``regime`` trains a parameter.

    ``chosen`` maps an index to the regime's selectors that choose its iteration.
    """
    known: dict[int, tuple[Parameter, bool]] = {}  # by identity: the answer is needed several times per parameter

    def trains(parameter: Parameter) -> bool:
        if id(parameter) not in known:
            wanted = regime.trains and (parameter.adapter or any_matches(regime.train, parameter.path, chosen))
            frozen = any_matches(regime.freeze, parameter.path, chosen)
            known[id(parameter)] = (parameter, parameter.trainable and wanted and not frozen)
        return known[id(parameter)][1]

    return trains


def operand_need(operand: Operand, operator: Operator, facts: Facts, trains: Trains) -> Truth:
    """Condition under which a value, parameter or inner contraction in ``operand`` needs a gradient."""
    truth = YES if operator.enters and operand.values else any_of(facts.values[value] for value in operand.values)
    chosen = [operator.parameters[position] for position in operand.parameters]
    truth = truth | any_of(parameter.exists for parameter in chosen if trains(parameter))
    for name in operand.inner:
        inner = {contraction.name: contraction for contraction in operator.contractions}[name]
        truth = truth | any_of(operand_need(other, operator, facts, trains) for other in inner.operands)
    return truth


def _forwards(nodes: Sequence[Node], facts: Facts, trains: Trains, forces: Mapping[int, Truth]) -> None:
    def enter(value: int, truth: Truth, guard: Truth = YES) -> None:
        facts.values[value] = (truth | forces[value] if value in forces else truth) & guard

    for node in nodes:
        match node:
            case Operator():
                truth = YES if node.enters else any_of(facts.values[operand] for operand in node.operands)
                truth = truth | any_of(parameter.exists for parameter in node.parameters if trains(parameter))
                for result in node.results:
                    enter(result, truth if node.flows else NO, node.guard)
            case Select():
                enter(node.result, node.condition.choose(facts.values[node.then], facts.values[node.otherwise]))
            case Checkpoint():
                entered = any_of(facts.values[value] for value in node.inputs)
                for result in node.results:
                    enter(result, entered)
            case Loop():
                for carry, truth in zip(node.carries[0], _loop_forwards(node, facts, trains, forces), strict=True):
                    enter(carry.result, truth)
            case Push():
                facts.record(node, facts.values[node.value])
            case Pop():
                enter(node.result, facts.sequences[node.sequence])


def _loop_forwards(loop: Loop, facts: Facts, trains: Trains, forces: Mapping[int, Truth]) -> State:
    def body(position: int, state: State) -> tuple[Facts, State]:
        inner = facts.inside(Within(facts.values))
        carries = loop.carries[position]
        inner.values.update({carry.argument: truth for carry, truth in zip(carries, state, strict=True)})
        _forwards(loop.classes[position][1], inner, trains, forces)
        return inner, tuple(inner.values[carry.final] for carry in carries)

    first = tuple(facts.values[carry.initial] for carry in loop.carries[0])
    trace = facts.traces[loop.id] = iterate(loop, first, body)
    return trace.after(loop.count)


def lives(graph: Graph, regime: Regime) -> Facts:
    """Find the conditions under which the loss of ``regime`` depends on values and operators of ``graph``.

    Raises:
        SpecError: the loss uses an output that the model does not have.
    """
    facts = Facts(dict.fromkeys(loss_values(graph, regime), YES))
    _backwards(graph.body, facts)
    return facts


def loss_values(graph: Graph, regime: Regime) -> list[int]:
    """Ids of the outputs that the loss uses: those that ``regime`` names, or all.

    Raises:
        SpecError: the loss uses an output that the model does not have.
    """
    outputs = dict(graph.outputs)
    for name in regime.loss:
        if name not in outputs:
            hint = did_you_mean(name, outputs, f"outputs: {', '.join(outputs)}")
            raise SpecError([Diagnostic("unknown-value", f"the loss uses '{name}', which is no output", None, hint)])
    return [value for name, value in graph.outputs if not regime.loss or name in regime.loss]


def _backwards(nodes: Sequence[Node], facts: Facts) -> None:
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
                _loop_backwards(node, facts)
            case Pop():
                facts.record(node, facts.values.get(node.result, NO))
            case Push():
                _add(facts, node.value, facts.sequences.get(node.sequence, NO))


def _loop_backwards(loop: Loop, facts: Facts) -> None:
    def body(position: int, state: State) -> tuple[Facts, State]:
        inner = facts.inside({})
        carries = loop.carries[position]
        for carry, truth in zip(carries, state, strict=True):
            _add(inner, carry.final, truth)
        _backwards(loop.classes[position][1], inner)
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


Identity = tuple[Path, tuple[Expr, ...]]
"""Path and shape of a parameter, equal for all operators that share it."""
Around = dict[tuple[int, int], tuple[Loop, Truth]]
"""(loop id, position of a class) -> (loop, condition of the class), outer loops first."""


def identity_of(parameter: Parameter) -> Identity:
    """Path and shape of a parameter, equal for all operators that share the parameter."""
    return parameter.path, parameter.shape


class ParameterReaders:
    """Maps each parameter in ``nodes`` to the classes of loop iterations that read it."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.around: dict[Identity, Around] = {}
        self._region(nodes, {})

    def _region(self, nodes: tuple[Node, ...], around: Around) -> None:
        for node in nodes:
            if isinstance(node, Operator):
                for parameter in node.parameters:
                    self.around.setdefault(identity_of(parameter), {}).update(around)
            elif isinstance(node, Loop):
                for position, (bracket, body) in enumerate(node.classes):
                    self._region(body, {**around, (node.id, position): (node, bracket)})

    def classes(self, parameter: Parameter) -> Iterable[tuple[Loop, Truth]]:
        """Classes of iterations that read ``parameter``, as (loop, condition of the class), outer loops first."""
        return self.around[identity_of(parameter)].values()

    def brackets(self, loop: Loop, parameter: Parameter) -> list[Truth]:
        """Conditions of those classes of iterations of ``loop`` that read ``parameter``."""
        known = self.around[identity_of(parameter)]
        return [bracket for position, (bracket, _) in enumerate(loop.classes) if (loop.id, position) in known]


Classes = tuple[tuple[Symbol, Truth], ...]


class Copies:
    """Collects the parameters that operators read, and the conditions under which each exists."""

    def __init__(self, nodes: tuple[Node, ...], trains: Trains, lengths: frozenset[Symbol]) -> None:
        self.readers = ParameterReaders(nodes)
        self.trains = trains
        self.lengths = lengths
        self.parameters: dict[Identity, tuple[Parameter, tuple[Loop, ...]]] = {}
        self.exists: dict[Identity, dict[Classes, Truth]] = {}

    def enter(self, parameter: Parameter, around: Sequence[tuple[Loop, Truth]]) -> None:
        """Record that an operator reads ``parameter`` inside the loops ``around`` it.

        ``around`` has pairs (loop, condition of the class that contains the operator), outer loops first. A module that all
        iterations call alike (``shared``) exists even if the loop never runs.
        """
        identity = identity_of(parameter)
        indices = parameter.path.indices if around else frozenset()
        inside = [(loop, bracket) for loop, bracket in around if loop.index in indices]
        exists = parameter.exists
        for loop, _ in around:
            if loop.index not in indices and not loop.shared:
                count = self.reads(loop, parameter)
                if not count.free_symbols & self.lengths:
                    exists = exists & Truth.of(AtLeast(count, Integer(1)))
        within = tuple((loop.index, bracket) for loop, bracket in inside)
        known = self.exists.setdefault(identity, {})
        known[within] = exists | known.get(within, NO)
        self.parameters[identity] = (parameter, tuple(loop for loop, _ in inside))

    def reads(self, loop: Loop, parameter: Parameter) -> Expr:
        """Number of iterations of ``loop`` that read ``parameter``."""
        return all_iterations(loop, any_of(self.readers.brackets(loop, parameter)))

    def counts(self) -> tuple[ParameterCount, ...]:
        """Compute the number of copies of each parameter.

        If classes of iterations differ in when a parameter exists, it has one entry per class.
        """
        found: list[ParameterCount] = []
        for identity, (parameter, loops) in self.parameters.items():
            exists, trains = self.exists[identity], self.trains(parameter)
            listed = Mul(*(count for _, count in parameter.lists))
            if len(set(exists.values())) == 1:
                copies = listed * Mul(*(self.reads(loop, parameter) for loop in loops))
                found.append(ParameterCount(parameter, copies, next(iter(exists.values())), trains))
                continue
            for within, truth in exists.items():
                brackets = dict(within)
                copies = listed * Mul(*(all_iterations(loop, brackets[loop.index]) for loop in loops))
                found.append(ParameterCount(parameter, copies, truth, trains, within))
        return tuple(found)
