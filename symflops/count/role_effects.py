"""Which inferred roles change what a convention counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from symflops.count.per_parameter import TOWERS
from symflops.ir.convention import ROLES, Convention, Rule, inferred_of, regions_of, role_of
from symflops.ir.graph import Graph
from symflops.ir.nodes import Operator


class Effect(NamedTuple):
    """An inferred role or region of an operator, and names of the conventions whose count depends on it."""

    operator: Operator
    role: str
    conventions: tuple[str, ...]


def effects(graph: Graph, conventions: Sequence[Convention]) -> Iterator[Effect]:
    """Yield each inferred role or region that changes a count, in order of operators."""
    operators = list(graph.operators())
    rows = {convention.name: _named_rows(operators, convention) for convention in conventions}
    for operator in operators:
        for name in inferred_of(operator):
            without = replace(operator, inferred="") if name == operator.inferred else _outside(operator, name)
            pairs = ((convention, rows[convention.name]) for convention in conventions)
            changed = tuple(one.name for one, named in pairs if _counted(operator, one, named) != _counted(without, one, named))
            if changed:
                yield Effect(operator, name, changed)


def _outside(operator: Operator, region: str) -> Operator:
    """``operator`` without the inferred ``region``."""
    return replace(operator, shown=tuple(name for name in operator.shown if name != region))


def _named_rows(operators: Iterable[Operator], convention: Convention) -> frozenset[str]:
    """Roles whose number of rows the convention uses to count work of other roles."""
    if not any(rule.rows for _, rule in convention.roles):
        return frozenset()
    rules = (convention.rule(role_of(operator), regions_of(operator)) for operator in operators)
    return frozenset(rule.rows for rule in rules if rule.rows is not None)


def _counted(operator: Operator, convention: Convention, rows: frozenset[str]) -> Any:
    """All that a convention's count of ``operator`` takes from its role and regions, to compare counts.

    ``rows`` are the roles whose rows the convention uses for other work.
    """
    role, regions = role_of(operator), regions_of(operator)
    parts = [(role, bool(operator.parameters))]
    if operator.kind in ("linear", "conv"):
        parts.append(("conv_bias" if operator.kind == "conv" else "bias", len(operator.parameters) > 1))
    paired = any(work.extent.pairs is not None for work in operator.contractions)
    parts += [("softmax", False)] if paired else []
    main = convention.counts == "parameters" or convention.attention_width == "model"
    tower = paired and main and not TOWERS.isdisjoint(regions)
    return [_rule(convention, *part, regions) for part in parts], role if role in rows else "", tower


def _rule(convention: Convention, role: str, weighs: bool, regions: tuple[str, ...]) -> Rule:
    """Rule of ``role``, normalised so that rules with equal effect compare equal.

    ``weighs``: whether the operator has a parameter of this role.
    """
    rule, elements = convention.rule(role, regions), ROLES[role].group == "elements" if role in ROLES else True
    named = rule.count in ("yes", "as_matmul") or rule.per_element is not None
    by_weight = weighs and convention.counts == "parameters"
    if rule.count == "no" or (elements and not named and not by_weight):
        return Rule("no")
    return rule
