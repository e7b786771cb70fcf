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
    """What a role name stands for: its meaning ``doc``, and the ``group`` of roles that it belongs to.

    ``group`` is ``work`` for contractions, ``elements`` for elementwise operators, and ``region`` for parts of a model.
    """

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
    """The role that an operator has by its kind alone; a norm without parameters is a ``plain_norm``."""
    role = KINDS.get(operator.kind, operator.kind)
    return "plain_norm" if role.endswith("norm") and not operator.parameters else role


def role_of(operator: Operator) -> str:
    """The role of an operator: from its spec, else inferred from its path, else from its kind."""
    return operator.role or operator.inferred or role_of_kind(operator)


def inferred_of(operator: Operator) -> tuple[str, ...]:
    """The inferred role (if any) of an operator, then the inferred regions that its spec does not give."""
    role = (operator.inferred,) if operator.inferred else ()
    return (*role, *(region for region in operator.shown if region not in operator.regions))


def regions_of(operator: Operator) -> tuple[str, ...]:
    """The regions of an operator, without duplicates: inferred ones first, then those of its spec."""
    return tuple(dict.fromkeys((*operator.shown, *operator.regions)))


@dataclass(frozen=True, slots=True)
class Backward:
    """An assumed backward pass: FLOPs as multiples of the FLOPs of the same work in the forward pass.

    Attributes:
        trained: Multiple for contractions with a trained weight.
        frozen: Multiple for contractions whose weights are all frozen.
        other: Multiple for contractions without weights, such as attention.
        idle: Multiple for contractions none of whose gradients is needed; None: the multiple of their weights as above.
    """

    trained: Fraction
    frozen: Fraction
    other: Fraction
    idle: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """How a convention counts the work of one role; a field that is None leaves the convention's setting.

    Attributes:
        count: Whether the work counts: ``yes``, ``no``, or ``as_matmul`` for a table that counts like a matrix product.
        forward: Factor on the derived forward work.
        per_element: FLOPs per element, in place of the derived work.
        rows: Name of another role; the work is counted on the rows of that role's first work.
        beyond: Name of an attention role; the work counts only if there are more keys than that attention's mask reaches.
        backward: Assumed backward pass of this work.
        additions: ``exact``: a sum of n products has n - 1 additions, not n.
        pairs: Pairs of attention that count, as in :class:`Convention`.
        weights: Whether weights count as ``work`` or as ``parameters``, like ``Convention.counts``.
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
        """This rule, with each field that is None taken from ``other``."""
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        return replace(other, **{name: value for name, value in own.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Exceptional:
    """An exception of a convention: other rules for some classes.

    Attributes:
        classes: Patterns of class names, without packages.
        because: The reason.
        convention: The rules for these classes.
    """

    classes: tuple[str, ...]
    because: str
    convention: Convention


@dataclass(frozen=True, slots=True)
class Convention:
    """Rules that decide which derived work counts as FLOPs, and how.

    Attributes:
        pairs: Attention pairs that count: ``useful`` (not masked), or ``all`` (also masked and padded ones).
        unseen: Whether work counts that PyTorch's FLOP counter misses.
        length: Item lengths that count: ``real`` or ``padded``.
        unit: What a figure is: ``flops``, ``macs``, or ``macs_as_flops`` (one FLOP per multiply-add).
        counts: ``work``, or ``parameters``: one multiply-add per parameter and token, in place of the work that reads it.
        experts: Experts that count: those a token is ``routed`` to, those ``executed``, or (only for parameters) ``all``.
        tied: Whether a tied parameter counts for ``each`` use or ``once``.
        backward: Assumed backward pass; None: the derived one.
        attention_backward: Products in the backward pass of attention; the fifth computes the scores again.
        attention_width: Width of both products of attention: ``own``, that of the ``queries``, or of the ``model``.
        counter_errors: PyTorch's counter multiplies some gradients by a factor; these factors are ``corrected`` or ``kept``.
        masks: (kind of mask, word of :func:`symflops.formula.masks.pairs_by`) pairs that override ``pairs``.
        lengths: (class of work, ``real`` or ``padded``) pairs that override ``length``; classes as ``linear``, ``attention``.
        roles: (name, rule) pairs; a name is a role, a region, or ``region.role``.
        links: Sources.
        exceptions: Other rules for some classes.
        compared: Whether model pages list this convention in their comparison.
        stored: Whether stored programs of library models contain this convention.
        reproduces: The framework, with its version, whose figures this convention reproduces.
        digest: Digest of the YAML page that defines this convention.
        because: Reason of the exception that this convention was made from; empty if from none.
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
        """The convention for ``classes``: that of the first exception that matches one, else this one.

        The result has no exceptions. ``classes`` are class names without packages.
        """
        for exception in self.exceptions:
            if any(fnmatchcase(name, pattern) for name in classes for pattern in exception.classes):
                return replace(exception.convention, exceptions=(), because=exception.because, digest=self.digest)
        return replace(self, exceptions=())

    @property
    def is_plain(self) -> bool:
        """Whether all fields but ``pairs``, ``unseen`` and ``length`` (and texts) have their defaults."""
        experts = "routed" if self.pairs == "useful" else "executed"
        return self == Convention(self.name, self.pairs, self.unseen, self.length, self.doc, experts=experts)

    @property
    def plain(self) -> Convention:
        """The rules for summing work to which this convention was applied already: count all of it."""
        pairs, unseen = (self.pairs, self.unseen) if self.is_plain else ("useful", True)
        length = "real" if self.lengths else self.length  # each piece of work says its own side
        found = Convention(self.name, pairs, unseen, length, self.doc, self.unit)
        return replace(found, because=self.because, digest=self.digest)

    @property
    def has_half_macs(self) -> bool:
        """Whether MACs are exactly half of FLOPs: only multiply-adds count, each as two FLOPs."""
        every = [item for one in (self, *(exception.convention for exception in self.exceptions)) for item in one.roles]
        counted = [name.rpartition(".")[2] for name, rule in every if rule.per_element is not None]
        more = any(ROLES[name].group == "elements" for name in counted)
        return not more and all(rule.additions != "exact" for _, rule in every)

    @property
    def in_macs(self) -> Convention:
        """This convention with the unit MACs instead of FLOPs, in its exceptions too."""
        exceptions = tuple(replace(one, convention=replace(one.convention, unit="macs")) for one in self.exceptions)
        return replace(self, unit="macs", exceptions=exceptions)

    @property
    def elements(self) -> frozenset[str]:
        """Names of the roles of elementwise work that this convention counts."""
        counted = (name.rpartition(".")[2] for name, rule in self.roles if rule.count not in (None, "no") or rule.per_element)
        return frozenset(name for name in counted if ROLES[name].group == "elements")

    def rule(self, role: str, regions: tuple[str, ...]) -> Rule:
        """The rule for work with this role in these ``regions``, merged from all rules that apply.

        A rule for ``region.role`` overrides one for the region, which overrides one for the role. Later regions override
        earlier ones. If a region or the role has the count ``no``, only a rule for ``region.role`` can change that.
        """
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
