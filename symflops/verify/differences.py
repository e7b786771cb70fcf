"""Explains why two conventions differ: compares their work piece by piece, and sums pieces with the same cause.

A cause is the fewest rules of the second convention that explain the whole difference of some pieces.
Opposite changes within a piece cancel before causes are searched, so the shares of the causes add up to the total difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

from symflops.api import Model, convention_of
from symflops.emit.python.printer import PythonPrinter
from symflops.formula.functions import Whole
from symflops.formula.polynomial import Polynomial
from symflops.ir.convention import ROLES, Backward, Convention, Rule
from symflops.ir.index_sets import ONCE, SAMPLES
from symflops.ir.regime import Regime
from symflops.verify.counted_work import Key, Numbers, Piece, Pieces, WorkKind

FIELDS: dict[str, tuple[str, ...]] = {
    "roles": ("roles",), "counts": ("counts",), "experts": ("experts",), "pairs": ("pairs", "masks"), "unseen": ("unseen",),
    "length": ("length", "lengths"), "attention_width": ("attention_width",), "unit": ("unit",), "tied": ("tied",),
    "backward": ("backward",), "attention_backward": ("attention_backward",),
    "counter_errors": ("counter_errors",),
}  # fmt: skip
"""Rules of a convention, each with the fields that form it; the most specific rule first."""
PAIRS = {
    "useful": "on the pairs that a mask leaves", "all": "on all pairs", "half": "on half of all pairs",
    "band": "on as many pairs a query as the window is wide", "half_band": "on half of the window's width for each query",
    "half_within": "on half of all pairs where the window is no bound, and on those that it leaves where it is",
    "area": "on the area of the mask", "useful_beyond": "on the pairs that a window leaves of a text that goes beyond it",
    "band_beyond": "on as many pairs a query as the window is wide, in short texts as well",
}  # fmt: skip
PLAIN: dict[str, dict[Any, str]] = {
    "counts": {"work": "by the work of weights", "parameters": "as parameters, each once a token"},
    "experts": {
        "routed": "for the experts that a token is routed to", "executed": "for the experts that the class runs",
        "all": "for all experts",
    },
    "unseen": {True: "with work that profilers do not see", False: "without work that profilers do not see"},
    "attention_width": {
        "own": "as wide as its heads", "queries": "as wide as queries in both products", "model": "as wide as the model",
    },
    "unit": {
        "flops": "in FLOPs, two a multiply-add", "macs": "in MACs, one a multiply-add",
        "macs_as_flops": "in FLOPs, one a multiply-add",
    },
    "tied": {"each": "with a tied weight each time", "once": "with a tied weight once"},
    "counter_errors": {
        "corrected": "with one weight gradient for all groups",
        "kept": "with a weight gradient for each group, an error of PyTorch's counter",
    },
    "attention_backward": {4: "with four products in the backward pass", 5: "with the scores again in the backward pass"},
}  # fmt: skip
TOLD_ALONE = ("roles", "counts")
"""Rules that describe how a piece counts if the other convention leaves it out."""
NOUNS = {
    "linear": "linears", "conv": "convolutions", "product": "products of two values", "scan": "diagonal recurrences",
    "delta": "delta rules", "bilinear": "bilinear forms", "attention": "attention", "norm": "normalisations with weights",
    "plain_norm": "normalisations without weights", "rms_norm": "root mean square normalisations",
    "batch_norm": "batch normalisations", "latent_norm": "normalisations of latents",
    "head_norm": "normalisations of queries and keys", "activation": "activations and products of two branches",
    "mtp_norm": "normalisations of layers that predict further ahead", "bias": "biases of linears",
    "conv_bias": "biases of convolutions", "gate": "gates", "table": "parameters that are values", "vision": "image towers",
    "audio": "audio towers", "merger": "the merger of patches", "patch_embed": "the embedding of patches",
    "unpatch": "the projection to patches", "text_in": "the projection of texts", "pooler": "the pooler", "sum": "sums",
    "mtp_join": "the joins of layers that predict further ahead", "block_norm": "normalisations around parts of blocks",
    "recurrent": "recurrent layers", "shared_gate": "gates of shared experts",
}  # fmt: skip
MOST_NOUNS = 3


@dataclass(frozen=True, slots=True)
class Cause:
    """Why two conventions count some work differently.

    ``after`` says how the second convention counts the work, ``before`` how the first one does, each None if it leaves the
    work out, and empty if it counts the work unchanged. ``role`` is the role to which the cause is limited, or empty.
    """

    after: str | None
    before: str | None
    role: str = ""

    def words(self, changed: Mapping[Piece, Any], first: str, second: str) -> str:
        """Describe the cause in words.

        ``changed`` maps the work concerned, as (module path, role), to the change of its FLOPs. ``first`` and ``second`` name
        the conventions.
        """
        roles = dict.fromkeys(role for _, role in sorted(changed, key=lambda piece: -abs(changed[piece])))
        what = noun(self.role) if self.role else listed([noun(role) for role in roles])
        if self.after is None:
            return f"{what}, which {second} leaves out"
        if self.before is None:
            return f"{' '.join((what, self.after)).rstrip()}, which {first} leaves out"
        return f"{what} {self.after}, not {self.before}"


def noun(role: str) -> str:
    """Describe a role, or a role in a region (``region.role``), in words, as the subject of a sentence."""
    region, _, own = role.rpartition(".")
    name = NOUNS.get(own) or ROLES[own].doc.partition(",")[0]
    return f"{name} in {NOUNS.get(region) or ROLES[region].doc}" if region else name


def listed(words: Sequence[str]) -> str:
    """Join words with commas and "and"; of more than ``MOST_NOUNS`` the last ones become "others"."""
    if len(words) > MOST_NOUNS:
        words = [*words[: MOST_NOUNS - 1], "others"]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


class Causes:
    """Finds the fewest rules of a convention that explain how its figures differ from those of another."""

    def __init__(self, pieces: Pieces, one: Convention, two: Convention) -> None:
        self.pieces, self.one, self.two = pieces, one, two
        self.rules = [rule for rule, names in FIELDS.items() if any(getattr(one, name) != getattr(two, name) for name in names)]

    def of(self, groups: Mapping[Piece, Sequence[Piece]]) -> dict[Piece, Cause]:
        """Find the cause of each group of work whose FLOPs differ: first member of the group -> cause.

        ``groups`` maps the first member of each group to all members, given as (module path, role).
        """
        found: dict[Piece, Cause] = {}
        sizes = range(1, len(self.rules) + 1)
        for rules in chain.from_iterable(combinations(self.rules, size) for size in sizes):
            names = [name for rule in rules for name in FIELDS[rule]]
            mixed = replace(self.one, **{name: getattr(self.two, name) for name in names})
            here = self.pieces.numbers(mixed)
            for main, group in groups.items():
                if main not in found and same(here, self.pieces.numbers(self.two), group):
                    found[main] = self.cause(main, rules)
            if len(found) == len(groups):
                break
        return found

    def cause(self, piece: Piece, rules: Sequence[str]) -> Cause:
        """Describe how the rules called ``rules`` change the count of some work, given as (module path, role)."""
        about = self.pieces.about[piece]
        role = own_rule(about, self.one, self.two) if "roles" in rules else ""
        counted = [piece in self.pieces.numbers(convention) for convention in (self.one, self.two)]
        told = [rule for rule in rules if all(counted) or rule in TOLD_ALONE]
        words = [
            " and ".join(filter(None, (self.words(rule, convention, about) for rule in told)))
            for convention in (self.one, self.two)
        ]
        if all(counted):
            return Cause(words[1] or "as derived", words[0] or "as derived", role)
        return Cause(words[1] if counted[1] else None, words[0] if counted[0] else None, role or about.role)

    def words(self, rule: str, convention: Convention, about: WorkKind) -> str:
        """Describe in words how the rule named ``rule`` of a convention counts work of the kind ``about``."""
        if rule == "roles":
            return rule_in_words(convention.rule(about.role, about.regions))
        if rule == "backward":
            return backward_in_words(convention.backward)
        if rule == "pairs":
            return pairs_in_words(convention, about.masks)
        if rule == "length":
            side = dict(convention.lengths).get("attention" if about.masks else "linear", convention.length)
            return f"on {side} lengths"
        return PLAIN[rule][getattr(convention, rule)]


def same(one: Numbers, two: Numbers, pieces: Iterable[Piece]) -> bool:
    """Whether two conventions give the same FLOPs per moment, summed over ``pieces``."""
    found: Counter[Key] = Counter()
    for piece in pieces:
        found.update(one.get(piece, {}))
        found.subtract(two.get(piece, {}))
    return not any(found.values())


def own_rule(about: WorkKind, one: Convention, two: Convention) -> str:
    """Name the most specific of role in a region, role, and region whose rules two conventions differ in.

    ``about`` describes the work. The result is its role if none differs.
    """
    lines = [dict(convention.roles) for convention in (one, two)]
    names = [*(f"{region}.{about.role}" for region in about.regions), about.role, *about.regions]
    return next((name for name in names if lines[0].get(name) != lines[1].get(name)), about.role)


def rule_in_words(rule: Rule) -> str:
    """Describe a role's rule in words; empty for a rule that leaves the work unchanged, or out."""
    if rule.count == "no":
        return ""
    words = ["as a matmul"] if rule.count == "as_matmul" else []
    values = {name: getattr(rule, name) for name in TOLD}
    return " and ".join([*words, *(TOLD[name](value) for name, value in values.items() if value is not None)])


