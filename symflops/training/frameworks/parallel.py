"""Lengths under model parallelism: padding, and the rank that counts a batch."""

from __future__ import annotations

from collections.abc import Sequence

from symflops.training.meter.batches import packed

__all__ = ["aligned", "counts", "packed", "padded"]


def aligned(length: int, multiple: int) -> int:
    """Round ``length`` up to a multiple of ``multiple``, as sequence parallelism pads to ``sp_size``.

    >>> aligned(77, 8)
    80

    Raises:
        ValueError: ``multiple`` is not positive.
    """
    if multiple < 1:
        raise ValueError(f"a multiple of {multiple}")
    return -(-length // multiple) * multiple


def padded(lengths: Sequence[int], multiple: int = 1, longest: bool = True) -> dict[str, list[int]]:
    """Return ``lengths`` with padded ones: all the longest if ``longest``, else each its own, rounded up.

    >>> padded([100, 77], 8)
    {'lengths': [100, 77], 'padded': [104, 104]}
    """
    real = [int(length) for length in lengths]
    top = max(real, default=0)
    return {"lengths": real, "padded": [aligned(top if longest else length, multiple) for length in real]}


def counts(*, tp_rank: int = 0, cp_rank: int = 0, pp_rank: int = 0, vp_stage: int | None = None) -> bool:
    """Whether this rank and virtual stage adds a batch to the meter; of those that share it, one does.

    Tensor, context and pipeline ranks, and virtual pipeline stages, run parts of the same batch. A global meter adds a batch
    once, and its ``devices`` include all of these ranks.
    """
    return tp_rank == cp_rank == pp_rank == 0 and vp_stage in (None, 0)
