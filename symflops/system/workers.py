"""Map a function over many items, in several processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
MANY, WORKERS = 16, 8  # from how many items on several processes pay off; the most processes


def mapped(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """``function`` of each of ``items``, in their order; ``MANY`` items or more are spread over processes."""
    workers = min(os.cpu_count() or 1, WORKERS)
    if len(items) < MANY or workers == 1:
        yield from map(function, items)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            yield from pool.map(function, items)
        finally:
            pool.shutdown(cancel_futures=True)
