"""count: :class:`Derivation`, :class:`Convention` -> :class:`Derivation`, reduced to the work that the convention counts.

Every number comes from the derivation. A convention may skip a contraction, multiply it, count it over other rows or attention
pairs, or count its elements or parameters instead. The backward pass is as derived, or a multiple of the forward pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

from sympy import Add, Expr, Integer, Mul, Rational

from symflops.count.per_parameter import TOWERS, main_width, parameter_work, per_token
from symflops.derive.decode import sides
from symflops.formula.functions import AtLeast
from symflops.formula.masks import bound_of, bounds_of, pairs_by
from symflops.formula.truth import NO, YES, Truth
from symflops.ir.contraction import Extent
from symflops.ir.convention import ROLES, Backward, Convention, Rule, inferred_of, regions_of, role_of
from symflops.ir.graph import Derivation, Gradient, Graph, Work
from symflops.ir.nodes import Operator, Parameter

TABLES = ("embedding", "position")


def count(derivation: Derivation, convention: Convention) -> Derivation:
    """Reduce ``derivation`` to the work that ``convention`` counts, with its sizes and execution counts."""
    if convention.is_plain:
        return with_experts(derivation, "executed", "routed")
    derivation = with_experts(derivation, convention.experts, convention.experts)
    return replace(derivation, work=tuple(_Counter(derivation, convention).works()))


def with_experts(derivation: Derivation, executed: str, useful: str) -> Derivation:
    """Choose which experts count in executed and in useful work.

    ``executed`` and ``useful`` are ``routed`` for the experts that each token is routed to; any other text for those that run.
    """

    def counted(work: Work) -> Work:
        extent = work.contraction.extent
        tokens, pairs = extent.tokens, extent.pairs
        if tokens is not None:
            tokens = per_token(tokens, useful)
        if pairs is not None:
            fold, queries, keys = (per_token(side, useful) for side in (pairs.fold, pairs.queries, pairs.keys))
            pairs = replace(pairs, fold=fold, queries=queries, keys=keys)
        found = Extent(per_token(extent.executed, executed), per_token(extent.useful, useful), extent.mask, tokens, pairs)
        return work if found == extent else replace(work, contraction=replace(work.contraction, extent=found))

    return replace(derivation, work=tuple(map(counted, derivation.work)))


class _Counter:
    def __init__(self, derivation: Derivation, convention: Convention) -> None:
        self.derivation = derivation
        self.graph = derivation.graph
        self.convention = convention
        self.trains = {(entry.parameter.path, entry.parameter.shape): entry.trains for entry in derivation.parameters}
        passes = derivation.regime.passes
        self.trained_share = Fraction(passes.trained, passes.runs)
        self.users: dict[object, int] = {}  # path and shape of a tied parameter -> the operator that counts it

    def works(self) -> Iterator[Work]:
        """Yield the work that counts; if only work that PyTorch's counter sees does, work seen in part is split."""
        derived = self.derivation.work
        for work in derived if self.convention.unseen else chain.from_iterable(map(sides, derived)):
            rule = self.convention.rule(work.contraction.role or role_of(work.operator), regions_of(work.operator))
            if self.counts(work, rule):
                yield self.run(self.sized(work, rule), rule, self.kind(work), self.first_use(work).expr)
        if self.convention.counts == "parameters":
            for work, role, regions, trains in parameter_work(self.derivation, self.convention.experts):
                rule = self.convention.rule(role, regions)
                if rule.count != "no" and (rule.weights != "work" or not multiplied(work)):
                    yield self.run(self.in_unit(work), rule, "trained" if trains else "frozen", Integer(1))

    def counts(self, work: Work, rule: Rule) -> bool:
        """Whether ``work`` counts. Element-wise work does only if ``rule`` names it, other work by default.

        If ``rule`` gives the FLOPs per element, element-wise work does not count where the unit is MACs.
        """
        named = rule.count in ("yes", "as_matmul") or rule.per_element is not None
        if rule.count == "no" or not (work.contraction.seen or self.convention.unseen or named):
            return False
        if (
            rule.per_element is not None
            and work.contraction is not work.operator.contractions[0]
            and work.contraction.kind == "scan"
        ):
            return False  # its elements count once
        if work.contraction.kind == "elements":
            return named and (rule.per_element is None or self.convention.unit == "flops")
        has_weight = any(side.is_weight for side in work.contraction.operands)
        return not (has_weight and (rule.weights or self.convention.counts) == "parameters")

    # size and extent

    def sized(self, work: Work, rule: Rule) -> Work:
        """Replace size and extent of ``work`` by those that the convention counts."""
        contraction = work.contraction
        extent = self.extent(contraction.extent, rule)
        rows = self.rows_of(rule.rows, contraction.items) if rule.rows is not None else None
        extent = extent if rows is None else Extent(rows, rows)
        if rule.beyond is not None:
            within = self.beyond(rule.beyond, contraction.items)
            extent = replace(extent, executed=extent.executed * within, useful=extent.useful * within)
        kind = "attention" if contraction.extent.pairs else "linear"
        side = dict(self.convention.lengths).get(kind, self.convention.length) if self.convention.lengths else ""
        changed = replace(contraction, size=self.size(work, rule), extent=extent, side=side)
        return self.in_unit(replace(work, contraction=changed))

    def in_unit(self, work: Work) -> Work:
        """Convert ``work`` to the convention's unit: a multiply-add is two FLOPs, or one MAC."""
        if self.convention.unit == "flops":
            return work
        return replace(work, contraction=replace(work.contraction, size=work.contraction.size / 2))

    def size(self, work: Work, rule: Rule) -> Expr:
        """The size of ``work`` that the convention counts, in multiply-adds per row.

        A FLOP per element is half a multiply-add.
        """
        size = work.contraction.size
        if rule.per_element is not None:
            return size * Rational(rule.per_element / 2)
        if work.contraction.role in TABLES and work.operator.parameters:
            return work.operator.parameters[0].count
        if work.contraction.kind == "attention" and self.convention.attention_width == "queries":
            return next(other.size for other in work.operator.contractions if other.name.startswith("scores"))
        if work.contraction.kind == "attention" and self.convention.attention_width == "model":
            return main_width(self.graph) or size
        if rule.additions == "exact" and self.convention.unit == "flops":
            return size - Add(*(self.graph.values[result].width or 0 for result in work.operator.results)) / 2
        return size

    def extent(self, extent: Extent, rule: Rule) -> Extent:
        """Replace the number of runs of a contraction by the number that the convention counts.

        That is the number of all rows or pairs, or of those that the mask leaves, as ``rule`` or else the convention says.
        For attention, if ``rule`` says it or the convention has own rules by mask, pairs are counted anew for each mask,
        except when decoding.
        """
        default = rule.pairs or self.convention.pairs
        value = extent.useful if default == "useful" else extent.executed
        pairs, words = extent.pairs, {} if rule.pairs else dict(self.convention.masks)
        if pairs is not None and (words or rule.pairs) and not self.derivation.regime.decode:
            found = (
                case.expr * pairs_by(words.get(bound_of(mask), default), mask, pairs.queries, pairs.keys)
                for mask, case in pairs.masks
            )
            value = pairs.fold * Add(*found)
        return replace(extent, executed=value, useful=value)

    def rows_of(self, role: str, items: str) -> Expr | None:
        """Number of rows of the first work of ``role`` over the index set ``items``; None without such work."""
        like = (work for work in self.derivation.work if role_of(work.operator) == role and work.contraction.items == items)
        return next((work.contraction.extent.executed for work in like), None)

    def beyond(self, role: str, items: str) -> Expr:
        """1 if there are more keys than each bound in the masks of the first attention of ``role``, else 0.

        Also 1 if there is no such attention over the index set ``items``, if no mask has a bound, and when decoding.
        """
        if not self.derivation.regime.decode:
            for work in self.derivation.work:
                pairs = work.contraction.extent.pairs
                if pairs is not None and work.contraction.items == items and role in named(work):
                    bounds = (bound for mask, _ in pairs.masks for bound in bounds_of(mask))
                    return Mul(*(AtLeast(pairs.keys, bound + 1) for bound in bounds))
        return Integer(1)

    def weights(self, work: Work) -> list[Parameter]:
        return [work.operator.parameters[place] for side in work.contraction.operands for place in side.parameters]

    def first_use(self, work: Work) -> Truth:
        """Condition under which ``work`` is the first that uses its parameters.

        Always true if the convention counts a tied parameter at each use.
        """
        weights = self.weights(work)
        if self.convention.tied == "each" or not weights:
            return YES
        first = NO
        for weight in weights:
            user = self.users.setdefault((weight.path, weight.shape), work.operator.id)
            if user == work.operator.id or weight.path.indices:
                first = first.plus(weight.exists & ~first)
        return first

    # executions

    def kind(self, work: Work) -> str:
        """Class of ``work`` for an assumed backward pass: ``trained`` or ``frozen`` weights, or ``other``."""
        weights = self.weights(work)
        if not weights:
            return "other"
        return "trained" if any(self.trains.get((weight.path, weight.shape)) for weight in weights) else "frozen"

    def run(self, work: Work, rule: Rule, kind: str, when: Expr) -> Work:
        """Replace the execution counts of ``work``, in both passes, by those that the convention counts.

        ``kind`` is the result of :meth:`kind`; ``when`` is 1 if the work counts at all, else 0.
        """
        times = when if rule.forward is None else when * Rational(rule.forward)
        changed = replace(work, forward=work.forward * times, recomputed=work.recomputed * times)
        assumed = rule.backward or self.convention.backward
        if assumed is not None:
            multiple = self.multiple(assumed, kind, work)
            executions = work.forward * when * Rational(multiple * self.trained_share)
            what = "forward" if rule.forward is None else "the derived forward pass"
            gradient = Gradient("all operands", "assumed", executions, f"{multiple} x {what} in this convention")
            return replace(changed, gradients=(gradient,))
        gradients = (*self.as_counted(work), *self.scores_again(work))
        return replace(changed, gradients=tuple(replace(gradient, count=gradient.count * times) for gradient in gradients))

    def as_counted(self, work: Work) -> tuple[Gradient, ...]:
        """The derived gradients, with the errors of PyTorch's counter unless the convention corrects them."""
        if self.convention.counter_errors == "corrected":
            return work.gradients
        pairs = zip(work.gradients, work.contraction.operands, strict=True)
        return tuple(replace(gradient, count=gradient.count * operand.counted) for gradient, operand in pairs)

    def multiple(self, assumed: Backward, kind: str, work: Work) -> Fraction:
        """The backward pass that the convention assumes for ``work``, as a multiple of its forward pass.

        ``kind`` is the result of :meth:`kind`.
        """
        if not any(self.trains.values()):
            return Fraction(0)
        idle = work.contraction.kind != "parameters" and all(one.count == 0 and not one.is_dead for one in work.gradients)
        if idle and assumed.idle is not None:
            return assumed.idle
        return {"trained": assumed.trained, "frozen": assumed.frozen}.get(kind, assumed.other)

    def scores_again(self, work: Work) -> list[Gradient]:
        """The scores that a fused attention kernel recomputes in its backward pass, as one more gradient.

        Empty if the convention does not count them.
        """
        if self.convention.attention_backward == 4 or work.contraction.name != "scores = qk":
            return []
        pair = [one for one in self.derivation.work if one.operator is work.operator and one.contraction.kind == "attention"]
        counts = [gradient.count for one in reversed(pair) for gradient in one.gradients if gradient.count != 0]
        return [Gradient("scores", "again", counts[0], "computed again for the backward pass")] if counts else []


