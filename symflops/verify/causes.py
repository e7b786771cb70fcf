"""Finds why two conventions count work differently: the fewest rules of the second one that explain the whole difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from symflops.ir.convention import ROLES, Backward, Convention, Rule
from symflops.verify.counted_work import Numbers, Piece, Pieces, WorkKind

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

    ``after`` says how the second convention counts the work, ``before`` how the first one does, each empty if it leaves the
    work out. ``role`` is the role to which the cause is limited, or empty.
    """

    after: str
    before: str
    role: str = ""

    def words(self, roles: Sequence[str], first: str, second: str) -> str:
        """Describe the cause in words.

        ``roles`` are the roles of the work concerned, costliest first; ``first`` and ``second`` name the conventions.
        """
        what = noun(self.role) if self.role else listed([noun(role) for role in dict.fromkeys(roles)])
        if not self.after:
            return f"{what}, which {second} leaves out"
        if not self.before:
            return f"{' '.join((what, self.after)).rstrip()}, which {first} leaves out"
        return f"{what} {self.after}, not {self.before}"


def noun(role: str) -> str:
    """Describe a role, or a role in a region (``region.role``), in words, as the subject of a sentence."""
    region, _, own = role.rpartition(".")
    name = NOUNS.get(own) or ROLES[own].doc.partition(",")[0]
    return f"{name} in {NOUNS.get(region) or ROLES[region].doc}" if region else name


def listed(words: Sequence[str]) -> str:
    """Join words with commas and "and"; a long list ends with "others"."""
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
        for rules in self.choices():
            here = self.pieces.numbers(self.between(rules))
            for main, group in groups.items():
                if main not in found and same(here, self.pieces.numbers(self.two), group):
                    found[main] = self.cause(main, rules)
            if len(found) == len(groups):
                break
        return found

    def choices(self) -> Iterator[tuple[str, ...]]:
        """Yield all subsets of the rules in which the conventions differ, smallest first, as names of rules."""
        for size in range(1, len(self.rules) + 1):
            yield from combinations(self.rules, size)

    def between(self, rules: Iterable[str]) -> Convention:
        """Return a copy of the first convention in which the named ``rules`` are those of the second one."""
        names = [name for rule in rules for name in FIELDS[rule]]
        return replace(self.one, **{name: getattr(self.two, name) for name in names})

    def cause(self, piece: Piece, rules: Sequence[str]) -> Cause:
        """Describe how ``rules`` change the count of some work, given as (module path, role)."""
        about = self.pieces.about[piece]
        role = own_rule(about, self.one, self.two) if "roles" in rules else ""
        counted = [piece in self.pieces.numbers(convention) for convention in (self.one, self.two)]
        told = [rule for rule in rules if all(counted) or rule in TOLD_ALONE]
        words = [
            " and ".join(filter(None, (self.words(rule, convention, about) for rule in told)))
            for convention in (self.one, self.two)
        ]
        before, after = (text or "as derived" if all(counted) else text for text in words)
        if all(counted):
            return Cause(after, before, role)
        return Cause(after if counted[1] else "", before if counted[0] else "", role or about.role)

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
    found: dict[Any, Any] = {}
    for numbers, sign in ((one, 1), (two, -1)):
        for piece in pieces:
            for key, value in numbers.get(piece, {}).items():
                found[key] = found.get(key, 0) + sign * value
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
