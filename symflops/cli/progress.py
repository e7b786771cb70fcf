"""Progress on standard error, if it is a terminal: a bar for work on many things, and a clock for work on one."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
F = TypeVar("F")
WIDTH = 24
PATIENCE, TICK = 0.5, 0.25
"""Seconds of silence before the clock is shown, and between its ticks."""


class _Watched:
    """Wrapper of an output stream that clears the line of a :class:`_Clock` before each write."""

    def __init__(self, stream: Any, clock: _Clock) -> None:
        self._stream, self._clock = stream, clock

    def write(self, text: str) -> Any:
        """Clear the line of the clock, then write ``text`` to the stream."""
        with self._clock.lock:
            self._clock.make_room(text)
            return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Clock:
    """Line with the running time of a command, which a thread draws below the last output."""

    def __init__(self, label: str, stream: Any) -> None:
        self.label, self.stream = label, stream
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.started = self.heard = time.monotonic()
        self.shown, self.at_line_start = 0, True

    def make_room(self, text: str) -> None:
        """Clear the line of the clock, because ``text`` is written next, and restart the wait for silence.

        Until ``text`` ends a line, the clock is not drawn.
        """
        if self.shown:
            self.stream.write(f"\r{' ' * self.shown}\r")
            self.stream.flush()
        self.shown, self.heard = 0, time.monotonic()
        self.at_line_start = text.endswith("\n") if text else self.at_line_start

    def run(self) -> None:
        """Draw the running time after each spell of silence, until the command ends."""
        while not self.ended.wait(TICK):
            with self.lock:
                now = time.monotonic()
                if self.at_line_start and now - self.heard >= PATIENCE:
                    text = f"{self.label}: {now - self.started:.0f} s"
                    self.stream.write(f"\r{text}")
                    self.stream.flush()
                    self.shown = len(text)


@contextmanager
def clock(label: str) -> Iterator[None]:
    """Show the running time of a command on a terminal after half a second without output."""
    out, error = sys.stdout, sys.stderr
    if not error.isatty():
        yield
        return
    drawn = _Clock(label, error)
    threading.Thread(target=drawn.run, daemon=True).start()
    sys.stdout, sys.stderr = _Watched(out, drawn), _Watched(error, drawn)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, error
        drawn.ended.set()
        with drawn.lock:
            drawn.make_room("")


def progress(items: Sequence[T], verb: str, label: Callable[[T], str]) -> Iterator[T]:
    """Yield ``items`` one by one, and draw a progress bar on a terminal.

    The bar shows ``verb`` and the ``label`` of the current item.
    """
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
    """Run ``function`` on files in worker processes; yield (file, result) and draw a progress bar."""
    from symflops.support.workers import mapped

    results = mapped(function, files)
    for file in progress(files, verb, lambda file: str(getattr(file, "name", file))):
        yield file, next(results)
