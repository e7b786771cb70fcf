"""Ends what takes too long or too much memory: a module that hangs, or asks for gigabytes, does not accept its sizes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AGAIN = 1.0
PATIENCE = 180.0  # seconds for one configuration


class TooLongError(BaseException):
    """Time was up; no exception of the module that it would catch itself."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise :class:`TooLongError` in what runs inside after some seconds, where the system has such a timer."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01), AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def sparing(most: int) -> None:
    """From here on, refuse this process more than ``most`` bytes of data, where the system has such a limit.

    A tensor that would be larger raises in the module that makes it, as masks of long sequences do which are made on the CPU.
    """
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))
    except (ImportError, AttributeError, ValueError, OSError):
        return
