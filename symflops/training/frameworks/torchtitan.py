"""torchtitan: ``get_nparams_and_flops``, a constant per token for one sequence length.

torchtitan multiplies the constant by its own count of tokens, so varying lengths cannot be expressed. For those use a meter
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
"""The classes of transformers that have the structures of torchtitan's layers."""
OUT = "give symflops_estimator"
# the fields of a layer, of its attention and of the kernel that are read, or change no work
KNOWN = {
    *("param_init", "sharding_config", "attention", "feed_forward", "attention_norm", "ffn_norm", "n_heads", "inner_attention"),
    *("dim", "qkv_linear", "wo", "qk_norm", "n_kv_heads", "head_dim", "rope", "block_size", "kernel_options"),
}


def nparams_and_flops(estimator: Any, seq_len: int) -> tuple[int, int]:
    """Parameters, and FLOPs per token of a sequence of ``seq_len``, forward and backward, rounded down.

    Raises:
        ValueError: ``seq_len`` is no positive number.
    """
    if seq_len < 1:
        raise ValueError(f"a sequence of {seq_len} tokens")
    name = next(iter(estimator.streams))
    return estimator.parameters, in_flops(estimator, estimator.total(estimator.moments(**{name: [seq_len]}))) // seq_len


def config_of(config: Any) -> dict[str, Any]:
    """The config of transformers' class that has the structure of torchtitan's own ``Model.Config``.

    It is read off the layers: grouped attention, with or without norms of queries and keys, and a gated feed-forward.

    Raises:
        SymflopsError: its layers have other parts, or differ from each other.
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
    """Heads, groups, the width of a head (None for the usual one), the hidden width and whether queries and keys are normed.

    Raises:
        ValueError: a linear has a bias, or a field is set that is not read (experts, a window).
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
    """The fields of a config, which may have slots."""
    names = (name for name in getattr(config, "__dataclass_fields__", {}) if not name.startswith("_"))
    return {name: getattr(config, name, None) for name in names}


def estimator_of(config: Any, model: Any = None, regime: str = "full", convention: str = "symflops") -> Any:
    """The estimator of torchtitan's own config; ``model`` must have as many parameters.

    Raises:
        SymflopsError: no spec has the structure, or the model has another number of parameters.
    """
    found = config_of(config)
    one = lookup.estimator(*lookup.by_config(found), found, regime, convention)[1]
    count = None if model is None else sum(tensor.numel() for tensor in model.parameters())
    if count not in (None, one.parameters):
        raise SymflopsError(f"the model has {count:,} parameters, its config as it was read {one.parameters:,}: {OUT}")
    return one


class FlopsMixin:
    """For a ``Model.Config`` of torchtitan: set ``symflops_estimator``, or let the config itself be read."""

    symflops_estimator: Any = None

    def get_nparams_and_flops(self, model: Any, seq_len: int) -> tuple[int, int]:
        """Parameters and FLOPs per token, as torchtitan asks for them when it starts."""
        one = self.symflops_estimator
        return nparams_and_flops(estimator_of(self, model) if one is None else one, seq_len)


def patch(config: type, *, regime: str = "full", convention: str = "symflops") -> None:
    """Let a class ``Model.Config`` of torchtitan count by symflops; its own count answers for what cannot be read.

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
    """A meter under torchtitan's keys; ``mfu(%)`` in percent. ``config`` is torchtitan's own, or one of transformers."""
    named: dict[str, Any] = {"keys": "torchtitan", **options}
    if not hasattr(config, "layers"):
        return MFUMeter.of_config(config, devices=devices, **named)
    try:
        return MFUMeter.of_config(config_of(config), devices=devices, **named)
    except SymflopsError as error:
        rest = {name: value for name, value in named.items() if name not in ("regimes", "convention", "spec")}
        return MFUMeter(None, devices=devices, reason=str(error), **rest)
