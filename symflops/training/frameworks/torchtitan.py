"""torchtitan: ``get_nparams_and_flops``, a constant per token for one sequence length.

torchtitan multiplies the constant by its own count of tokens, which cannot express varying lengths. For those use a meter
with torchtitan's keys: ``metrics_processor.log(..., extra_metrics=meter.step())``.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Unpack

from symflops.evaluate.units import in_flops
from symflops.library import lookup
from symflops.support.errors import SymflopsError
from symflops.support.reading import read_json
from symflops.training.meter.mfu import MFUMeter
from symflops.training.meter.types import ConfigOptions

CLASSES = Path(__file__).with_name("torchtitan.json")
"""Config fields of the transformers classes with the same structure as torchtitan's layers."""
OUT = "give symflops_estimator"
# known fields of a layer, its attention and its kernel: they are read, or do not change the work
KNOWN = {
    *("param_init", "sharding_config", "attention", "feed_forward", "attention_norm", "ffn_norm", "n_heads", "inner_attention"),
    *("dim", "qkv_linear", "wo", "qk_norm", "n_kv_heads", "head_dim", "rope", "block_size", "kernel_options"),
}


def nparams_and_flops(estimator: Any, seq_len: int) -> tuple[int, int]:
    """Return (number of parameters, FLOPs per token of forward and backward, rounded down).

    Raises:
        ValueError: ``seq_len`` is not positive.
    """
    if seq_len < 1:
        raise ValueError(f"a sequence of {seq_len} tokens")
    name = next(iter(estimator.streams))
    return estimator.parameters, in_flops(estimator, estimator.total(estimator.moments(**{name: [seq_len]}))) // seq_len


def config_of(config: Any) -> dict[str, Any]:
    """Translate torchtitan's ``Model.Config`` to the config of an equivalent transformers class.

    Supported layers: grouped-query attention, with or without norms of queries and keys, and a gated feed-forward.

    Raises:
        SymflopsError: layers have other parts, or differ from each other.
    """
    try:
        rows = {_layer(layer) for layer in config.layers}
        (one,) = rows
        heads, groups, width, hidden, normed = one
        ties, dim, vocab = bool(getattr(config, "enable_weight_tying", False)), int(config.dim), int(config.vocab_size)
    except (AttributeError, TypeError, ValueError) as error:
        word = type(config).__qualname__
        raise SymflopsError(
            f"{word} is no stack of equal layers of attention and a gated feed-forward: {OUT} ({error})"
        ) from None
    layers, known = len(config.layers), read_json(CLASSES)["normed" if normed else "plain"]
    return {
        **known, "hidden_size": dim, "intermediate_size": hidden, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": groups, "head_dim": width or dim // heads, "vocab_size": vocab,
        "tie_word_embeddings": ties, "attention_bias": False,
    }  # fmt: skip


def _layer(layer: Any) -> tuple[int, int, int | None, int, bool]:
    """Read a layer: (query heads, key-value heads, head width, feed-forward width, norm).

    ``norm`` is whether queries and keys are normed. A head width of None means the model width divided by the number of heads.

    Raises:
        ValueError: a linear has a bias, or an unsupported field (experts, a window) is set.
    """
    attention, gated = layer.attention, layer.feed_forward
    linears = (gated.w1, gated.w2, gated.w3, attention.wo, *fields_of(attention.qkv_linear).values())
    if any(getattr(one, "bias", False) for one in linears):
        raise ValueError("a linear with a bias")
    for part in (layer, attention, attention.inner_attention):
        other = next((name for name, value in fields_of(part).items() if value and name not in KNOWN), None)
        if other is not None:
            raise ValueError(f"'{other}' of {type(part).__qualname__}")
    heads, groups = int(attention.n_heads), attention.n_kv_heads
    hidden, normed = int(gated.w1.out_features), getattr(attention, "qk_norm", None) is not None
    return heads, int(groups or heads), attention.head_dim, hidden, normed


def fields_of(config: Any) -> dict[str, Any]:
    """Map the public dataclass fields of a config to their values; empty for anything else."""
    names = (name for name in getattr(config, "__dataclass_fields__", {}) if not name.startswith("_"))
    return {name: getattr(config, name, None) for name in names}


def estimator_of(config: Any, model: Any = None, regime: str = "full", convention: str = "symflops") -> Any:
    """The estimator for torchtitan's own config; a given ``model`` must have as many parameters.

    Raises:
        SymflopsError: no spec matches the structure, or the parameter counts differ.
    """
    found = config_of(config)
    one = lookup.estimator(*lookup.by_config(found), found, regime, convention)[1]
    count = None if model is None else sum(tensor.numel() for tensor in model.parameters())
    if count not in (None, one.parameters):
        raise SymflopsError(f"the model has {count:,} parameters, its config as it was read {one.parameters:,}: {OUT}")
    return one


class FlopsMixin:
    """Mixin for torchtitan's ``Model.Config``: set ``symflops_estimator``, or have it derived."""

    symflops_estimator: Any = None

    def get_nparams_and_flops(self, model: Any, seq_len: int) -> tuple[int, int]:
        """Return (number of parameters, FLOPs per token); torchtitan calls this once at the start."""
        one = self.symflops_estimator
        return nparams_and_flops(estimator_of(self, model) if one is None else one, seq_len)


def patch(config: type, *, regime: str = "full", convention: str = "symflops") -> None:
    """Patch a torchtitan ``Model.Config`` class to count by symflops; on errors its own count is used.

    Raises:
        AttributeError: the class has no ``get_nparams_and_flops``.
    """
    own = config.get_nparams_and_flops  # type: ignore[attr-defined]

    def get_nparams_and_flops(self: Any, model: Any, seq_len: int) -> tuple[int, int]:
        try:
            return nparams_and_flops(estimator_of(self, model, regime, convention), seq_len)
        except Exception as error:
            warnings.warn(f"symflops: torchtitan's own count answers: {type(error).__name__}: {error}", stacklevel=2)
            return own(self, model, seq_len)  # type: ignore[no-any-return]

    config.get_nparams_and_flops = get_nparams_and_flops  # type: ignore[attr-defined]


def meter(config: Any, *, devices: int, **options: Unpack[ConfigOptions]) -> MFUMeter:
    """A meter with torchtitan's keys (``mfu(%)`` in percent), for a torchtitan or transformers config."""
    named: dict[str, Any] = {"keys": "torchtitan", **options}
    if not hasattr(config, "layers"):
        return MFUMeter.of_config(config, devices=devices, **named)
    try:
        return MFUMeter.of_config(config_of(config), devices=devices, **named)
    except SymflopsError as error:
        rest = {name: value for name, value in named.items() if name not in ("regimes", "convention", "spec")}
        return MFUMeter(None, devices=devices, reason=str(error), **rest)
