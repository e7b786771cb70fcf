"""Explains why two conventions differ: changes one rule at a time, and gives each step's difference as formula and words.

The rules that differ are changed in a fixed order, from the first convention to the second, so that the differences of the
steps add up to the total difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from sympy import Add

from symflops.algebra.masks import bound_of
from symflops.algebra.polynomial import Monomial, Polynomial
from symflops.api import Model, convention_of
from symflops.emit.python.printer import PythonPrinter
from symflops.lower.formulas import Formulas
from symflops.lower.lower import count_atoms
from symflops.model.convention import Backward, Convention, Rule
from symflops.model.derivation import Derivation
from symflops.model.regime import Regime
from symflops.model.roles import ROLES

NOTHING = Rule()
WORDS = {
    "useful": "the pairs that a mask leaves", "all": "all pairs", "half": "half of all pairs",
    "band": "as many pairs a query as the window is wide", "half_band": "half of the window's width for each query",
    "half_within": "half of all pairs where the window is no bound, and those that it leaves where it is",
}  # fmt: skip
PLAIN: dict[str, dict[Any, str]] = {
    "unit": {"flops": "two FLOPs for a multiply-add", "macs": "one for a multiply-add"},
    "counts": {"work": "the work of weights", "parameters": "each parameter once a token"},
    "experts": {
        "routed": "the experts that a token is routed to", "executed": "the experts that the class runs", "all": "all experts",
    },
    "tied": {"each": "a tied weight each time", "once": "a tied weight once"},
    "unseen": {True: "work that profilers do not see", False: "no work that profilers do not see"},
    "attention_width": {
        "own": "attention as wide as its heads", "queries": "both products of attention as wide as queries",
        "model": "attention as wide as the model",
    },
    "attention_backward": {4: "four products in the backward pass of attention", 5: "scores again in the backward pass"},
    "length": {"real": "real lengths", "padded": "padded lengths"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One rule that differs: its words, the difference as pairs of moment and coefficient, and its FLOPs on the batch."""

    words: str
    terms: tuple[tuple[str, str], ...]
    flops: Any

    def sentence(self, first: str, second: str) -> str:
        """The step as a sentence: how much more or less the second convention counts, and why."""
        amount = " and ".join(f"{coefficient} {moment}" for moment, coefficient in self.terms)
        more = "more" if self.flops >= 0 else "less"
        return f"{second} counts {amount} {more} than {first}: {self.words}"


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two conventions: the steps that change the count, and their sum."""

    first: str
    second: str
    flops: Any
    steps: tuple[Step, ...]


class Comparison:
    """One model, config and batch under several conventions."""

    def __init__(self, model: Model, config: Mapping[str, Any], batch: Mapping[str, Any], regime: Regime) -> None:
        self.model = model
        self.config = config
        self.batch = batch
        self.regime = regime
        self.totals: dict[Convention, Any] = {}
        self.costs: dict[Convention, dict[Monomial, Polynomial]] = {}

    def difference(self, first: str, second: str) -> Difference:
        """The difference between two conventions, by name."""
        one, two = (convention_of(name).of(self.model.spec.called) for name in (first, second))
        steps, now = [], one
        self.cost(one)
        for words, after in between(one, two, self.masks):
            flops = self.total(after) - self.total(now)
            if terms := self.terms(self.cost(now), self.cost(after), bool(flops < 0)):
                steps.append(Step(words, terms, flops))
            now = after
        return Difference(first, second, self.total(two) - self.total(one), tuple(steps))

    def total(self, convention: Convention) -> Any:
        """Forward and backward on the batch."""
        if convention not in self.totals:
            estimator = self.model.estimator(self.config, self.regime, convention)
            self.totals[convention] = estimator.total(estimator.moments(**self.batch))
        return self.totals[convention]

    def cost(self, convention: Convention) -> dict[Monomial, Polynomial]:
        """Both passes as a polynomial: coefficients over sizes, by monomial of lengths."""
        if convention not in self.costs:
            derivation = self.model.derivation(self.regime, convention, self.config)
            found = (work.contraction.extent.pairs for work in derivation.work)
            self.masks = dict.fromkeys(bound_of(mask) for pairs in found if pairs for mask, _ in pairs.masks if mask.name)
            self.formulas, self.streams = formulas_of(derivation), derivation.graph.streams
            lengths = frozenset(length.symbol for length in derivation.graph.lengths)
            total = Polynomial({})
            for work in derivation.work:
                if not (work.contraction.seen or convention.unseen or not convention.is_plain):
                    continue
                extent = work.contraction.extent
                pairs = extent.useful if convention.pairs == "useful" or not convention.is_plain else extent.executed
                times = Add(work.forward, *(gradient.count for gradient in work.gradients))
                total = total + Polynomial.of(2 * work.contraction.size) * Polynomial.of(pairs) * Polynomial.of(times)
            self.costs[convention] = total.split_whole(lambda atom: bool(atom.free_symbols & lengths))
        return self.costs[convention]

    def terms(
        self, before: Mapping[Monomial, Polynomial], after: Mapping[Monomial, Polynomial], negative: bool
    ) -> tuple[tuple[str, str], ...]:
        """The difference by moments, as text; with ``negative`` the signs are turned, since the words say "less"."""
        found = []
        for moment in dict.fromkeys([*before, *after]):
            change = after.get(moment, Polynomial({})) - before.get(moment, Polynomial({}))
            if change:
                formula = self.formulas.factored(change.scale(Fraction(-1 if negative else 1)))
                found.append((self.moment_in_words(moment), PythonPrinter().text(formula)))
        return tuple(found)

    def moment_in_words(self, moment: Monomial) -> str:
        """A moment in words: a token or a pair of tokens of a stream, a sample, or a function of lengths."""
        if not moment:
            return "a sample"
        for name, stream in self.streams:
            rows = Polynomial.of(stream.rows)
            for words, product in (("a token", rows), ("a pair of tokens", rows * rows)):
                if product == Polynomial({moment: Fraction(1)}):
                    return f"{words} of {name}"
        return f"* {Polynomial({moment: Fraction(1)}).expr}"


def formulas_of(derivation: Derivation) -> Formulas:
    """The writer of coefficients."""
    graph = derivation.graph
    letters = [name for name, _ in graph.sizes] + [length.symbol.name for length in graph.lengths]
    return Formulas({letter: rank for rank, letter in enumerate(letters)}, count_atoms([derivation]))


def between(one: Convention, two: Convention, masks: Iterable[str]) -> Iterator[tuple[str, Convention]]:
    """The conventions between ``one`` and ``two``, changing one rule at a time, each with the change in words."""
    now = one
    if now.backward != two.backward:
        now = replace(now, backward=two.backward)
        yield f"a backward pass {backward_in_words(two.backward)}, not {backward_in_words(one.backward)}", now
    for key, words in PLAIN.items():
        if getattr(now, key) != getattr(two, key):
            now = replace(now, **{key: getattr(two, key)})
            yield f"{words[getattr(two, key)]}, not {words[getattr(one, key)]}", now
    rules, wanted = dict(one.roles), dict(two.roles)
    for role in sorted({*rules, *wanted}):
        if rules.get(role, NOTHING) != wanted.get(role, NOTHING):
            kept = {name: rule for name, rule in dict(now.roles).items() if name != role}
            now = replace(now, roles=tuple(sorted({**kept, **({role: wanted[role]} if role in wanted else {})}.items())))
            yield change_in_words(role, rules.get(role, NOTHING), wanted.get(role, NOTHING)), now
    if (now.pairs, now.masks) != (two.pairs, two.masks):
        now = replace(now, pairs=two.pairs, masks=two.masks)
        yield f"{pairs_in_words(two, masks)}, not {pairs_in_words(one, masks)}", now
    if now.lengths != two.lengths:
        now = replace(now, lengths=two.lengths)
        yield "other lengths for linears and attention", now
    rest = {name.name: getattr(two, name.name) for name in fields(two)}
    if replace(now, name=two.name, doc=two.doc, links=two.links) != Convention(**rest):
        yield "what is left", two


def change_in_words(role: str, before: Rule, after: Rule) -> str:
    """How a role counts in the second convention and in the first."""
    region, _, own = role.rpartition(".")
    doc = ROLES[own].doc.partition(",")[0] + (f" in {ROLES[region].doc}" if region else "")
    return f"{doc} {rule_in_words(after, role)}, before: {rule_in_words(before, role)}"


def rule_in_words(rule: Rule, role: str) -> str:
    """One rule."""
    words = []
    if rule.count == "no":
        return "not at all"
    if rule.count == "as_matmul":
        words.append("as a matmul")
    if rule.per_element is not None:
        words.append(f"with {rule.per_element} {'FLOP' if rule.per_element == 1 else 'FLOPs'} an element")
    if rule.rows is not None:
        words.append(f"on the rows of {rule.rows.replace('_', ' ')}")
    if rule.forward is not None:
        words.append(f"{rule.forward} times")
    if rule.backward is not None:
        words.append(f"with a backward pass {backward_in_words(rule.backward)}")
    elements = ROLES[role.rpartition(".")[2]].group == "elements"
    return " and ".join(words) or ("not at all" if elements and rule.count is None else "counted")


def pairs_in_words(convention: Convention, masks: Iterable[str]) -> str:
    """Which pairs of queries and keys count, for the masks of a model."""
    words = {mask: WORDS[dict(convention.masks).get(mask, convention.pairs)] for mask in masks}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{mask}: {text}" for mask, text in words.items()) or WORDS[convention.pairs]


def backward_in_words(backward: Backward | None) -> str:
    """The cost of a backward pass."""
    if backward is None:
        return "as derived"
    if len({backward.trained, backward.frozen, backward.other}) == 1:
        return f"of {backward.trained} x forward"
    return (
        f"of {backward.trained} x forward for trained weights, {backward.frozen} x for frozen ones and {backward.other} x else"
    )
