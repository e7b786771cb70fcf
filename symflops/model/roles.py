"""The vocabulary of roles: the purpose of a piece of work, by which conventions count it or leave it out.

An operator has one role and belongs to any number of regions. ``role:`` in a spec sets either; otherwise both follow from the
operator's kind and the path of its module.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase, translate
from functools import lru_cache
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
    "pooler": Role("work", "from one token to a representation of all"),
    "embedding": Role("elements", "the input embedding, a look-up in a table of tokens"),
    "position": Role("elements", "the embedding of positions, a look-up"),
    "norm": Role("elements", "a normalisation with weights, of layers or groups"),
    "plain_norm": Role("elements", "a normalisation without weights"),
    "rms_norm": Role("elements", "a normalisation by the root of the mean square"),
    "batch_norm": Role("elements", "a normalisation over the batch"),
    "latent_norm": Role("elements", "the normalisation of a latent of queries, keys or values"),
    "head_norm": Role("elements", "the normalisation of queries and keys"),
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
    "indexer": Role("region", "what chooses the keys of sparse attention"),
}

KINDS = {
    "layer_norm": "norm", "group_norm": "norm", "matmul": "product", "mul": "activation", "with": "gate", "add": "sum",
    "parameter": "table",
}  # fmt: skip

# operator kind, path, role: the first line that matches
DEFAULTS = (
    ("embedding", "*pos*", "position"), ("embedding", "*wpe", "position"), ("embedding", "*", "embedding"),
    ("*norm", "*[qk]_a_layernorm", "latent_norm"), ("*norm", "*kv_a_layernorm", "latent_norm"),
    ("*norm", "*[qk]_norm", "head_norm"), ("*norm", "*norm_[qk]", "head_norm"), ("*norm", "*norm_added_[qk]", "head_norm"),
    ("linear", "*lm_head", "lm_head"), ("linear", "embed_out", "lm_head"),
    ("linear", "*shared_expert_gate", "shared_gate"), ("linear", "*shared_mlp_gate", "shared_gate"),
    ("linear", "*.gate", "router"), ("linear", "*router*", "router"),
    ("linear", "*norm_out.linear", "out_modulation"),
    ("linear", "*adaLN_modulation*", "modulation"), ("linear", "*_mod.*", "modulation"), ("linear", "*_mod", "modulation"),
    ("linear", "*norm*.linear", "modulation"), ("linear", "*modulation*", "modulation"), ("linear", "*time_proj", "modulation"),
    ("linear", "*time*embed*", "timestep"), ("linear", "*adaln_single*", "timestep"), ("linear", "t_embedder*", "timestep"),
    ("linear", "*guidance_embed*", "timestep"),
    ("linear", "*merger*", "merger"), ("linear", "*merger_list*", "merger"),
    ("linear", "txt_in", "text_in"), ("linear", "context_embedder*", "text_in"), ("linear", "caption_projection*", "text_in"),
    ("linear", "*text_embedder*", "text_in"), ("linear", "encoder_proj", "text_in"),
    ("linear", "img_in", "patch_embed"), ("linear", "x_embedder*", "patch_embed"), ("*", "*patch_embed*.proj", "patch_embed"),
    ("conv", "*patch_embed*", "patch_embed"), ("linear", "*patch_embed*", "patch_embed"),
    ("linear", "proj_out", "unpatch"), ("linear", "final_layer.linear", "unpatch"),
    ("linear", "*pooler*", "pooler"),
)  # fmt: skip
REGIONS = (
    ("*visual*", "vision"), ("*vision_tower*", "vision"), ("*vision_model*", "vision"), ("*audio_tower*", "audio"),
    ("*shared_expert*", "shared_experts"), ("*experts*", "experts"), ("*indexer*", "indexer"),
)  # fmt: skip
_SHOWN = re.compile("|".join(translate(pattern) for pattern, _ in REGIONS))


def role_of(operator: Operator) -> str:
    """The role of an operator: that of its spec, else by kind and path."""
    if operator.role and ROLES[operator.role].group != "region":
        return operator.role
    named = _role_at(operator.kind, str(operator.path))
    role = named or KINDS.get(operator.kind, operator.kind)
    return "plain_norm" if not named and role.endswith("norm") and not operator.parameters else role


@lru_cache(maxsize=1 << 14)
def _role_at(kind: str, path: str) -> str:
    """The role of the first line that matches, or an empty text."""
    first = _lines_of(kind)[0].match(path)
    return _lines_of(kind)[1][first.lastindex - 1] if first and first.lastindex else ""


@lru_cache(maxsize=1 << 8)
def _lines_of(kind: str) -> tuple[re.Pattern[str], list[str]]:
    """The lines for an operator kind as one pattern, a group for each, and the role of each."""
    fit = [(pattern, role) for wanted, pattern, role in DEFAULTS if fnmatchcase(kind, wanted)]
    return re.compile("|".join(f"({translate(pattern)})" for pattern, _ in fit) or r"\b\B"), [role for _, role in fit]


@lru_cache(maxsize=1 << 14)
def _regions_at(path: str) -> list[str]:
    """The regions of a path."""
    if not _SHOWN.match(path):
        return []
    shown = [name for pattern, name in REGIONS if fnmatchcase(path, pattern)]
    return [name for name in shown if name != "experts"] if "shared_experts" in shown else shown


def regions_of(operator: Operator) -> tuple[str, ...]:
    """The regions of an operator, from its path and its spec."""
    path = str(operator.path)
    own = [operator.role] if operator.role and ROLES[operator.role].group == "region" else []
    shown = [] if role_of(operator) == "shared_gate" else _regions_at(path)
    return tuple(dict.fromkeys([*shown, *operator.regions, *own]))
