"""derive: :class:`Graph`, :class:`Regime` -> :class:`Derivation`.

    need(parameter) = it trains                 need(result)  = an operand or parameter of its operator needs a gradient
    live(output of the loss) = yes              live(operand) = a result of its operator is live
    the gradient of operand o of a contraction of operator p is computed  <=>  p is live and o needs one

A loop of ``L`` iterations whose first ``a`` do not need a gradient yet and whose last ``b`` are not live computes it
``max(0, L - a - b)`` times, for every ``L >= 0``; :mod:`symflops.derive.facts` finds the iterations for any pattern of facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sympy import Expr, Integer, Symbol

from symflops.algebra.polynomial import Polynomial
from symflops.algebra.truth import NO, YES, Truth, any_of
from symflops.derive.adapters import adapt
from symflops.derive.decode import decoded, decoded_tokens
from symflops.derive.elementwise_work import with_elements
from symflops.derive.facts import Facts, Trace, iterations, lives, needs, operand_need
from symflops.derive.parameter_copies import Copies
from symflops.derive.recompute import is_inside, repeated
from symflops.derive.reentrant import reentrant
from symflops.derive.regime_checks import check_patterns
from symflops.derive.token_loops import spread
from symflops.diagnostics.findings import Diagnostic, SpecError, did_you_mean
from symflops.model.contraction import Contraction
from symflops.model.derivation import Derivation, Gradient, Work
from symflops.model.graph import Graph
from symflops.model.needs_size import or_needs_size
from symflops.model.nodes import Checkpoint, Loop, Node, Operator, Parameter
from symflops.model.patterns import matches, spelled
from symflops.model.regime import Passes, Recompute, Regime

ZERO, ONE = Integer(0), Integer(1)


@or_needs_size
def derive(graph: Graph, regime: Regime, elements: frozenset[str] = frozenset()) -> Derivation:
    """Derive both passes of ``graph`` under ``regime``, and its parameters, or answer with the size that this needs.

    ``elements`` are roles whose elements are work, too.

    Raises:
        SpecError: the regime names an output or input that the model does not have.
    """
    written, regime = regime, regime.with_patterns(lambda pattern: spelled(pattern, graph.listed))
    graph = reentrant(with_elements(adapt(graph, regime.adapters), elements), regime.recompute)
    chosen = dict(graph.chosen)
    check_patterns(graph, written)
    trains = trainable(regime, chosen)
    need, live = Facts(), Facts()
    for name, value, _ in graph.inputs:
        need.values[value] = YES if name in regime.input_grad else NO
    needs(graph.body, need, trains, lambda operator: any(matches(path, operator.path, chosen) for path in regime.force_grad))
    for value in loss_values(graph, regime):
        live.values[value] = YES
    lives(graph.body, live)
    tally = _Tally(trains, frozenset(length.symbol for length in graph.lengths), regime.recompute, chosen)
    tally.region(graph.body, need, live, Integer(1))
    for key, entry in tally.entries.items():
        entry.recomputed = tally.again.get(key, ZERO)
    works = tuple(_passes(entry.work(), regime.passes) for entry in tally.entries.values())
    tokens: frozenset[Symbol] = frozenset()
    if regime.decode:
        lengths = frozenset(length.symbol for length in graph.lengths)
        works = tuple(part for work in works for part in spread(work, lengths))
        tokens = decoded_tokens(works)
        works = decoded(works, regime.decode, regime.name)
    return Derivation(graph, written, works, tally.copies.counts(), tokens)


def step_of(phases: Sequence[tuple[Derivation, int]]) -> Derivation:
    """A step of several phases as one derivation: the work of all, the parameters of the first."""
    (first, times), *others = phases
    if not others and times == 1:
        return first
    works = [_passes(work, Passes(forward=times)) for derivation, times in phases for work in derivation.work]
    return replace(first, work=tuple(works))


def _passes(work: Work, passes: Passes) -> Work:
    """``work`` of all the passes of a step."""
    if passes == Passes():
        return work
    gradients = tuple(replace(gradient, count=passes.trained * gradient.count) for gradient in work.gradients)
    recomputed = passes.trained * work.recomputed
    return replace(work, forward=passes.runs * work.forward, gradients=gradients, recomputed=recomputed)


def trainable(regime: Regime, chosen: Mapping[Expr, frozenset[str]]) -> Callable[[Parameter], bool]:
    """Whether the patterns of ``regime`` train a parameter."""
    known: dict[int, tuple[Parameter, bool]] = {}  # by identity: many are asked of, each several times

    def trains(parameter: Parameter) -> bool:
        if id(parameter) not in known:
            wanted = parameter.adapter or any(matches(pattern, parameter.path, chosen) for pattern in regime.train)
            frozen = any(matches(pattern, parameter.path, chosen) for pattern in regime.freeze)
            known[id(parameter)] = (parameter, parameter.trainable and wanted and not frozen)
        return known[id(parameter)][1]

    return trains


def loss_values(graph: Graph, regime: Regime) -> list[int]:
    """The outputs that the loss uses."""
    outputs = dict(graph.outputs)
    for name in regime.loss:
        if name not in outputs:
            hint = did_you_mean(name, outputs, f"outputs: {', '.join(outputs)}")
            raise SpecError([Diagnostic("unknown-value", f"the loss uses '{name}', which is no output", None, hint)])
    return [value for name, value in graph.outputs if not regime.loss or name in regime.loss]


@dataclass
class _Entry:
    """Executions of one contraction, added up over the iterations of the loops around it."""

    operator: Operator
    contraction: Contraction
    loops: tuple[Loop, ...]
    forward: Expr = ZERO
    computed: list[Expr] = field(default_factory=list)
    needed: list[Expr] = field(default_factory=list)
    lived: Expr = ZERO
    recomputed: Expr = ZERO

    def work(self) -> Work:
        forward = _reduced(self.forward)
        gradients = []
        for position, operand in enumerate(self.contraction.operands):
            kind = "weight" if operand.is_weight else "input"
            count = _reduced(self.computed[position])
            reason = self.reason(kind, forward, count, _reduced(self.needed[position]), _reduced(self.lived))
            gradients.append(Gradient(operand.label, kind, count, reason))
        return Work(self.operator, self.contraction, forward, tuple(gradients), _reduced(self.recomputed))

    def reason(self, kind: str, forward: Expr, computed: Expr, needed: Expr, lived: Expr) -> str:
        """Why a gradient is not computed, or not always; nothing where it always is."""
        if computed == forward:
            return ""
        if not self.operator.flows:
            return "runs without gradients"
        if needed == 0:
            return "frozen weight" if kind == "weight" else "nothing trainable upstream"
        if lived == 0:
            return "dead end: the loss does not depend on it"
        where = f" of {self.loops[-1].path}" if self.loops else ""
        reasons = []
        if needed != forward:
            reasons.append(
                f"nothing trainable upstream in the first pass{where}" if self.loops else "only where something trains"
            )
        if lived != forward:
            reasons.append(f"dead end: unused in the last pass{where}" if self.loops else "only where the loss depends on it")
        return "; ".join(reasons) or "only where both hold"


@lru_cache(maxsize=1 << 12)
def _reduced(expr: Expr) -> Expr:
    return expr if expr.is_Integer else Polynomial.of(expr).expr


def _more(known: Expr, times: Expr, there: Truth) -> Expr:
    """``known`` and ``times`` more where ``there`` holds; what is always or never needs no algebra."""
    if there is NO:
        return known
    more = times if there is YES else there.expr if times is ONE else times * there.expr
    return more if known is ZERO else known + more


class _Tally:
    """Adds up executions over a region, visiting a loop's body once for each pair of states that occurs."""

    def __init__(
        self,
        trains: Callable[[Parameter], bool],
        lengths: frozenset[Symbol],
        recompute: Recompute | None,
        chosen: Mapping[Expr, frozenset[str]],
    ) -> None:
        self.trains = trains
        self.recompute = recompute
        self.chosen = chosen
        self.entries: dict[tuple[int, int], _Entry] = {}
        self.copies = Copies(trains, lengths)
        self.around: list[tuple[Loop, Truth]] = []
        self.again: dict[tuple[int, int], Expr] = {}

    def region(
        self, nodes: tuple[Node, ...], need: Facts, live: Facts, times: Expr, entered: Truth = YES, whole: bool = False
    ) -> None:
        """Enter the work of a region; ``whole`` in a repeat that is recomputed with the group around it."""
        if self.recompute and not whole:
            for key, count in repeated(nodes, self.recompute, self.chosen, need, live, self.trains).items():
                self.again[key] = self.again.get(key, ZERO) + times * count
        gates = {}
        for node in nodes:
            if isinstance(node, Checkpoint):
                gates.update(dict.fromkeys(node.members, any_of(need.values[value] for value in node.inputs)))
        for node in nodes:
            if isinstance(node, Operator):
                self.operator(node, need, live.operators[node.id] & gates.get(node.id, entered), times)
            elif isinstance(node, Loop):
                self.loop(node, need, live, times, gates.get(node.id, entered), whole)

    def loop(self, loop: Loop, need: Facts, live: Facts, times: Expr, entered: Truth, whole: bool) -> None:
        ahead, behind = need.traces[loop.id], live.traces[loop.id]
        whole = whole or is_inside(loop, self.recompute, self.chosen)
        for position, (bracket, body) in enumerate(loop.classes):
            self.around.append((loop, bracket))
            for a in range(len(ahead.states)):
                for b in range(len(behind.states)):
                    count = self.iterations(loop, bracket, (ahead, a), (behind, b))
                    if count != 0:
                        facts = ahead.facts[a][position], behind.facts[b][position]
                        self.region(body, *facts, times * count, entered, whole)
            self.around.pop()

    @staticmethod
    def iterations(loop: Loop, bracket: Truth, need: tuple[Trace, int], live: tuple[Trace, int]) -> Expr:
        return iterations(loop, bracket, need, live)

    def operator(self, operator: Operator, need: Facts, alive: Truth, times: Expr) -> None:
        for parameter in operator.parameters:
            self.copies.enter(parameter, self.around)
        by_name = {contraction.name: contraction for contraction in operator.contractions}
        for position, contraction in enumerate(operator.contractions):
            key = (operator.id, position)
            if key not in self.entries:
                zeros = [Integer(0)] * len(contraction.operands)
                loops = tuple(loop for loop, _ in self.around)
                self.entries[key] = _Entry(operator, contraction, loops, computed=list(zeros), needed=list(zeros))
            entry = self.entries[key]
            entry.forward = _more(entry.forward, times, operator.guard)
            entry.lived = _more(entry.lived, times, alive)
            for side, operand in enumerate(contraction.operands):
                wanted = operand_need(operand, operator, need, self.trains, by_name) & operator.guard
                wanted = wanted if operator.flows else NO
                entry.needed[side] = _more(entry.needed[side], times, wanted)
                entry.computed[side] = _more(entry.computed[side], times, wanted & alive)
