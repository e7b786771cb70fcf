"""Transformers' flash attention on the CPU: masks follow from the flags of a module, as its kernel is called with them."""

from __future__ import annotations

from typing import Any

from symflops.witness.tensors import needed

FLASH = "is_causal"
"""The name of the implementation; transformers takes one with "flash" in it for a kernel to be loaded."""


def register() -> None:
    """Make the implementation ``FLASH`` known to transformers; its masks are those of flash attention, none without padding."""
    transformers, masks = needed("transformers"), needed("transformers.masking_utils")
    transformers.AttentionInterface.register(FLASH, attend)
    transformers.AttentionMaskInterface.register(FLASH, masks.flash_attention_mask)


def attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    _: Any,
    sliding_window: int | None = None,
    is_causal: bool | None = None,
    **__: Any,
) -> tuple[Any, None]:
    """Attention of queries (batch, heads, tokens, width) under ``is_causal`` and a window to both sides."""
    torch = needed("torch")
    groups = query.shape[1] // key.shape[1]
    key, value = (each.repeat_interleave(groups, 1) for each in (key, value))
    behind = torch.arange(query.shape[2])[:, None] + key.shape[2] - query.shape[2] - torch.arange(key.shape[2])
    hidden = (behind < 0) & bool(module.is_causal if is_causal is None else is_causal)
    if sliding_window:
        hidden |= behind.abs() >= sliding_window
    weights = (query @ key.transpose(2, 3)).masked_fill(hidden, -torch.inf).softmax(-1)
    return (weights @ value).transpose(1, 2).contiguous(), None
