"""Lengths under sequence, context and pipeline parallelism: what was padded, and which process counts a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from symflops.runtime.at_hand import LengthError
from symflops.runtime.lengths import Lengths, of_cu_seqlens


def aligned(length: int, multiple: int) -> int:
    """A length padded to a multiple, as sequence parallelism pads to ``sp_size``.

    >>> aligned(77, 8)
    80

    Raises:
        ValueError: ``multiple`` is no positive number.
    """
    if multiple < 1:
        raise ValueError(f"a multiple of {multiple}")
    return -(-length // multiple) * multiple


def padded(lengths: Sequence[int], multiple: int = 1, longest: bool = True) -> dict[str, list[int]]:
    """The lengths of a batch with those that they are padded to: all to the longest, or each by itself, up to a multiple.

    >>> padded([100, 77], 8)
    {'lengths': [100, 77], 'padded': [104, 104]}
    """
    real = [int(length) for length in lengths]
    top = max(real, default=0)
    return {"lengths": real, "padded": [aligned(top if longest else length, multiple) for length in real]}


def counts(*, tp_rank: int = 0, cp_rank: int = 0, pp_rank: int = 0, vp_stage: int | None = None) -> bool:
    """Whether this process, and this chunk of its model, counts a batch: one of the processes that share it does.

    Ranks of tensor, context and pipeline parallelism, and virtual stages of a pipeline, run parts of the same batch. A meter of
    the whole group adds a batch once, and its ``devices`` are all of them.
    """
    return tp_rank == cp_rank == pp_rank == 0 and vp_stage in (None, 0)


def packed(batch: Mapping[str, Any], tokens: int | None = None) -> Lengths:
    """The sub-sequences of Megatron-Bridge's packed batch.

    Args:
        batch: ``cu_seqlens``, and what it may hold beside: ``cu_seqlens_unpadded``, and the number of boundaries that count as
            ``cu_seqlens_argmin`` and ``cu_seqlens_unpadded_argmin``, on the host.
        tokens: The length of the pack. What lies beyond the last boundary is padding of the last sub-sequence.

    Raises:
        LengthError: there are no boundaries, or the padded and the unpadded ones do not fit together.
    """
    outer = _boundaries(batch, "cu_seqlens")
    inner = _boundaries(batch, "cu_seqlens_unpadded")
    if outer is None:
        raise LengthError("a packed batch has 'cu_seqlens'")
    if tokens is None:
        return of_cu_seqlens(outer, inner)
    return of_cu_seqlens(_up_to(outer, tokens), _rising(outer if inner is None else inner))


def _boundaries(batch: Mapping[str, Any], name: str) -> Any:
    """The boundaries of a pack, those that count if the batch says how many; None without any."""
    found, least = batch.get(name), batch.get(f"{name}_argmin")
    if found is None:
        return None
    found = found.reshape(-1) if hasattr(found, "dtype") else [int(value) for value in found]
    return found if least is None else found[: int(least)]


def _rising(boundaries: Any) -> Any:
    """Boundaries whose fillers are the last of them again: sub-sequences without a token."""
    return list(accumulate(boundaries, max)) if isinstance(boundaries, list) else boundaries.cummax(0).values


def _up_to(boundaries: Any, tokens: int) -> Any:
    """Boundaries of which the last is the end of the pack."""
    found = _rising(boundaries)
    if isinstance(found, list):
        return [*found[:-1], max(found[-1], tokens)]
    import torch

    return torch.cat((found[:-1], found[-1:].clip(min=tokens)))
