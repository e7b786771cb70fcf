"""The rules by which a regime differs from a step in which everything trains, each with the operator kinds that it acts on.

A forward pass alone needs no rule: each record of a whole step measures it. A record of another regime measures its rules on
the kinds in the model, which carries over to all classes that are made of these kinds (``specs/measured.json``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from symflops.derive.recompute import group_of
from symflops.model.derivation import ParameterCount
from symflops.model.graph import Graph
from symflops.model.nodes import Checkpoint, Loop, Node
from symflops.model.regime import Recompute, Regime

Rules = tuple[tuple[str, frozenset[str]], ...]


def rules_of(graph: Graph, regime: Regime, parameters: Sequence[ParameterCount]) -> Rules:
    """The rules of ``regime`` by name, each with the kinds of the operators in ``graph`` that it acts on, adapters included.

    Most have the name of a field of the regime's page. Where nothing needs a gradient, nothing is frozen or recomputed.
    """
    everything, outputs = frozenset(one.kind for one in graph.operators()), {name for name, _ in graph.outputs}
    own = (entry.trains for entry in parameters if entry.parameter.trainable and not entry.parameter.adapter)
    backward = bool(regime.input_grad or regime.force_grad) or any(entry.trains for entry in parameters)
    conditions = {
        "decode": regime.decode,
        "parts": regime.parts,
        "freeze": backward and not all(own),
        "loss": backward and regime.loss and set(regime.loss) != outputs,
        "input_grad": regime.input_grad,
        "force_grad": regime.force_grad,
    }
    found = {name: everything for name, holds in conditions.items() if holds}
    for adapter in regime.adapters:  # the scale of a rank-stabilised one is no work
        name = "dora with dropout" if adapter.dropout else "dora"
        added = (one.kind for one in graph.operators() if any(parameter.adapter for parameter in one.parameters))
        found[name if adapter.kind == "dora" else "lora"] = frozenset(added)
    if regime.recompute and backward:
        found |= recomputed_kinds(graph, regime.recompute)
    return tuple((name, kinds) for name, kinds in found.items() if kinds)


def recomputed_kinds(graph: Graph, recompute: Recompute) -> dict[str, frozenset[str]]:
    """The rule of a way to recompute, with the kinds of the operators in its groups.

    A reentrant group with several results has a rule of its own: those that its module returns in a tuple get no gradient.
    """
    several = any(len(one.results) > 1 for one in checkpoints(graph.body))
    ways = {"recompute of attention alone": recompute.attention_only, "reentrant recompute of several results": several}
    ways |= {"reentrant recompute": recompute.reentrant}
    ways |= {"recompute without early stop": not recompute.early_stop, "recompute": True}
    chosen, name = dict(graph.chosen), next(name for name, holds in ways.items() if holds)
    inside = (one.kind for one in graph.operators() if group_of(one.modules, recompute, chosen))
    return {name: frozenset(kind for kind in inside if kind == "attention" or not recompute.attention_only)}


def checkpoints(nodes: Iterable[Node]) -> Iterator[Checkpoint]:
    """The reentrant checkpoints of a region, and of the loops in it."""
    for node in nodes:
        if isinstance(node, Checkpoint):
            yield node
        elif isinstance(node, Loop):
            for _, body in node.classes:
                yield from checkpoints(body)


def unmeasured(rules: Rules, measured: Mapping[str, Sequence[str]]) -> str:
    """The first of ``rules`` that was not measured on each kind that it acts on, in words; empty if all were."""
    for name, kinds in rules:
        lacking = sorted(kinds.difference(measured.get(name, ())))
        if lacking:
            on = f" on {', '.join(lacking)}" if name in measured else ""
            return f"{name} was not measured{on}"
    return ""
