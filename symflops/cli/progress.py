"""A progress bar on standard error, if it is a terminal and the work takes over half a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
F = TypeVar("F")
WIDTH = 24


def progress(items: Sequence[T], verb: str, label: Callable[[T], str]) -> Iterator[T]:
    """Yield ``items`` one by one, and draw a bar."""
    started, shown = time.monotonic(), False
    for number, item in enumerate(items):
        if sys.stderr.isatty() and time.monotonic() - started > 0.5:
            shown = True
            filled = WIDTH * number // max(1, len(items))
            bar = "#" * filled + "." * (WIDTH - filled)
            print(f"\r{verb} [{bar}] {number}/{len(items)} {label(item):<32.32}", end="", file=sys.stderr, flush=True)
        yield item
    if shown:
        print(f"\r{' ' * (WIDTH + 64)}\r", end="", file=sys.stderr, flush=True)


def in_workers(function: Callable[[F], T], files: Sequence[F], verb: str) -> Iterator[tuple[F, T]]:
    """Each file with the result of ``function``, which worker processes run; with a bar."""
    from symflops.system.workers import mapped

    results = mapped(function, files)
    for file in progress(files, verb, lambda file: str(getattr(file, "name", file))):
        yield file, next(results)
