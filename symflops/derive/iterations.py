"""Analyses loops for ``needs`` and ``lives``: iterate a body until its facts repeat, and count iterations per state.

An analysis passes facts (its state) from one iteration of a loop to the next until they repeat. The result is a
:class:`Trace`: the facts of the first iterations, and the cycle that all later iterations follow. ``needs`` counts iterations
from the front, ``lives`` from the back; :func:`iterations` counts those in a given state of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import lcm

from sympy import Add, Expr, Integer, Mul, Symbol

from symflops.formula.functions import AtLeast, Equal, Excess, FloorDiv, Modulo, Tally, is_index
from symflops.formula.truth import NO, YES, Truth, UnknownSizeError
from symflops.formula.written import text_of
from symflops.ir.nodes import Loop, Node, Pop, Push
from symflops.support.findings import Diagnostic

State = tuple[Truth, ...]
MAX_STATES = 48


class Within(dict[int, Truth]):
    """Conditions of the values in a loop's body, by id; of other values, those found ``around`` the loop."""

    def __init__(self, around: Mapping[int, Truth]) -> None:
        super().__init__()
        self.around = around

    def __missing__(self, value: int) -> Truth:
        return self.around[value]


@dataclass
class Facts:
    """Results of ``needs`` or ``lives`` for the body of a graph or of a loop.

    Attributes:
        values: Value id -> condition under which the value needs a gradient, or is live.
        operators: Operator id -> condition under which the operator is live (``lives`` only).
        traces: Loop id -> the results in its iterations.
        sequences: Stack of ``push`` and ``pop`` -> the condition that all values on it have.
    """

    values: dict[int, Truth] = field(default_factory=dict)
    operators: dict[int, Truth] = field(default_factory=dict)
    traces: dict[int, Trace] = field(default_factory=dict)
    sequences: dict[str, Truth] = field(default_factory=dict)

    def inside(self, values: dict[int, Truth]) -> Facts:
        """Create the facts of one iteration of a loop inside; ``sequences`` is shared with these facts."""
        return Facts(values, sequences=self.sequences)

    def record(self, node: Push | Pop, truth: Truth) -> None:
        """Record ``truth`` as the condition of all values on the stack of ``node``.

        Raises:
            UnknownSizeError: the values on the stack differ in their condition, so the loops must be unrolled.
        """
        if self.sequences.setdefault(node.sequence, truth) != truth:
            message = "the gradients of the values on this stack differ"
            hint = "a config, or a variant, that gives the count lets the iterations be written out"
            raise UnknownSizeError(node.size, Diagnostic("structural-size", message, node.span, hint))


@dataclass
class Trace:
    """Results of an analysis in the iterations of a loop.

    Attributes:
        states: For each iteration, the state that enters it: one condition per carried value.
        facts: For each iteration, the facts of each class of iterations.
        start: The first iteration of the cycle: behind the end of the lists, iterations are as those from ``start`` on.
    """

    states: list[State]
    facts: list[tuple[Facts, ...]]
    start: int

    @property
    def period(self) -> int:
        """The number of iterations in the cycle."""
        return len(self.states) - self.start

    def after(self, count: Expr) -> State:
        """The state after ``count`` iterations: one condition per carried value."""
        first, *later = self.states
        result = list(first)
        for step, state in enumerate(later[: self.start], start=1):
            passed = Truth.of(AtLeast(count, Integer(step)))
            for position, truth in enumerate(state):
                change = truth.plus(self.states[step - 1][position], -1)
                result[position] = result[position].plus(passed & change)
        for step in range(1, self.period):
            there = Truth.of(Equal(Modulo(count - self.start, Integer(self.period)), Integer(step)))
            here = Truth.of(AtLeast(count, Integer(self.start))) & there
            for position, truth in enumerate(self.states[self.start + step]):
                result[position] = result[position].plus(here & truth.plus(self.states[self.start][position], -1))
        return tuple(result)

    def runs(self, step: int) -> tuple[tuple[int, int, int], ...]:
        """List the iterations that are in ``states[step]``, as progressions (sign, first iteration, stride).

        Progressions have no end. One with sign -1 is taken away from the one before it.
        """
        return ((1, step, 1), (-1, step + 1, 1)) if step < self.start else ((1, step, self.period),)


def iterations(loop: Loop, bracket: Truth, need: tuple[Trace, int], live: tuple[Trace, int]) -> Expr:
    """Number of iterations in the class with condition ``bracket`` that are in two given states.

    ``need`` and ``live`` are states, as (trace, position in ``states``). The trace of ``live`` begins at the last iteration.
    """
    total: Expr = Integer(0)
    for a, first, stride in need[0].runs(need[1]):
        for b, last, other in live[0].runs(live[1]):
            total += a * b * _overlap(loop, bracket, (first, stride), (last, other))
    return total


