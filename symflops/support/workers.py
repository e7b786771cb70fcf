"""Maps a function over many items in several processes.

A worker is ``python -I`` on this file. :mod:`multiprocessing` would start ``python -c``, which imports from the current folder
first: a ``pickle.py`` in a stranger's folder would run.
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
MANY, WORKERS = 16, 8  # least items for which processes pay off; most processes


def mapped(function: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
    """Yield ``function(item)`` for each item in order; many items are shared among processes."""
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
    """A child process that applies one function to each item sent to it."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        command = [sys.executable, "-I", str(Path(__file__).resolve())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.send([*filter(None, sys.path), str(Path(__file__).resolve().parents[2])])  # not the working directory
        self.send(function)

    def send(self, value: object) -> None:
        assert self.process.stdin is not None
        pickle.dump(value, self.process.stdin)
        self.process.stdin.flush()

    def applied(self, item: Any) -> Any:
        """``function(item)`` as computed by the child process; its exception is raised here."""
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
        """Kill the process and wait for its end."""
        self.process.kill()
        self.process.wait()


def work() -> None:
    """Run a child process: read an import path and a function, then answer each item until the input ends.

    The answer to an item is (True, result), or (False, exception).
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    gc.set_threshold(100_000, 20, 20)  # expressions stay alive; frequent collection takes a sixth of the time
    given, taken = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints go to standard error
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
