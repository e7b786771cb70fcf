"""counted: :class:`Derivation`, :class:`Convention` -> :class:`Derivation`, of what the convention counts of the work.

Every number is that of a derivation: a piece of work is left out, multiplied, counted on other rows or other pairs, or stands
as a multiple of its elements or parameters; its backward pass is the derived one, or a multiple of the forward work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from sympy import Add, Expr, Integer, Rational

from symflops.algebra.masks import bound_of, pairs_by
from symflops.algebra.truth import NO, YES, Truth
from symflops.count.per_parameter import main_width, parameter_work
from symflops.model.contraction import Extent
from symflops.model.convention import Backward, Convention, Rule
from symflops.model.derivation import Derivation, Gradient, Work
from symflops.model.needs_size import or_needs_size
from symflops.model.nodes import Parameter
from symflops.model.roles import regions_of, role_of

TABLES = ("embedding", "position")


@or_needs_size
def counted(derivation: Derivation, convention: Convention) -> Derivation:
    """``derivation`` with the work that ``convention`` counts, as it counts it."""
    if convention.is_plain:
        return derivation
    return replace(derivation, work=tuple(_Counting(derivation, convention).works()))


class _Counting:
    def __init__(self, derivation: Derivation, convention: Convention) -> None:
        self.derivation = derivation
        self.graph = derivation.graph
        self.convention = convention
        self.trains = {(entry.parameter.path, entry.parameter.shape): entry.trains for entry in derivation.parameters}
        passes = derivation.regime.passes
        self.share = Fraction(passes.trained, passes.runs)
        self.users: dict[object, int] = {}

    def works(self) -> Iterator[Work]:
        for work in self.derivation.work:
            rule = self.convention.rule(work.contraction.role or role_of(work.operator), regions_of(work.operator))
            if self.counts(work, rule):
                yield self.run(self.sized(work, rule), rule, self.kind(work), self.fresh(work).expr)
        if self.convention.counts == "parameters":
            for work, role, regions, trains in parameter_work(self.derivation, self.convention.experts):
                rule = self.convention.rule(role, regions)
                if rule.count != "no":
                    yield self.run(self.in_unit(work), rule, "trained" if trains else "frozen", Integer(1))

    def counts(self, work: Work, rule: Rule) -> bool:
        """Whether a piece of work counts: contractions do, elements where the convention says so."""
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
            return named
        weighed = any(side.is_weight for side in work.contraction.operands)
        return not (weighed and self.convention.counts == "parameters")

    # what a piece of work is

    def sized(self, work: Work, rule: Rule) -> Work:
        """One piece of work with the size and the extent that it counts."""
        contraction = work.contraction
        extent = self.extent(contraction.extent)
        rows = self.rows_of(rule.rows, contraction.items) if rule.rows is not None else None
        extent = extent if rows is None else Extent(rows, rows)
        side = dict(self.convention.lengths).get("attention" if contraction.extent.pairs else "linear", "")
        changed = replace(contraction, size=self.size(work, rule), extent=extent, side=side)
        return self.in_unit(replace(work, contraction=changed))

    def in_unit(self, work: Work) -> Work:
        """A multiply-add is two FLOPs, or one MAC."""
        if self.convention.unit == "flops":
            return work
        return replace(work, contraction=replace(work.contraction, size=work.contraction.size / 2))

    def size(self, work: Work, rule: Rule) -> Expr:
        """Multiply-adds of one row; so many FLOPs per element are half as many multiply-adds."""
        size = work.contraction.size
        if rule.per_element is not None:
            return size * fraction(rule.per_element / 2)
        if work.contraction.role in TABLES and work.operator.parameters:
            return work.operator.parameters[0].count
        if work.contraction.kind == "attention" and self.convention.attention_width == "queries":
            return next(other.size for other in work.operator.contractions if other.name.startswith("scores"))
        if work.contraction.kind == "attention" and self.convention.attention_width == "model":
            return main_width(self.graph) or size
        if rule.additions == "exact":
            return size - Add(*(self.graph.values[result].width or 0 for result in work.operator.results)) / 2
        return size

    def extent(self, extent: Extent) -> Extent:
        """How often it runs: over all pairs, those that a mask leaves, or what the convention says of that mask."""
        value = extent.useful if self.convention.pairs == "useful" else extent.executed
        pairs, words = extent.pairs, dict(self.convention.masks)
        if pairs is not None and words and not self.derivation.regime.decode:
            found = (
                case.expr * pairs_by(words.get(bound_of(mask), self.convention.pairs), mask, pairs.queries, pairs.keys)
                for mask, case in pairs.masks
            )
            value = pairs.fold * Add(*found)
        return replace(extent, executed=value, useful=value)

    def rows_of(self, role: str, items: str) -> Expr | None:
        """The rows of the first work of a role over the same items."""
        for work in self.derivation.work:
            if role_of(work.operator) == role and work.contraction.items == items:
                return work.contraction.extent.executed
        return None

    def weights(self, work: Work) -> list[Parameter]:
        return [work.operator.parameters[place] for side in work.contraction.operands for place in side.parameters]

    def fresh(self, work: Work) -> Truth:
        """Where tied parameters count once: whether no other operator used this one before."""
        weights = self.weights(work)
        if self.convention.tied == "each" or not weights:
            return YES
        fresh = NO
        for weight in weights:
            known = self.users.setdefault((weight.path, weight.shape), work.operator.id)
            if known == work.operator.id or weight.path.indices:
                fresh = fresh.plus(weight.exists & ~fresh)
        return fresh

    # how often it runs

    def kind(self, work: Work) -> str:
        """The class of a piece of work, for an assumed backward pass."""
        weights = self.weights(work)
        if not weights:
            return "other"
        return "trained" if any(self.trains.get((weight.path, weight.shape)) for weight in weights) else "frozen"

    def run(self, work: Work, rule: Rule, kind: str, when: Expr) -> Work:
        """How often it runs in both passes: as derived, or as often as the convention assumes."""
        times = when if rule.forward is None else when * fraction(rule.forward)
        changed = replace(work, forward=work.forward * times, recomputed=work.recomputed * times)
        assumed = rule.backward or self.convention.backward
        if assumed is not None:
            multiple = self.multiple(assumed, kind, work)
            count = work.forward * when * fraction(multiple * self.share)
            gradient = Gradient("all operands", "assumed", count, f"{multiple} x forward in this convention")
            return replace(changed, gradients=(gradient,))
        gradients = [replace(gradient, count=gradient.count * times) for gradient in (*work.gradients, *self.again(work))]
        return replace(changed, gradients=tuple(gradients))

    def multiple(self, assumed: Backward, kind: str, work: Work) -> Fraction:
        """The assumed backward pass of a piece of work, in forward passes."""
        if not any(self.trains.values()):
            return Fraction(0)
        idle = work.contraction.kind != "parameters" and all(gradient.count == 0 for gradient in work.gradients)
        if idle and assumed.idle is not None:
            return assumed.idle
        return {"trained": assumed.trained, "frozen": assumed.frozen}.get(kind, assumed.other)

    def again(self, work: Work) -> list[Gradient]:
        """The scores that a kernel computes a second time for the backward pass, where there is one."""
        if self.convention.attention_backward == 4 or work.contraction.name != "scores = qk":
            return []
        pair = [one for one in self.derivation.work if one.operator is work.operator and one.contraction.kind == "attention"]
        counts = [gradient.count for one in reversed(pair) for gradient in one.gradients if gradient.count != 0]
        return [Gradient("scores", "again", counts[0], "computed again for the backward pass")] if counts else []


def fraction(value: Fraction) -> Expr:
    """A fraction as an expression."""
    return Rational(value.numerator, value.denominator)