TOLD: dict[str, Callable[[Any], str]] = {
    "per_element": lambda number: f"with {number} {'FLOP' if number == 1 else 'FLOPs'} an element",
    "rows": lambda role: f"on the rows of {noun(role)}",
    "beyond": lambda role: f"in texts beyond the bound of {noun(role)}",
    "pairs": lambda word: PAIRS[word],
    "weights": lambda word: PLAIN["counts"][word],
    "forward": lambda number: f"{number} times",
    "additions": lambda _: "with one addition less than products",
    "backward": lambda backward: backward_in_words(backward),
}
"""Formatter of each field of a role's rule, in the order of a sentence."""


def pairs_in_words(convention: Convention, masks: Iterable[str]) -> str:
    """Describe in words which query-key pairs a convention counts, for each of ``masks`` if they differ."""
    words = {mask: PAIRS[dict(convention.masks).get(mask, convention.pairs)] for mask in masks}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{text} with a {mask} mask" for mask, text in words.items()) or PAIRS[convention.pairs]


def backward_in_words(backward: Backward | None) -> str:
    """Describe in words how a convention counts backward passes; None means: as derived."""
    if backward is None:
        return "as derived"
    if len({backward.trained, backward.frozen, backward.other}) == 1:
        return f"with a backward pass of {backward.trained} x forward"
    multiples = f"{backward.trained} x forward for trained weights, {backward.frozen} x for frozen ones"
    return f"with a backward pass of {multiples} and {backward.other} x else"


