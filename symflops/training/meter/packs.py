"""Reads packs: rows of several sub-sequences, separated by attention's ``cu_seqlens``.

Squares of lengths use the boundaries without padding; linear work covers all tokens of a pack, padding included. A pack without
a sub-sequence is one sequence. Megatron-Bridge's ``accumulate_flops_metadata`` has the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

from symflops.evaluate.boundaries import LengthError, filled, host_array, rows_of, steps
from symflops.evaluate.layouts import shape_of
from symflops.evaluate.lengths import Lengths, marked, same

TOKENS = ("input_ids", "tokens")
NAMES = ("cu_seqlens_q", "cu_seqlens", "cu_seq_lens_q")
INNER = (*(f"{name}_unpadded" for name in NAMES), *NAMES)
OUTER = (*(f"{name}_padded" for name in NAMES), *NAMES)
OF_KEYS = {"cu_seqlens_q": "cu_seqlens_kv", "cu_seq_lens_q": "cu_seq_lens_k"}


def packed(batch: Mapping[str, Any], tokens: Any = None) -> Lengths:
    """Lengths of the sub-sequences in a packed batch.

    Args:
        batch: ``cu_seqlens``, optionally with ``cu_seqlens_unpadded``, and for each the number of valid boundaries, on the
            host, as ``cu_seqlens_argmin`` and ``cu_seqlens_unpadded_argmin``; or ``cu_seqlens_q`` and
            ``cu_seqlens_q_padded``; or ``cu_seq_lens_q``.
        tokens: The length of the pack, or its token ids; by default ``input_ids`` or ``tokens`` of the batch. Tokens beyond
            the last boundary are padding of the last sub-sequence.

    Raises:
        LengthError: the batch has no boundaries, or they do not fit the tokens.
    """
    found = pack_of(batch, tokens)
    if found is None:
        raise LengthError("a packed batch has 'cu_seqlens'")
    return found


def pack_of(batch: Mapping[str, Any], tokens: Any = None) -> Lengths | None:
    """Lengths of the sub-sequences of a batch, as :func:`packed`; None if it has no boundaries.

    Raises:
        LengthError: the boundaries do not fit the tokens.
    """
    inner, outer = (next((key for key in keys if entry(batch, key) is not None), None) for keys in (INNER, OUTER))
    if inner is None and outer is None:
        return None
    if tokens is None:
        tokens = next((batch[key] for key in TOKENS if entry(batch, key) is not None), None)
    keys = OF_KEYS.get(inner or "", "")
    if entry(batch, keys) is not None and _differ(batch[inner or ""], batch[keys]):
        raise LengthError(f"'{inner}' and '{keys}' differ, so queries and keys are not those of the same sequences")
    padding = None if inner is None or outer in (None, inner) else _boundaries(batch, outer)
    return _filled(_boundaries(batch, inner or outer or ""), padding, _shape(tokens))


def entry(batch: Mapping[str, Any], key: str) -> Any:
    """The entry of a mapping or TensorDict under ``key``; None if it has no such entry."""
    try:
        return batch[key]
    except (KeyError, IndexError, TypeError):
        return None


def _differ(one: Any, other: Any) -> bool:
    """Whether two sets of boundaries differ; False if a device other than the CPU has either of them."""
    rows = [host_array(rows_of(given)) for given in (one, other)]
    return not any(hasattr(row, "unsqueeze") for row in rows) and rows[0].tolist() != rows[1].tolist()


def _boundaries(batch: Mapping[str, Any], key: str) -> Any:
    """The boundaries under ``key``, one row per pack, cut to ``<key>_argmin`` entries if the batch has it."""
    rows, least = rows_of(batch[key]), entry(batch, f"{key}_argmin")
    if least is None:
        return rows
    try:
        return rows[:, : index(least.item() if hasattr(least, "item") else least)]
    except (TypeError, ValueError, RuntimeError):
        raise LengthError(f"'{key}_argmin' is one whole number, not {least!r:.80}") from None


def _shape(tokens: Any) -> Sequence[int] | None:
    """The shape of token ids, or ``(n,)`` for a number of tokens per pack; None if ``tokens`` is None.

    Raises:
        LengthError: ``tokens`` is neither.
    """
    if tokens is None:
        return None
    if getattr(tokens, "is_nested", False):
        return (tokens.numel(),)
    try:
        shape = shape_of(tokens) or (index(tokens),)
    except TypeError:
        shape = (-1,)
    if min(shape) < 0:
        raise LengthError(f"the tokens of a pack are token ids or their number, not {tokens!r:.80}")
    return shape


def _filled(inner: Any, outer: Any, tokens: Sequence[int] | None) -> Lengths:
    """Compute the real and padded lengths of sub-sequences from their boundaries in each pack.

    Args:
        inner: Boundaries without padding, one row per pack.
        outer: Boundaries with padding, in the same form; None if the batch has only one set of boundaries.
        tokens: The shape of the token ids, or ``(n,)`` for ``n`` tokens per pack; None if unknown.

    Raises:
        LengthError: a pack has no sub-sequence and ``tokens`` is None, or the boundaries do not fit ``tokens``.
    """
    real, mark = steps(inner)
    count, length = (len(real), None) if tokens is None else tokens[:2] if len(tokens) > 1 else (len(real), *tokens)
    if real.shape[1] == 0 or not (mark is None or hasattr(mark, "unsqueeze") or mark.any()):
        if length is None:
            raise LengthError("a pack without a sub-sequence, and without a number of tokens")
        return same(count, length)
    if length is not None and count * length % len(real):
        raise LengthError(f"{len(real)} packs in token ids of shape {tokens}")
    width = None if length is None else count * length // len(real)
    if width is not None and not hasattr(real, "unsqueeze") and (real.sum(1) > width).any():
        raise LengthError(
            f"boundaries of {int(real.sum(1).max())} tokens in a pack of {width}; "
            "if ranks hold slices of it, give the number of all its tokens"
        )
    real, padded, mark = filled(real, mark, None if outer is None else steps(outer)[0], width)
    return marked(real, mark, padded)
