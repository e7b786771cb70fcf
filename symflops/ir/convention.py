"""Conventions: rules that select the derived work that counts; and the roles and regions of work in these rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import NamedTuple

from symflops.ir.nodes import Operator
from symflops.ir.reproduced import Reproduced


class Role(NamedTuple):
    """A role of work; ``group`` is ``work`` (contractions), ``elements`` (elementwise work) or ``region``."""

    group: str
    doc: str


ROLES = {
    "linear": Role("work", "a linear that has no role of its own"),
    "conv": Role("work", "a convolution that has no role of its own"),
    "attention": Role("work", "softmax attention, scores and mix"),
    "product": Role("work", "a product of two values"),
    "scan": Role("work", "a diagonal recurrence over tokens"),
    "delta": Role("work", "a recurrence over tokens that forgets what it overwrites"),
    "bilinear": Role("work", "a form in two values"),
    "lm_head": Role("work", "the head, the projection to the vocabulary"),
    "router": Role("work", "the router, the scores of experts"),
    "shared_gate": Role("work", "the gate of a shared expert"),
    "modulation": Role("work", "shifts, scales and gates from a time embedding, in every block"),
    "out_modulation": Role("work", "shift and scale before the last projection"),
    "timestep": Role("work", "the embedding of a timestep and of pooled conditions"),
    "patch_embed": Role("work", "from patches or latents into the model"),
    "unpatch": Role("work", "from the model to patches or latents"),
    "text_in": Role("work", "from a text encoder into the model"),
    "merger": Role("work", "from a tower of patches into the model that reads them"),
    "mtp_join": Role("work", "from an embedding and a prediction into a layer that predicts further ahead"),
    "index_gradient": Role("work", "the gradient of the scores of what chooses the keys of sparse attention"),
    "compressed_index": Role("work", "the scores of what picks keys that stand for several tokens, on all pairs of tokens"),
    "pooler": Role("work", "from one token to a representation of all"),
    "embedding": Role("elements", "the input embedding, a look-up in a table of tokens"),
    "position": Role("elements", "the embedding of positions, a look-up"),
    "norm": Role("elements", "a normalisation with weights, of layers or groups"),
    "plain_norm": Role("elements", "a normalisation without weights"),
    "rms_norm": Role("elements", "a normalisation by the root of the mean square"),
    "batch_norm": Role("elements", "a normalisation over the batch"),
    "latent_norm": Role("elements", "the normalisation of a latent of queries, keys or values"),
    "head_norm": Role("elements", "the normalisation of queries and keys"),
    "block_norm": Role("elements", "the normalisation of what a part of a block reads or makes, where it is told apart"),
    "mtp_norm": Role("elements", "the normalisations that a layer which predicts further ahead has beside those of a layer"),
    "bias": Role("elements", "the bias, what is added to the result of a linear"),
    "softmax": Role("elements", "the softmax over scores, one element a score"),
    "conv_bias": Role("elements", "what is added to the result of a convolution"),
    "activation": Role("elements", "an activation, or a product of two branches"),
    "gate": Role("elements", "a gate on a result, or shift and scale"),
    "cell": Role("elements", "what a recurrent cell makes of its gates"),
    "sum": Role("elements", "sums, residual ones among them"),
    "combine": Role("elements", "the weighted sum of what experts made"),
    "table": Role("elements", "a parameter that is itself a value"),
    "vision": Role("region", "a tower that reads images"),
    "audio": Role("region", "a tower that reads audio"),
    "experts": Role("region", "routed experts"),
    "shared_experts": Role("region", "experts that every token goes through"),
    "dense_mlp": Role("region", "a feed-forward that every token goes through"),
    "mtp": Role("region", "layers that predict tokens further ahead"),
    "recurrent": Role("region", "a recurrent layer"),
    "gru": Role("region", "gated recurrent units"),
    "lstm": Role("region", "long short-term memory"),
    "indexer": Role("region", "what chooses the keys of sparse attention"),
    "compressed": Role("region", "attention to a window beside keys that stand for several tokens"),
    "picked": Role("region", "attention to the keys that an indexer picked"),
    "main": Role("region", "the model itself: no region follows from a path here"),
}

KINDS = {
    "layer_norm": "norm", "group_norm": "norm", "matmul": "product", "triangular_solve": "product",
    "triangular_inverse": "product", "mul": "activation", "act": "activation",
    "with": "gate", "add": "sum", "parameter": "table",
}  # fmt: skip

MAIN = "main"


def role_of_kind(operator: Operator) -> str:
    """The default role for an operator's kind; a norm without parameters is a ``plain_norm``."""
    role = KINDS.get(operator.kind, operator.kind)
    return "plain_norm" if role.endswith("norm") and not operator.parameters else role


