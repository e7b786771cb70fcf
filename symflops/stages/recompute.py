"""Recomputation: which forward work the backward pass repeats.

A group is repeated when the backward pass asks for a tensor that it saved: when an operator in it is live, its result needs
a gradient, and it saves something (a linear of which only the bias trains saves nothing). Without early stop all of it is
repeated, dead operators too. With early stop, PyTorch's default for ``use_reentrant=False``, it stops at the last operator
that saves a tensor and whose result needs a gradient; that one is itself repeated only as far as what it saves is its own
result: the softmax of an attention, which needs the scores but not the mix. A reentrant checkpoint repeats all of a group that
something enters with a gradient, where something that leaves it is live.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sympy import Expr

from symflops.algebra.truth import NO, Truth, any_of
from symflops.ground.diagnostics import Diagnostic, SpecError
from symflops.model.graph import Checkpoint, Loop, Node, Operator, Parameter
from symflops.model.path import Path, prefixes
from symflops.model.patterns import matches
from symflops.model.regime import Recompute
from symflops.stages.facts import Facts, operand_need

Chosen = Mapping[Expr, frozenset[str]]


def groups_of(nodes: tuple[Node, ...], recompute: Recompute, chosen: Chosen) -> dict[str, list[Operator]]:
    """The operators of a region by the group that they are recomputed with, in order."""
    found: dict[str, list[Operator]] = {}
    for node in nodes:
        if isinstance(node, Operator):
            group = group_of(node.modules, recompute, chosen)
            if group:
                found.setdefault(repr(group), []).append(node)
        elif isinstance(node, Loop) and group_of(prefixes(node.path), recompute, chosen):
            message = f"'{node.path}' is a repeat inside a recomputed group"
            raise SpecError([Diagnostic("bad-recompute", message, node.span, "recompute the iterations of the inner repeat")])
    return found


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


def repeated(
    nodes: tuple[Node, ...], recompute: Recompute, chosen: Chosen, need: Facts, live: Facts, trains: Callable[[Parameter], bool]
) -> dict[tuple[int, int], Truth]:
    """Which contractions of a region are done again: (operator, position) -> when."""
    found: dict[tuple[int, int], Truth] = {}
    if recompute.reentrant and not recompute.attention_only:
        for node in nodes:
            if isinstance(node, Checkpoint):
                entered = any_of(need.values[value] for value in node.inputs)
                alive = entered & any_of(live.values.get(result, NO) for result in node.results)
                for operator in nodes:
                    if isinstance(operator, Operator) and operator.id in node.members:
                        _mark(found, operator, alive)
        return found
    for group in groups_of(nodes, recompute, chosen).values():
        if recompute.attention_only:
            for operator in group:
                if operator.kind == "attention":
                    _mark(found, operator, asked(operator, need, live), intermediate(operator))
            continue
        saving = {operator.id: saved(operator, need, trains) for operator in group}
        alive = any_of(live.operators[operator.id] & saving[operator.id] for operator in group)
        later = NO
        for operator in reversed(group):
            saves = saving[operator.id] & operator.guard
            if not recompute.early_stop:
                _mark(found, operator, alive)
                continue
            _mark(found, operator, alive & later)
            if operator.saves != "nothing":
                _mark(found, operator, alive & (later | saves), intermediate(operator))
                later = later | saves
    return found


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


def _mark(found: dict[tuple[int, int], Truth], operator: Operator, truth: Truth, only: frozenset[str] | None = None) -> None:
    for position, contraction in enumerate(operator.contractions):
        if only is None or contraction.name in only:
            found[operator.id, position] = truth & operator.guard
