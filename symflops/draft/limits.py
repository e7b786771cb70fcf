"""Limits time and memory of module code: a module that hangs or asks for gigabytes rejects its sizes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeVar

T = TypeVar("T")
REPEATED = 1.0  # seconds between two alarms, in case a module catches the first one
MOST_SECONDS = 180.0  # for one configuration
M_MMAP_THRESHOLD = -3  # malloc.h of glibc
MAPPED = 1 << 20  # bytes from which memory goes back to the system when it is freed


class TooLongError(BaseException):
    """Raised when time is up; not an ``Exception``, which a module might catch."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Context that raises :class:`TooLongError` after ``seconds``; no limit without a system timer."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01), REPEATED)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attempt(action: Callable[[], T], seconds: float | None = None) -> T | None:
    """Result of ``action``; None if it raises or takes longer than ``seconds``.

    Any error of a module means the same to a draft: the module does not accept its config or its arguments.
    """
    try:
        with nullcontext() if seconds is None else within(seconds):
            return action()
    except Exception:
        return None
    except TooLongError:
        if seconds is None:  # the limit of a caller
            raise
        return None


def limit_memory(most: int) -> None:
    """Limit the data of this process to ``most`` bytes, if the system supports it.

    A larger tensor, such as a mask of a long sequence on the CPU, raises in the module that allocates it. Under glibc, freed
    tensors are returned to the system at once: by default it keeps up to 32 MB of each for later ones, which need not fit
    (``mallopt(3)``, ``M_MMAP_THRESHOLD``).
    """
    try:
        import ctypes
        import resource

        with suppress(AttributeError):
            ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, MAPPED)
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))
    except (ImportError, AttributeError, TypeError, ValueError, OSError):
        return
