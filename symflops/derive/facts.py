"""The two analyses: which values need a gradient (forwards), and which operators the loss depends on (backwards).

Both walk a loop's body with the facts that one iteration hands to the next, until the facts repeat. What comes out is a
:class:`Trace`: the facts of the first iterations, and the cycle that all later ones follow.

The gradient of an operand is computed where it needs one and its operator is live. That the two can be found apart from
each other
is why loops stay closed: from an operand that needs a gradient, everything up to the loss needs one, unless the path is
cut by a
``detach``, and such a path makes nothing live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import lcm

from sympy import Add, Expr, Integer, Mul

from symflops.algebra.functions import AtLeast, Equal, Excess, FloorDiv, Modulo, Tally, is_index, text_of
from symflops.algebra.truth import NO, YES, Truth, any_of
from symflops.algebra.unknown_size import UnknownSizeError
from symflops.diagnostics.findings import Diagnostic
from symflops.model.contraction import Contraction, Operand
from symflops.model.nodes import Checkpoint, Loop, Node, Operator, Parameter, Select

State = tuple[Truth, ...]
MAX_STATES = 48


@dataclass
class Facts:
    """Truths of one pass over a region: per value, per operator (``live`` only), and per loop a trace."""

    values: dict[int, Truth] = field(default_factory=dict)
    operators: dict[int, Truth] = field(default_factory=dict)
    traces: dict[int, Trace] = field(default_factory=dict)


@dataclass
class Trace:
    """Facts of iterations: ``states[k]`` enters the k-th one, from ``start`` on they repeat; ``facts[k]`` has one per class."""

    states: list[State]
    facts: list[tuple[Facts, ...]]
    start: int

    @property
    def period(self) -> int:
        """After how many iterations the facts repeat."""
        return len(self.states) - self.start

    def after(self, count: Expr) -> State:
        """The state after ``count`` iterations."""
        first, *later = self.states
        result = list(first)
        for step, state in enumerate(later[: self.start], start=1):
            passed = Truth.of(AtLeast(count, Integer(step)))
            for position, truth in enumerate(state):
                change = truth.plus(self.states[step - 1][position], -1)
                result[position] = result[position].plus(passed & change)
        if self.period > 1:
            for step in range(1, self.period):
                state = self.states[self.start + step]
                here = Truth.of(AtLeast(count, Integer(self.start)))
                here = here & Truth.of(Equal(Modulo(count - self.start, Integer(self.period)), Integer(step)))
                for position, truth in enumerate(state):
                    result[position] = result[position].plus(here & truth.plus(self.states[self.start][position], -1))
        return tuple(result)

    def runs(self, step: int) -> tuple[tuple[int, int, int], ...]:
        """Iterations in state ``step`` as sums of runs (factor, first iteration, stride)."""
        if step < self.start:
            return ((1, step, 1), (-1, step + 1, 1))
        return ((1, step, self.period),)


def iterations(loop: Loop, bracket: Truth, need: tuple[Trace, int], live: tuple[Trace, int]) -> Expr:
    """How many iterations of a class are in one state of both analyses, which count from opposite ends."""
    total: Expr = Integer(0)
    for a, first, stride in need[0].runs(need[1]):
        for b, last, other in live[0].runs(live[1]):
            total += a * b * _overlap(loop, bracket, (first, stride), (last, other))
    return total


def whole_count(loop: Loop, bracket: Truth) -> Expr:
    """How many iterations of a class there are."""
    return _overlap(loop, bracket, (0, 1), (0, 1))


def turns(loop: Loop, need: Facts, live: Facts) -> Iterator[tuple[Truth, tuple[Node, ...], Facts, Facts]]:
    """The bodies of a repeat with the facts of each pair of states that may occur, and when it does."""
    ahead, behind = need.traces[loop.id], live.traces[loop.id]
    for position, (bracket, body) in enumerate(loop.classes):
        for a, b in product(range(len(ahead.states)), range(len(behind.states))):
            reached = _occurs(loop, bracket, (ahead, a), (behind, b))
            if reached is not NO:
                yield reached, body, ahead.facts[a][position], behind.facts[b][position]


def _occurs(loop: Loop, bracket: Truth, need: tuple[Trace, int], live: tuple[Trace, int]) -> Truth:
    """Whether some iteration of a class is in one state of both analyses."""
    (ahead, a), (behind, b) = need, live
    if bracket is not YES or ahead.period > 1 or behind.period > 1:
        return Truth.of(AtLeast(iterations(loop, bracket, need, live), Integer(1)))
    enough = Truth.of(AtLeast(loop.count, Integer(a + b + 1)))
    once = a < ahead.start and b < behind.start  # the one state counts from the front, the other from the back
    return enough & ~Truth.of(AtLeast(loop.count, Integer(a + b + 2))) if once else enough


def _overlap(loop: Loop, bracket: Truth, ahead: tuple[int, int], behind: tuple[int, int]) -> Expr:
    """Iterations ``i = first + stride*u`` with ``count - 1 - i = last + other*v``, for all ``u, v >= 0``."""
    (first, stride), (last, other) = ahead, behind
    if stride == other == 1:
        if bracket is YES:
            return Excess(loop.count - first - last)
        low, high = loop.offset + first, loop.offset + loop.count - last
        counts = (
            factor * (Tally(loop.index, low, high, Mul(*sorted(factors, key=text_of))) if factors else Excess(high - low))
            for factors, factor in bracket.terms.items()
        )
        return Add(*counts)
    if bracket is not YES:
        raise unsettled(loop, "the gradients of this repeat alternate, and so do its layers")
    room = loop.count - 1 - first - last
    if stride == 1 or other == 1:
        step = Integer(max(stride, other))
        return Excess(FloorDiv(room + step, step))
    common = lcm(stride, other)
    total: Expr = Integer(0)
    for a in range(first, first + common, stride):
        for b in range(last, last + common, other):
            rest = loop.count - 1 - a - b
            step = Integer(common)
            total += Excess(FloorDiv(rest + step, step)) * Equal(Modulo(rest, step), Integer(0))
    return total


def unsettled(loop: Loop, message: str) -> UnknownSizeError:
    """A repeat for which there is no closed form: its count must be known, where it starts, and which layers it has."""
    asked = (loop.count, loop.offset, *(bracket.expr for bracket, _ in loop.classes))
    letters = [name for expr in asked for name in sorted(symbol.name for symbol in expr.free_symbols - {loop.index})]
    letters = [name.removeprefix("?") for name in letters if not is_index(name)]
    hint = "a config, or a variant, that gives the count lets it be written out"
    return UnknownSizeError(letters[0] if letters else "", Diagnostic("alternating-repeat", message, loop.span, hint))


def needs(nodes: Sequence[Node], facts: Facts, trains: Callable[[Parameter], bool], forced: Callable[[Operator], bool]) -> None:
    """Forward: a value needs a gradient when an operand or a parameter of what made it does."""
    for node in nodes:
        match node:
            case Operator():
                truth = any_of(facts.values[operand] for operand in node.operands)
                truth = truth | any_of(parameter.exists for parameter in node.parameters if trains(parameter))
                truth = truth & node.guard if node.flows else NO
                if forced(node):
                    truth = node.guard
                for result in node.results:
                    facts.values[result] = truth
            case Select():
                then, otherwise = facts.values[node.then], facts.values[node.otherwise]
                facts.values[node.result] = node.condition.choose(then, otherwise)
            case Checkpoint():
                entered = any_of(facts.values[value] for value in node.inputs)
                facts.values.update(dict.fromkeys(node.results, entered))
            case Loop():
                _need_loop(node, facts, trains, forced)


def _need_loop(loop: Loop, facts: Facts, trains: Callable[[Parameter], bool], forced: Callable[[Operator], bool]) -> None:
    def body(position: int, state: State) -> tuple[Facts, State]:
        inner = Facts(dict(facts.values))
        carries = loop.carries[position]
        inner.values.update({carry.argument: truth for carry, truth in zip(carries, state, strict=True)})
        needs(loop.classes[position][1], inner, trains, forced)
        return inner, tuple(inner.values[carry.final] for carry in carries)

    first = tuple(facts.values[carry.initial] for carry in loop.carries[0])
    trace = _iterate(loop, first, body)
    facts.traces[loop.id] = trace
    for carry, truth in zip(loop.carries[0], trace.after(loop.count), strict=True):
        facts.values[carry.result] = truth


def _iterate(loop: Loop, first: State, body: Callable[[int, State], tuple[Facts, State]]) -> Trace:
    """Hand facts from iteration to iteration until they repeat."""
    states, found = [first], []
    while True:
        results = [body(position, states[-1]) for position in range(len(loop.classes))]
        found.append(tuple(facts for facts, _ in results))
        following = results[0][1]
        if any(state != following for _, state in results[1:]):
            raise unsettled(loop, "iterations of this repeat hand on different gradients")
        if following in states:
            return Trace(states, found, states.index(following))
        states.append(following)
        if len(states) > MAX_STATES:
            raise unsettled(loop, "the gradients of this repeat do not settle")


def lives(nodes: Sequence[Node], facts: Facts) -> None:
    """Backward: an operator is live when a result of it is, and what it reads is live with it unless gradients stop there."""
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
                _live_loop(node, facts)


def _live_loop(loop: Loop, facts: Facts) -> None:
    def body(position: int, state: State) -> tuple[Facts, State]:
        inner = Facts()
        carries = loop.carries[position]
        for carry, truth in zip(carries, state, strict=True):
            _add(inner, carry.final, truth)
        lives(loop.classes[position][1], inner)
        return inner, tuple(inner.values.get(carry.argument, NO) for carry in carries)

    first = tuple(facts.values.get(carry.result, NO) for carry in loop.carries[0])
    trace = _iterate(loop, first, body)
    facts.traces[loop.id] = trace
    for carry, truth in zip(loop.carries[0], trace.after(loop.count), strict=True):
        _add(facts, carry.initial, truth)
    for step, classes in enumerate(trace.facts):
        reached = Truth.of(AtLeast(loop.count, Integer(step + 1)))
        for inner in classes:
            for value, truth in inner.values.items():
                _add(facts, value, truth & reached)


def _add(facts: Facts, value: int, truth: Truth) -> None:
    facts.values[value] = facts.values.get(value, NO) | truth


def operand_need(
    operand: Operand, operator: Operator, facts: Facts, trains: Callable[[Parameter], bool], by_name: dict[str, Contraction]
) -> Truth:
    """Whether an operand of a contraction needs a gradient."""
    truth = any_of(facts.values[value] for value in operand.values)
    chosen = [operator.parameters[position] for position in operand.parameters]
    truth = truth | any_of(parameter.exists for parameter in chosen if trains(parameter))
    for name in operand.inner:
        for other in by_name[name].operands:
            truth = truth | operand_need(other, operator, facts, trains, by_name)
    return truth
