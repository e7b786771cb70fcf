"""Activation checkpointing: which forward work the backward pass recomputes.

The backward pass recomputes a group when it needs a tensor that the group saved: when an operator in the group is live, its
result needs a gradient, and it saves something (a linear that trains only its bias saves nothing).

- Without early stop, the whole group is recomputed, dead operators included.
- With early stop, PyTorch's default for ``use_reentrant=False``, recomputation stops at the last operator that saves a tensor
  and whose result needs a gradient. Of this operator, only contractions whose result it saves are recomputed: an attention
  saves its softmax, so the scores are recomputed and the mix is not.
- A reentrant checkpoint recomputes a whole group if a value that enters it needs a gradient and a value that leaves it is live.

A loop inside a group is recomputed with all its iterations, or, if recomputation stops before it, not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sympy import Expr, Integer

from symflops.derive.analyses import Trains, operand_need
from symflops.derive.iterations import Facts, all_iterations, reachable_bodies
from symflops.formula.truth import NO, Truth, any_of
from symflops.ir.nodes import Checkpoint, Loop, Node, Operator
from symflops.ir.patterns import Path, any_matches, prefixes
from symflops.ir.regime import Recompute
from symflops.support.findings import Diagnostic, SpecError

Chosen = Mapping[Expr, frozenset[str]]
Counts = dict[tuple[int, int], Expr]
"""(operator id, position of a contraction) -> number of recomputations."""

ONE = Integer(1)


def groups_of(nodes: tuple[Node, ...], recompute: Recompute, chosen: Chosen) -> dict[str, list[Operator | Loop]]:
    """Map each call of a recomputed group, as text, to its operators and loops in ``nodes``, in order."""
    found: dict[str, list[Operator | Loop]] = {}
    for node in nodes:
        if isinstance(node, (Operator, Loop)):
            modules = node.modules if isinstance(node, Operator) else prefixes(node.path)
            group = group_of(modules, recompute, chosen)
            if group:
                call = [number for path, number in turns_of(node) if path in prefixes(group[-1]) or not path.parts]
                found.setdefault(repr((group, call)), []).append(node)
    return found


def turns_of(node: Operator | Loop) -> tuple[tuple[Path, int], ...]:
    """(module, call number) for each module around ``node`` that runs more than once."""
    if isinstance(node, Operator):
        return node.turns
    inside = (inner for _, body in node.classes for inner in body if isinstance(inner, (Operator, Loop)))
    return next(map(turns_of, inside), ())


def is_inside(loop: Loop, recompute: Recompute | None, chosen: Chosen) -> bool:
    """Whether ``loop`` lies inside a recomputed group, so that it is recomputed as a whole."""
    return recompute is not None and not recompute.attention_only and bool(group_of(prefixes(loop.path), recompute, chosen))


def group_of(modules: Iterable[Path], recompute: Recompute, chosen: Chosen) -> tuple[Path, ...]:
    """The first of ``modules``, up to and with the recomputed group; empty if none of them is a group.

    A module is a group if a pattern of ``recompute`` matches it and none of its parents, whether its parents run or not. So a
    part of a matching module is no group, even if it is called from elsewhere.
    """
    outer: list[Path] = []
    for module in modules:
        outer.append(module)
        if any_matches(recompute.groups, module, chosen):
            around = next(prefix for prefix in prefixes(module) if any_matches(recompute.groups, prefix, chosen))
            return tuple(outer) if around == module else ()
    return ()


def recomputed(
    nodes: tuple[Node, ...], recompute: Recompute, chosen: Chosen, need: Facts, live: Facts, trains: Trains
) -> Counts:
    """Number of recomputations of each contraction of ``nodes`` each time that ``nodes`` run."""
    found: Counts = {}
    if recompute.reentrant and not recompute.attention_only:
        known = {node.id: node for node in nodes if isinstance(node, (Operator, Loop))}
        for node in nodes:
            if isinstance(node, Checkpoint):
                _checkpoint(found, node, [known[member] for member in node.members], need, live)
        return found
    for group in groups_of(nodes, recompute, chosen).values():
        if recompute.attention_only:
            _attention(found, group, need, live)
        else:
            _group(found, group, recompute.early_stop, need, live, trains)
    return found


def _checkpoint(found: Counts, checkpoint: Checkpoint, members: Iterable[Operator | Loop], need: Facts, live: Facts) -> None:
    """Record in ``found`` that a reentrant checkpoint recomputes its members if a gradient passes it."""
    entered = any_of(need.values[value] for value in checkpoint.inputs)
    alive = entered & any_of(live.values.get(result, NO) for result in checkpoint.results)
    for node in members:
        _mark(found, node, alive)


def _attention(found: Counts, group: list[Operator | Loop], need: Facts, live: Facts) -> None:
    """Record in ``found`` that attentions in ``group`` recompute their scores if their backward pass runs."""
    for node in group:
        if isinstance(node, Operator) and node.kind == "attention":
            alive = live.operators[node.id] & any_of(need.values[result] for result in node.results)
            _mark(found, node, alive, intermediate(node))


def _group(found: Counts, group: list[Operator | Loop], early_stop: bool, need: Facts, live: Facts, trains: Trains) -> None:
    """Record in ``found`` the recomputed nodes: all, or with ``early_stop`` up to the last that saves."""
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
    """Two conditions: autograd saves a tensor of ``node``, and the backward pass needs that tensor."""
    if isinstance(node, Operator):
        saves = saved(node, need, trains)
        return saves & node.guard, live.operators[node.id] & saves
    found = [(NO, NO)]
    for reached, body, inner_need, inner_live in reachable_bodies(node, need, live):
        inside = [_keeps(one, inner_need, inner_live, trains) for one in body if isinstance(one, (Operator, Loop))]
        found += [(saves & reached, wanted & reached) for saves, wanted in inside]
    return any_of(saves for saves, _ in found), any_of(wanted for _, wanted in found)


def saved(operator: Operator, need: Facts, trains: Trains) -> Truth:
    """Condition under which autograd saves a tensor of ``operator``.

    An operator that saves its ``factors`` does so only if one of them needs a gradient.
    """
    if operator.saves == "nothing":
        return NO
    if operator.saves != "factors":
        return any_of(need.values[result] for result in operator.results)
    sides = [side for contraction in operator.contractions for side in contraction.operands]
    return any_of(operand_need(side, operator, need, trains) for side in sides) if operator.flows else NO


def intermediate(operator: Operator) -> frozenset[str]:
    """Contractions of ``operator`` that feed another of its contractions; autograd saves their results."""
    return frozenset(name for contraction in operator.contractions for side in contraction.operands for name in side.inner)


def _mark(found: Counts, node: Node, truth: Truth, only: frozenset[str] | None = None, times: Expr = ONE) -> None:
    """Record in ``found`` that contractions of ``node`` are recomputed if ``truth``.

    In a loop, they are recomputed in all iterations. ``only`` are the names of the contractions to record, by default all.
    ``times`` is the number of recomputations per run of ``node``, more than one inside a loop.
    """
    if isinstance(node, Loop):
        for bracket, body in node.classes:
            for inner in body:
                _mark(found, inner, truth, only, times * all_iterations(node, bracket))
    elif isinstance(node, Operator):
        for position, contraction in enumerate(node.contractions):
            if only is None or contraction.name in only:
                found[node.id, position] = times * (truth & node.guard).expr