def multiplied(work: Work) -> bool:
    """Whether the operator of ``work`` multiplies by the parameter that ``work`` counts."""
    (place,) = work.contraction.operands[0].parameters
    return any(place in side.parameters for one in work.operator.contractions for side in one.operands)


def named(work: Work) -> tuple[str, ...]:
    """The names by which a convention addresses ``work``: its role, then its regions."""
    return work.contraction.role or role_of(work.operator), *regions_of(work.operator)


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
            shown = tuple(region for region in operator.shown if region != name)
            without = replace(operator, inferred="") if name == operator.inferred else replace(operator, shown=shown)
            pairs = ((convention, rows[convention.name]) for convention in conventions)
            changed = tuple(one.name for one, named in pairs if _counted(operator, one, named) != _counted(without, one, named))
            if changed:
                yield Effect(operator, name, changed)


def _named_rows(operators: Iterable[Operator], convention: Convention) -> frozenset[str]:
    """Roles whose number of rows the convention uses to count work of other roles."""
    reads = any(rule.rows for _, rule in convention.roles)
    rules = (convention.rule(role_of(operator), regions_of(operator)) for operator in operators if reads)
    return frozenset(rule.rows for rule in rules if rule.rows is not None)


def _counted(operator: Operator, convention: Convention, rows: frozenset[str]) -> Any:
    """All that a convention's count of ``operator`` takes from its role and regions, to compare counts.

    It is (rules of its roles, its role if the convention uses its rows elsewhere, whether it is attention in a tower).
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
    rule, elements = convention.rule(role, regions), role not in ROLES or ROLES[role].group == "elements"
    named = rule.count in ("yes", "as_matmul") or rule.per_element is not None
    by_weight = weighs and convention.counts == "parameters"
    if rule.count == "no" or (elements and not named and not by_weight):
        return Rule("no")
    return rule
