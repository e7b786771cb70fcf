"""Map a function over many items, in several processes.

A worker is ``python -I`` on this file. :mod:`multiprocessing` would start ``python -c``, which looks for modules in the current
folder first: a ``pickle.py`` there, in a stranger's folder, would run.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")
MANY, WORKERS = 16, 8  # from how many items on several processes pay off; the most processes


def mapped(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """``function`` of each of ``items``, in their order; ``MANY`` items or more are spread over processes."""
    count = min(os.cpu_count() or 1, WORKERS)
    if len(items) < MANY or count == 1:
        yield from map(function, items)
        return
    workers = [_Worker(function) for _ in range(count)]
    free: SimpleQueue[_Worker] = SimpleQueue()
    for worker in workers:
        free.put(worker)

    def applied(item: T) -> Any:
        worker = free.get()
        try:
            return worker.applied(item)
        finally:
            free.put(worker)

    pool = ThreadPoolExecutor(count)
    try:
        yield from pool.map(applied, items)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.end()
        pool.shutdown()


class _Worker:
    """A process that applies one function to the items that it is sent."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        command = [sys.executable, "-I", str(Path(__file__).resolve())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.send(import_path())
        self.send(function)

    def send(self, value: object) -> None:
        assert self.process.stdin is not None
        pickle.dump(value, self.process.stdin)
        self.process.stdin.flush()

    def applied(self, item: Any) -> Any:
        """The function's result for ``item``; what it raises there is raised here."""
        assert self.process.stdout is not None
        try:
            self.send(item)
            fine, value = pickle.load(self.process.stdout)
        except (OSError, EOFError):
            raise RuntimeError(f"a worker process ended with code {self.process.wait()}") from None
        if not fine:
            raise value
        return value

    def end(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.wait()


def import_path() -> list[str]:
    """Where a worker looks for modules: where this process does, without the current folder unless it is named."""
    return [*filter(None, sys.path), str(Path(__file__).resolve().parents[2])]


def work() -> None:
    """The life of a worker: an import path, a function, then items until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    gc.set_threshold(100_000, 20, 20)  # expressions are kept, and to look for garbage among them takes a sixth of the time
    given, taken = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed goes to standard error
    sys.path[:] = pickle.load(given)
    function = pickle.load(given)
    while True:
        try:
            item = pickle.load(given)
        except EOFError:
            return
        try:
            answer = pickle.dumps((True, function(item)))
        except Exception as error:
            answer = pickle.dumps((False, error))
        taken.write(answer)
        taken.flush()


if __name__ == "__main__":
    work()