def role_of(operator: Operator) -> str:
    """The role of an operator: that of its spec, else the inferred one, else that of its kind."""
    return operator.role or operator.inferred or role_of_kind(operator)


def inferred_of(operator: Operator) -> tuple[str, ...]:
    """The inferred role and regions of an operator, without those that its spec gives."""
    role = (operator.inferred,) if operator.inferred else ()
    return (*role, *(region for region in operator.shown if region not in operator.regions))


def regions_of(operator: Operator) -> tuple[str, ...]:
    """The regions of an operator: inferred ones, then those of its spec, each once."""
    return tuple(dict.fromkeys((*operator.shown, *operator.regions)))


@dataclass(frozen=True, slots=True)
class Backward:
    """An assumed backward pass, in multiples of the forward work.

    ``trained`` is for work with trained weights, ``frozen`` for work with frozen ones, ``other`` for work without weights.
    ``idle`` is for work without a gradient, because nothing trains there or before it; None uses the multiple of its class.
    """

    trained: Fraction
    frozen: Fraction
    other: Fraction
    idle: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """Counting rule for the work of one role; a field of None keeps the value of the convention.

    ``count`` is ``yes``, ``no`` or ``as_matmul``. ``forward`` multiplies the derived work; ``per_element`` replaces it by that
    many FLOPs per element. With ``additions`` ``exact`` a sum of n products has n - 1 additions. ``rows`` names the role whose
    rows replace its own. With ``beyond`` work counts only for sequences longer than the attention bound of that role.
    ``backward`` overrides the convention's backward pass, ``pairs`` its pairs, and ``weights`` whether weights count as
    ``work`` or as ``parameters``.
    """

    count: str | None = None
    forward: Fraction | None = None
    per_element: Fraction | None = None
    rows: str | None = None
    beyond: str | None = None
    backward: Backward | None = None
    additions: str | None = None
    pairs: str | None = None
    weights: str | None = None

    def over(self, other: Rule) -> Rule:
        """This rule, with fields that are None filled from ``other``."""
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        return replace(other, **{name: value for name, value in own.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Exceptional:
    """An exception for some classes: patterns of class names, the reason, and the convention to use."""

    classes: tuple[str, ...]
    because: str
    convention: Convention


@dataclass(frozen=True, slots=True)
class Convention:
    """Rules that decide which derived work counts as FLOPs, and how.

    ``pairs`` applies to all masks: ``useful`` or ``all`` (masked pairs and padding too). ``masks`` overrides it per mask,
    and also allows the other words of :func:`symflops.formula.masks.pairs_by`. ``unseen`` includes work that PyTorch's
    counter misses. ``length`` is ``real`` or ``padded``; ``lengths`` overrides it for one class of work (``linear`` or
    ``attention``). ``counts`` is ``work`` or ``parameters``; the latter counts each parameter as one multiply-add per token
    instead of the work that reads it. ``experts`` counts the experts that a token is ``routed`` to, those that the class
    ``executed`` for it, or, for parameters, ``all``. ``tied`` parameters count for ``each`` use, or ``once``.
    ``counter_errors``, which PyTorch's counter counts too often, are ``corrected`` or ``kept``. Model pages compare a
    convention that is ``compared``; a library's programs store one that is ``stored``. ``because`` is the reason of the
    exception that applies, ``reproduces`` the framework with its version, ``digest`` the digest of the page.
    """

    name: str
    pairs: str = "useful"
    unseen: bool = True
    length: str = "real"
    doc: str = ""
    unit: str = "flops"
    counts: str = "work"
    experts: str = "routed"
    tied: str = "each"
    backward: Backward | None = None
    attention_backward: int = 4
    attention_width: str = "own"
    counter_errors: str = "corrected"
    masks: tuple[tuple[str, str], ...] = ()
    lengths: tuple[tuple[str, str], ...] = ()
    roles: tuple[tuple[str, Rule], ...] = ()
    links: tuple[str, ...] = field(default=(), compare=False)
    exceptions: tuple[Exceptional, ...] = ()
    compared: bool = field(default=False, compare=False)
    stored: bool = field(default=False, compare=False)
    reproduces: Reproduced | None = field(default=None, compare=False)
    digest: str = field(default="", compare=False)
    because: str = field(default="", compare=False)

    def of(self, classes: Sequence[str]) -> Convention:
        """The convention for a spec's ``classes``: that of the first matching exception, else this one."""
        for exception in self.exceptions:
            if any(fnmatchcase(name, pattern) for name in classes for pattern in exception.classes):
                return replace(exception.convention, exceptions=(), because=exception.because, digest=self.digest)
        return replace(self, exceptions=())

    @property
    def is_plain(self) -> bool:
        """Whether it sets nothing but pairs, unseen work and lengths."""
        experts = "routed" if self.pairs == "useful" else "executed"
        return self == Convention(self.name, self.pairs, self.unseen, self.length, self.doc, experts=experts)

    @property
    def plain(self) -> Convention:
        """Rules to apply after selection of the counted work: count all selected work, on its lengths."""
        pairs, unseen = (self.pairs, self.unseen) if self.is_plain else ("useful", True)
        length = "real" if self.lengths else self.length  # each piece of work says its own side
        found = Convention(self.name, pairs, unseen, length, self.doc, self.unit)
        return replace(found, because=self.because, digest=self.digest)

    @property
    def has_half_macs(self) -> bool:
        """Whether its MACs are half of its FLOPs, because it counts multiply-adds alone."""
        every = [item for one in (self, *(exception.convention for exception in self.exceptions)) for item in one.roles]
        counted = [name.rpartition(".")[2] for name, rule in every if rule.per_element is not None]
        more = any(ROLES[name].group == "elements" for name in counted)
        return not more and all(rule.additions != "exact" for _, rule in every)

    @property
    def in_macs(self) -> Convention:
        """The same rules in MACs instead of FLOPs; elementwise work has no MACs."""
        exceptions = tuple(replace(one, convention=replace(one.convention, unit="macs")) for one in self.exceptions)
        return replace(self, unit="macs", exceptions=exceptions)

    @property
    def elements(self) -> frozenset[str]:
        """Roles of elementwise work that this convention counts."""
        counted = (name.rpartition(".")[2] for name, rule in self.roles if rule.count not in (None, "no") or rule.per_element)
        return frozenset(name for name in counted if ROLES[name].group == "elements")

    def rule(self, role: str, regions: tuple[str, ...]) -> Rule:
        """Merged rule for a role within ``regions``: the most specific line wins; ``no`` is never overridden."""
        rules = dict(self.roles)
        found = rules.get(role, Rule())
        for region in regions:
            around = rules.get(region, Rule())
            count = "no" if "no" in (around.count, found.count) else found.count
            found = replace(around.over(found), count=count)
            exact = rules.get(f"{region}.{role}")
            found = exact.over(found) if exact else found
        return found

    def __repr__(self) -> str:
        return (
            f"Convention('{self.name}', in {self.unit}: {self.doc:.80})"
            if self.doc
            else f"Convention('{self.name}', in {self.unit})"
        )
