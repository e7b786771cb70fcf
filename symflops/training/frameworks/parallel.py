"""Lengths under sequence, context and pipeline parallelism: what was padded, and which process counts a batch."""

from __future__ import annotations

from collections.abc import Sequence

from symflops.training.meter.packs import packed

__all__ = ["aligned", "counts", "packed", "padded"]


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
