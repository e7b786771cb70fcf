"""derive: :class:`Graph`, :class:`Regime` -> :class:`Derivation`.

The gradient of an operand is computed if, and only if, the operand needs one and its operator is live. Neither of the two
analyses (:mod:`~symflops.derive.analyses`) reads the other: from an operand that needs a gradient, every value up to the loss
needs one, unless a ``detach`` cuts the path, and such a path makes nothing live. So loops keep closed forms: if the
first ``a`` of ``L`` iterations need no gradient and the last ``b`` are not live, ``max(0, L - a - b)`` gradients are computed,
for every ``L >= 0``. :mod:`symflops.derive.iterations` counts iterations for any pattern of facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product

from sympy import Expr, Integer, Symbol

from symflops.derive.adapters import adapt, with_elements
from symflops.derive.analyses import Copies, Trains, lives, needs, operand_need, trainable, with_entries
from symflops.derive.decode import decoded, first_calls, kept_after, kept_alone, spread
from symflops.derive.heads import with_head
from symflops.derive.iterations import Facts, iterations
from symflops.derive.recompute import is_inside, recomputed, reentrant
from symflops.derive.regime_checks import check_decoding, check_patterns, check_phases, check_size, rules_of
from symflops.formula.polynomial import Polynomial
from symflops.formula.state import SYMBOLS
from symflops.formula.truth import NO, YES, Truth, any_of
from symflops.ir.contraction import Contraction
from symflops.ir.graph import DEAD_END, Derivation, Gradient, Graph, Work
from symflops.ir.nodes import Checkpoint, Loop, Node, Operator
from symflops.ir.patterns import spelled
from symflops.ir.regime import Passes, Recompute, Regime

ZERO, ONE = Integer(0), Integer(1)


def derive(graph: Graph, regime: Regime, elements: frozenset[str] = frozenset()) -> Derivation:
    """Derive forward and backward work and parameters of ``graph`` under ``regime``.

    Args:
        graph: the forward pass.
        regime: what trains, what the loss uses, adapters, recomputation and decoding.
        elements: the roles of element-wise work that counts as contractions of its own, for conventions that count it.

    Raises:
        SpecError: the regime names an output, a module or a parameter that the model does not have, or decodes and trains.
        UnknownSizeError: both passes depend on a size that is a symbol.
    """
    written, regime = regime, regime.with_patterns(lambda pattern: spelled(pattern, graph.listed))
    check_decoding(regime)
    check_size(graph, regime)
    graph = with_head(graph, regime)
    graph = with_entries(reentrant(with_elements(adapt(graph, regime.adapters), elements), regime.recompute), regime)
    chosen = dict(graph.chosen)
    check_patterns(graph, written)
    lengths = frozenset(length.symbol for length in graph.lengths)
    trains = trainable(regime, chosen)
    need = needs(graph, regime, trains)
    live = lives(graph, regime)
    tally = _Tally(Copies(graph.body, trains, lengths), trains, regime.recompute, chosen)
    tally.region(graph.body, need, live, ONE)
    works = tuple(_passes(work, regime.passes) for work in tally.works())
    tokens: frozenset[Symbol] = frozenset()
    if regime.decode:
        works = tuple(part for work in works for part in spread(work, lengths | SYMBOLS))
        calls, tokens = decoded(works, graph, regime.decode, regime.name)
        graph = replace(graph, limits=(*graph.limits, *first_calls(works, graph, regime.decode, tokens)))
        works = calls
    kept: tuple[tuple[str, str, Expr], ...] = ()
    if regime.decode:
        alone = derive(kept_alone(graph), Regime(regime.name, train=())).work
        kept = kept_after([part for work in alone for part in spread(work, lengths | SYMBOLS)], graph, regime.decode)
    parameters = tally.copies.counts()
    return Derivation(graph, written, works, parameters, tokens, rules_of(graph, regime, parameters), kept)


def step_of(phases: Sequence[tuple[Derivation, int]]) -> Derivation:
    """Merge the phases of a step, each with its number of runs, into one derivation.

    Work and rules come from all phases, parameters from the first.

    Raises:
        SpecError: some phases decode in another way than the first.
    """
    (first, times), *others = phases
    if not others and times == 1:
        return first
    check_phases(first.regime, (derivation.regime for derivation, _ in others))
    works = [_passes(work, Passes(forward=times)) for derivation, times in phases for work in derivation.work]
    return replace(first, work=tuple(works), rules=tuple(rule for derivation, _ in phases for rule in derivation.rules))


def _passes(work: Work, passes: Passes) -> Work:
    """Multiply the execution counts of ``work`` by how often a step runs each pass."""
    if passes == Passes():
        return work
    gradients = tuple(replace(gradient, count=passes.trained * gradient.count) for gradient in work.gradients)
    recomputed = passes.trained * work.recomputed
    return replace(work, forward=passes.runs * work.forward, gradients=gradients, recomputed=recomputed)


@dataclass
class _Entry:
    """Execution counts of one contraction, summed over the iterations of the loops around it.

    Attributes:
        forward: Executions in the forward pass.
        computed: For each operand, how often its gradient is computed: it needs one, and the operator is live.
        needed: For each operand, how often it needs a gradient, whether the operator is live or not.
        lived: How often the operator is live.
    """

    operator: Operator
    contraction: Contraction
    loops: tuple[Loop, ...]
    forward: Expr = ZERO
    computed: list[Expr] = field(default_factory=list)
    needed: list[Expr] = field(default_factory=list)
    lived: Expr = ZERO

    def work(self, recomputed: Expr) -> Work:
        forward = _reduced(self.forward)
        gradients = []
        for position, operand in enumerate(self.contraction.operands):
            kind = "weight" if operand.is_weight else "input"
            count = _reduced(self.computed[position])
            reason = self.reason(kind, forward, count, _reduced(self.needed[position]), _reduced(self.lived))
            gradients.append(Gradient(operand.label, kind, count, reason))
        return Work(self.operator, self.contraction, forward, tuple(gradients), _reduced(recomputed))

    def reason(self, kind: str, forward: Expr, computed: Expr, needed: Expr, lived: Expr) -> str:
        """Explain why an operand's gradient is not computed in every execution; empty if it is.

        ``kind`` is ``weight`` or ``input``. The counts are those of :class:`_Entry`, for this operand.
        """
        if computed == forward:
            return ""
        if not self.operator.flows:
            return "runs without gradients"
        if needed == 0:
            return "frozen weight" if kind == "weight" else "nothing trainable upstream"
        if lived == 0:
            return f"{DEAD_END}: the loss does not depend on it"
        where = f" of {self.loops[-1].path}" if self.loops else ""
        reasons = []
        if needed != forward:
            reasons.append(
                f"nothing trainable upstream in the first pass{where}" if self.loops else "only where something trains"
            )
        if lived != forward:
            reasons.append(f"{DEAD_END}: unused in the last pass{where}" if self.loops else "only where the loss depends on it")
        return "; ".join(reasons) or "only where both hold"


@lru_cache(maxsize=1 << 12)
def _reduced(expr: Expr) -> Expr:
    return expr if expr.is_Integer else Polynomial.of(expr).expr


def _more(known: Expr, times: Expr, there: Truth) -> Expr:
    """Add ``times`` executions to the count ``known`` if the condition ``there`` holds."""
    if there is NO:
        return known
    more = times if there is YES else there.expr if times is ONE else times * there.expr
    return more if known is ZERO else known + more


class _Tally:
    """Computes how often each contraction of a graph runs.

    A loop's body is visited once for each combination of a state of ``needs`` and a state of ``lives`` that an iteration has.
    """

    def __init__(
        self,
        copies: Copies,
        trains: Trains,
        recompute: Recompute | None,
        chosen: Mapping[Expr, frozenset[str]],
    ) -> None:
        self.copies = copies
        self.trains = trains
        self.recompute = recompute
        self.chosen = chosen
        self.entries: dict[tuple[int, int], _Entry] = {}
        self.around: list[tuple[Loop, Truth]] = []
        self.recomputed: dict[tuple[int, int], Expr] = {}

    def works(self) -> Iterator[Work]:
        """Yield the work of each contraction, with the executions counted so far."""
        return (entry.work(self.recomputed.get(key, ZERO)) for key, entry in self.entries.items())

    def region(
        self, nodes: tuple[Node, ...], need: Facts, live: Facts, times: Expr, entered: Truth = YES, whole: bool = False
    ) -> None:
        """Count the executions of ``nodes``, the body of the graph or of a loop.

        Args:
            nodes: The nodes.
            need: What ``needs`` found for them.
            live: What ``lives`` found for them.
            times: How often they run.
            entered: Whether an input of the checkpoint around them needs a gradient.
            whole: Whether they lie in a loop that is recomputed with the group around it.
        """
        if self.recompute and not whole:
            for key, count in recomputed(nodes, self.recompute, self.chosen, need, live, self.trains).items():
                self.recomputed[key] = self.recomputed.get(key, ZERO) + times * count
        checkpoints = (node for node in nodes if isinstance(node, Checkpoint))
        arrives = ((node.members, any_of(need.values[value] for value in node.inputs)) for node in checkpoints)
        gates = {member: truth for members, truth in arrives for member in members}
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
            for a, b in product(range(len(ahead.states)), range(len(behind.states))):
                count = iterations(loop, bracket, (ahead, a), (behind, b))
                if count != 0 or (loop.shared and loop.count == 0):  # its parameters exist
                    facts = ahead.facts[a][position], behind.facts[b][position]
                    self.region(body, *facts, times * count, entered, whole)
            self.around.pop()

    def operator(self, operator: Operator, need: Facts, alive: Truth, times: Expr) -> None:
        for parameter in operator.parameters:
            self.copies.enter(parameter, self.around)
        for position, contraction in enumerate(operator.contractions):
            key = (operator.id, position)
            if key not in self.entries:
                zeros = [ZERO] * len(contraction.operands)
                loops = tuple(loop for loop, _ in self.around)
                self.entries[key] = _Entry(operator, contraction, loops, computed=[*zeros], needed=[*zeros])
            entry = self.entries[key]
            entry.forward = _more(entry.forward, times, operator.guard)
            entry.lived = _more(entry.lived, times, alive)
            for side, operand in enumerate(contraction.operands):
                wanted = operand_need(operand, operator, need, self.trains) & operator.guard
                wanted = wanted if operator.flows else NO
                entry.needed[side] = _more(entry.needed[side], times, wanted)
                entry.computed[side] = _more(entry.computed[side], times, wanted & alive)
