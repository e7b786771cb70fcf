"""Recomputation: which forward work the backward pass repeats.

A group is repeated when the backward pass asks for a tensor that it saved: when an operator in it is live, its result needs
a gradient, and it saves something (a linear of which only the bias trains saves nothing). Without early stop all of it is
repeated, dead operators too. With early stop, PyTorch's default for ``use_reentrant=False``, it stops at the last operator
that saves a tensor and whose result needs a gradient; that one is itself repeated only as far as what it saves is its own
result: the softmax of an attention, which needs the scores but not the mix. A reentrant checkpoint repeats all of a group that
something enters with a gradient, where something that leaves it is live. A repeat inside a group is repeated with all its
iterations, or, where something after it in the group ended the recomputation before, not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sympy import Expr, Integer

from symflops.algebra.truth import NO, Truth, any_of
from symflops.derive.facts import Facts, operand_need, turns, whole_count
from symflops.diagnostics.findings import Diagnostic, SpecError
from symflops.model.nodes import Checkpoint, Loop, Node, Operator, Parameter
from symflops.model.path import Path, prefixes
from symflops.model.patterns import matches
from symflops.model.regime import Recompute

Chosen = Mapping[Expr, frozenset[str]]
Trains = Callable[[Parameter], bool]
Again = dict[tuple[int, int], Expr]
ONE = Integer(1)


def groups_of(nodes: tuple[Node, ...], recompute: Recompute, chosen: Chosen) -> dict[str, list[Operator | Loop]]:
    """The operators and repeats of a region by the group that they are recomputed with, in order."""
    found: dict[str, list[Operator | Loop]] = {}
    for node in nodes:
        if isinstance(node, (Operator, Loop)):
            modules = node.modules if isinstance(node, Operator) else prefixes(node.path)
            group = group_of(modules, recompute, chosen)
            if group:
                found.setdefault(repr(group), []).append(node)
    return found


def is_inside(loop: Loop, recompute: Recompute | None, chosen: Chosen) -> bool:
    """Whether a repeat is recomputed as a whole, with the group that it is in."""
    return recompute is not None and not recompute.attention_only and bool(group_of(prefixes(loop.path), recompute, chosen))


def group_of(modules: Iterable[Path], recompute: Recompute, chosen: Chosen) -> tuple[Path, ...]:
    """The run of modules up to the group that is recomputed: the outermost that a pattern matches whole; none without one."""
    run: list[Path] = []
    for module in modules:
        run.append(module)
        depth = str(module).count(".")
        for pattern in recompute.groups:
            if pattern.count(".") == depth and matches(pattern, module, chosen):
                return tuple(run)
    return ()


def repeated(nodes: tuple[Node, ...], recompute: Recompute, chosen: Chosen, need: Facts, live: Facts, trains: Trains) -> Again:
    """How often the contractions of a region are done again each time that it runs: (operator, position) -> count."""
    found: Again = {}
    if recompute.reentrant and not recompute.attention_only:
        for node in nodes:
            if isinstance(node, Checkpoint):
                entered = any_of(need.values[value] for value in node.inputs)
                alive = entered & any_of(live.values.get(result, NO) for result in node.results)
                for member in nodes:
                    if isinstance(member, (Operator, Loop)) and member.id in node.members:
                        _mark(found, member, alive)
        return found
    for group in groups_of(nodes, recompute, chosen).values():
        if recompute.attention_only:
            for node in group:
                if isinstance(node, Operator) and node.kind == "attention":
                    _mark(found, node, asked(node, need, live), intermediate(node))
            continue
        _group(found, group, recompute.early_stop, need, live, trains)
    return found


def _group(found: Again, group: list[Operator | Loop], early_stop: bool, need: Facts, live: Facts, trains: Trains) -> None:
    """Mark what is done again of one group whose recomputation runs up to the end, or up to what was saved last."""
    saving = {node.id: _keeps(node, need, live, trains) for node in group}
    alive = any_of(wanted for _, wanted in saving.values())
    later = NO
    for node in reversed(group):
        saves, _ = saving[node.id]
        if not early_stop:
            _mark(found, node, alive)
            continue
        _mark(found, node, alive & later)
        if isinstance(node, Loop):
            if not (alive & saves).implies(later):
                message = f"recomputation may stop inside the repeat '{node.path}'"
                raise SpecError(
                    [Diagnostic("bad-recompute", message, node.span, "recompute without early stop, or another group")]
                )
        elif node.saves != "nothing":
            _mark(found, node, alive & (later | saves), intermediate(node))
        later = later | saves


def _keeps(node: Operator | Loop, need: Facts, live: Facts, trains: Trains) -> tuple[Truth, Truth]:
    """When autograd keeps something of an operator or of an iteration of a repeat, and when the backward pass asks for it."""
    if isinstance(node, Operator):
        saves = saved(node, need, trains)
        return saves & node.guard, live.operators[node.id] & saves
    found = [(NO, NO)]
    for reached, body, inner_need, inner_live in turns(node, need, live):
        inside = [_keeps(one, inner_need, inner_live, trains) for one in body if isinstance(one, (Operator, Loop))]
        found += [(saves & reached, wanted & reached) for saves, wanted in inside]
    return any_of(saves for saves, _ in found), any_of(wanted for _, wanted in found)


def asked(operator: Operator, need: Facts, live: Facts) -> Truth:
    """When the backward pass of an operator runs: it is live and its result needs a gradient."""
    return live.operators[operator.id] & any_of(need.values[result] for result in operator.results)


def saved(operator: Operator, need: Facts, trains: Callable[[Parameter], bool]) -> Truth:
    """When autograd keeps something of an operator: of a product (``factors``) only for the gradient of a factor."""
    if operator.saves == "nothing":
        return NO
    if operator.saves != "factors":
        return any_of(need.values[result] for result in operator.results)
    by_name = {contraction.name: contraction for contraction in operator.contractions}
    sides = [side for contraction in operator.contractions for side in contraction.operands]
    return any_of(operand_need(side, operator, need, trains, by_name) for side in sides) if operator.flows else NO


def intermediate(operator: Operator) -> frozenset[str]:
    """The contractions whose result another contraction of the operator reads, and so saves."""
    return frozenset(name for contraction in operator.contractions for side in contraction.operands for name in side.inner)


def _mark(found: Again, node: Node, truth: Truth, only: frozenset[str] | None = None, times: Expr = ONE) -> None:
    """Enter that the contractions of ``node`` (``only`` some) are done again, those of a repeat in all its iterations."""
    if isinstance(node, Loop):
        for bracket, body in node.classes:
            for inner in body:
                _mark(found, inner, truth, only, times * whole_count(node, bracket))
    elif isinstance(node, Operator):
        for position, contraction in enumerate(node.contractions):
            if only is None or contraction.name in only:
                found[node.id, position] = times * (truth & node.guard).expr
