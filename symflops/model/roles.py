"""The vocabulary of roles: the purpose of a piece of work, by which conventions count it or leave it out.

An operator has one role and belongs to any number of regions. ``role:`` in a spec sets either; otherwise the role follows from
the operator's kind, unless :mod:`symflops.build.roles` infers more.
"""

from __future__ import annotations

from typing import NamedTuple

from symflops.model.nodes import Operator


class Role(NamedTuple):
    """One role. ``group`` is ``work`` (contractions), ``elements`` (work element by element) or ``region``."""

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
    """The role that follows from the kind of an operator alone."""
    role = KINDS.get(operator.kind, operator.kind)
    return "plain_norm" if role.endswith("norm") and not operator.parameters else role


def role_of(operator: Operator) -> str:
    """The role of an operator: that of its spec, else the inferred one, else that of its kind."""
    return operator.role or operator.inferred or role_of_kind(operator)


def inferred_of(operator: Operator) -> tuple[str, ...]:
    """The role and the regions of an operator that its spec does not give."""
    role = (operator.inferred,) if operator.inferred else ()
    return (*role, *(region for region in operator.shown if region not in operator.regions))


def regions_of(operator: Operator) -> tuple[str, ...]:
    """The regions of an operator, inferred and given ones."""
    return tuple(dict.fromkeys((*operator.shown, *operator.regions)))