def all_iterations(loop: Loop, bracket: Truth) -> Expr:
    """Number of iterations in the class with condition ``bracket``."""
    return _overlap(loop, bracket, (0, 1), (0, 1))


def reachable_bodies(loop: Loop, need: Facts, live: Facts) -> Iterator[tuple[Truth, tuple[Node, ...], Facts, Facts]]:
    """Yield each body of ``loop`` with its facts, once for each combination of states that can occur.

    The items are (condition under which an iteration has these states, body, facts of ``needs``, facts of ``lives``).
    """
    ahead, behind = need.traces[loop.id], live.traces[loop.id]
    for position, (bracket, body) in enumerate(loop.classes):
        for a, b in product(range(len(ahead.states)), range(len(behind.states))):
            reached = _occurs(loop, bracket, (ahead, a), (behind, b))
            if reached is not NO:
                yield reached, body, ahead.facts[a][position], behind.facts[b][position]


def _occurs(loop: Loop, bracket: Truth, need: tuple[Trace, int], live: tuple[Trace, int]) -> Truth:
    """Condition under which some iteration is in two given states; arguments as of :func:`iterations`."""
    (ahead, a), (behind, b) = need, live
    if bracket is not YES or ahead.period > 1 or behind.period > 1:
        return Truth.of(AtLeast(iterations(loop, bracket, need, live), Integer(1)))
    enough = Truth.of(AtLeast(loop.count, Integer(a + b + 1)))
    once = a < ahead.start and b < behind.start  # one state counts from the front, the other from the back
    return enough & ~Truth.of(AtLeast(loop.count, Integer(a + b + 2))) if once else enough


def _times(index: Symbol, low: Expr, high: Expr, product: frozenset[Expr]) -> Expr:
    """Number of indices in ``[low, high)`` for which all brackets of ``product`` hold."""
    selecting = [atom for atom in sorted(product, key=text_of) if index in atom.free_symbols]
    guards = Mul(*sorted(product.difference(selecting), key=text_of))
    return guards * (Tally(index, low, high, Mul(*selecting)) if selecting else Excess(high - low))


def _overlap(loop: Loop, bracket: Truth, ahead: tuple[int, int], behind: tuple[int, int]) -> Expr:
    """Number of iterations in the class with condition ``bracket`` that lie in two progressions.

    ``ahead`` is (first, stride), counted from the first iteration; ``behind`` is (last, other), counted back from the last. So
    iteration ``i`` lies in both if ``i = first + stride*u`` and ``count - 1 - i = last + other*v`` with ``u, v >= 0``.
    """
    (first, stride), (last, other) = ahead, behind
    if stride == other == 1:
        if bracket is YES:
            return Excess(loop.count - first - last)
        low, high = loop.offset + first, loop.offset + loop.count - last
        return Add(*(factor * _times(loop.index, low, high, product) for product, factor in bracket.terms.items()))
    if bracket is not YES:
        raise no_closed_form(loop, "the gradients of this repeat alternate, and so do its layers")
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


def no_closed_form(loop: Loop, message: str) -> UnknownSizeError:
    """Make the error for a loop without a closed form, with a size that must be known to unroll the loop."""
    asked = (loop.count, loop.offset, *(bracket.expr for bracket, _ in loop.classes))
    letters = [name for expr in asked for name in sorted(symbol.name for symbol in expr.free_symbols - {loop.index})]
    letters = [name.removeprefix("?") for name in letters if not is_index(name)]
    hint = "a config, or a variant, that gives the count lets it be written out"
    return UnknownSizeError(letters[0] if letters else "", Diagnostic("alternating-repeat", message, loop.span, hint))


def iterate(loop: Loop, first: State, body: Callable[[int, State], tuple[Facts, State]]) -> Trace:
    """Trace ``loop``: pass the state from iteration to iteration until it repeats.

    ``body`` takes the position of a class and the entering state; it returns the facts and the next iteration's state.
    """
    states, found = [first], []
    while True:
        results = [body(position, states[-1]) for position in range(len(loop.classes))]
        found.append(tuple(facts for facts, _ in results))
        following = results[0][1]
        if any(state != following for _, state in results[1:]):
            raise no_closed_form(loop, "iterations of this repeat hand on different gradients")
        if following in states:
            return Trace(states, found, states.index(following))
        states.append(following)
        if len(states) > MAX_STATES:
            raise no_closed_form(loop, "the gradients of this repeat do not settle")