@dataclass(frozen=True, slots=True)
class Step:
    """One cause of a difference between two conventions, with its amount (second minus first).

    Attributes:
        words: The cause in words.
        terms: The amount as pairs (moment, coefficient), both as text.
        flops: The amount in FLOPs on the batch.
        share: The amount as a share of the whole difference; None if the totals of both conventions are equal.
    """

    words: str
    terms: tuple[tuple[str, str], ...]
    flops: Any
    share: Fraction | None = None

    def sentence(self, first: str, second: str) -> str:
        """Say in a sentence how much more or less the second convention counts, and why; both given by name."""
        amount = " and ".join(f"{coefficient} {moment}" for moment, coefficient in self.terms)
        more = "more" if self.flops >= 0 else "less"
        return f"{second} counts {amount} {more} than {first}: {self.words}"


@dataclass(frozen=True, slots=True)
class Difference:
    """How many FLOPs more the second of two conventions counts on a batch, with the causes, largest first."""

    first: str
    second: str
    flops: Any
    steps: tuple[Step, ...]


class Comparison:
    """Compares conventions on one model, config, batch and regime."""

    def __init__(self, model: Model, config: Mapping[str, Any], batch: Mapping[str, Any], regime: Regime) -> None:
        self.model = model
        self.pieces = Pieces(model, config, batch, regime)

    def difference(self, first: str, second: str) -> Difference:
        """Explain how many FLOPs more the convention called ``second`` counts than that called ``first``."""
        one, two = (convention_of(name).of(self.model.spec.called) for name in (first, second))
        total = self.total(two) - self.total(one)
        steps = []
        for cause, changed in self.causes(one, two).items():
            flops = sum(changed.values())
            terms = self.terms(one, two, tuple(changed), flops < 0)
            steps.append(Step(cause.words(changed, first, second), terms, flops, Fraction(flops) / total if total else None))
        return Difference(first, second, total, tuple(sorted(steps, key=lambda step: -abs(step.flops))))

    def main_cause(self, first: str, second: str) -> str:
        """Describe the largest cause of the difference between two conventions; empty if they agree."""
        one, two = (convention_of(name).of(self.model.spec.called) for name in (first, second))
        causes = self.causes(one, two)
        if not causes:
            return ""
        cause, changed = max(causes.items(), key=lambda item: abs(sum(item[1].values())))
        return cause.words(changed, first, second)

    def causes(self, one: Convention, two: Convention) -> dict[Cause, dict[Piece, Any]]:
        """Map each cause to {(module path, role): FLOPs} that the second convention counts more."""
        before, after = self.pieces.flops(one), self.pieces.flops(two)
        changed = {piece: after.get(piece, 0) - before.get(piece, 0) for piece in {**before, **after}}
        groups = self.groups({piece: flops for piece, flops in changed.items() if flops})
        found: dict[Cause, dict[Piece, Any]] = {}
        for main, cause in Causes(self.pieces, one, two).of(groups).items():
            found.setdefault(cause, {}).update((piece, changed[piece]) for piece in groups[main])
        return found

    def total(self, convention: Convention) -> Any:
        """The FLOPs that a convention counts on the batch, forward and backward."""
        return sum(self.pieces.flops(convention).values())

    def groups(self, changed: Mapping[Piece, Any]) -> dict[Piece, tuple[Piece, ...]]:
        """Group work that moves from one role or module to another: largest member -> all members.

        ``changed`` maps (module path, role) to the difference in FLOPs. Members of a group read the same weight and differ with
        opposite signs. A group whose differences sum to 0 is left out.
        """
        groups: dict[Piece, tuple[Piece, ...]] = {}
        for piece in sorted(changed, key=lambda piece: -abs(changed[piece])):
            weights = self.pieces.weights(piece)
            other = next(
                (main for main in groups if changed[main] * changed[piece] < 0 and weights & self.pieces.weights(main)), None
            )
            groups[other or piece] = (*groups.get(other or piece, ()), piece)
        return {main: group for main, group in groups.items() if sum(changed[piece] for piece in group)}

    def terms(self, one: Convention, two: Convention, pieces: Sequence[Piece], negative: bool) -> tuple[tuple[str, str], ...]:
        """Write the difference of ``pieces`` as pairs (moment, coefficient) of text; ``negative`` flips signs."""
        before, after = self.pieces.cost(one, pieces), self.pieces.cost(two, pieces)
        formulas, found = self.pieces.formulas(one, two), []
        for key in dict.fromkeys([*after, *before]):
            change = after.get(key, Polynomial({})) - before.get(key, Polynomial({}))
            if change := self.pieces.evaluated(change).scale(Fraction(-1 if negative else 1)):
                found.append((self.moment_in_words(key), PythonPrinter().text(formulas.factored(change))))
        return tuple(sorted(found, key=lambda term: term[1].startswith("-")))

    def moment_in_words(self, key: Key) -> str:
        """Describe a moment in words: a token, a pair of tokens, an item, or a function of lengths."""
        side, items, monomial = key
        product = Polynomial({monomial: Fraction(1)})
        if not monomial:
            return {ONCE: "a step", SAMPLES: "a sample"}.get(items, f"an item of {items}")
        for name, stream in self.pieces.graph.streams:
            rows = Polynomial.of(stream.rows)
            for words, wanted in (("token", rows), ("pair of tokens", rows * rows)):
                if product == wanted:
                    return " ".join(filter(None, ("a", side, words, "of", name)))
        lengths = product.expr if product.expr.has(Whole) else PythonPrinter().text(self.pieces.sizes.formulas.plain(product))
        return f"times {lengths}" + (f" of {side} lengths" if side else "")
