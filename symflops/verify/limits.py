"""Limits time and memory of module code: of one call, and of a process of its own, whose changes end with it."""

from __future__ import annotations

import logging
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any, TypeVar

from symflops.support.errors import SymflopsError

T = TypeVar("T")
MEMORY = 4 << 30
"""Bytes of data that a process may allocate."""
IDLE = 20
"""Seconds on the clock for each second of processor time that a process may take, on a busy machine."""
XCPU = getattr(signal, "SIGXCPU", 0)
REPEATED = 1.0  # seconds between two alarms, in case a module catches the first one
MOST_SECONDS = 180.0  # for one configuration
M_MMAP_THRESHOLD = -3  # malloc.h of glibc
PR_SET_PDEATHSIG = 1  # sys/prctl.h of Linux
MAPPED = 1 << 20  # bytes from which memory goes back to the system when it is freed


class EndedError(SymflopsError):
    """A process took too long, needed too much memory, or crashed."""


class TooLongError(BaseException):
    """Raised when time is up; not an ``Exception``, which a module might catch."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Context that raises :class:`TooLongError` after ``seconds`` of processor time, or ``IDLE`` times as many on the clock.

    There is no limit without a system timer, or outside of the main thread.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: Any) -> None:
        raise TooLongError

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, 1), (signal.SIGALRM, signal.ITIMER_REAL, IDLE))
    before = [signal.signal(number, ring) for number, _, _ in timers]
    for _, timer, times in timers:
        signal.setitimer(timer, max(times * seconds, 0.01), REPEATED)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


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


def in_process(
    function: Callable[..., T], seconds: float, what: str, memory: int = MEMORY, hear: Callable[[str, Any], None] | None = None
) -> T:
    """``function()``, computed by a copy of this process.

    Args:
        function: Returns a value that can be pickled; with ``hear`` it takes a function that sends messages.
        seconds: Processor time after which the process is killed; ``IDLE`` times as many seconds on the clock kill it, too.
        what: What the process does, for messages.
        memory: Bytes that the process may allocate.
        hear: Receives the messages (kind, value) that the function sends while it runs.

    Raises:
        SymflopsError: the function raised it; or the process raised something else, took too long, or ended.
    """
    if not hasattr(os, "fork"):
        raise SymflopsError(f"{what} needs a system with fork, such as Linux or macOS")
    here, there = Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads: the copy starts none
        child = os.fork()
    if child == 0:
        here.close()
        _answer(function, there, memory, seconds, hear is not None)
    there.close()
    long = f"took more than {seconds:.0f} s of processor time"
    until, ended, why = time.monotonic() + IDLE * seconds, False, f"waited for more than {IDLE * seconds:.0f} s"
    try:
        while here.poll(max(0.0, until - time.monotonic())):
            kind, value = here.recv()
            if kind == "failed":
                raise value
            if kind == "done":
                return value  # type: ignore[no-any-return]
            if hear is not None:
                hear(kind, value)
    except EOFError:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        crashed = f"needs more than {memory >> 30} GB of memory, or crashed: it ended with code {code}"
        ended, why = True, long if -code == XCPU else crashed
    finally:
        here.close()
        with suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        if not ended:
            os.waitpid(child, 0)
    raise EndedError(f"{what} {why}")


def _answer(function: Callable[..., Any], pipe: Any, memory: int, seconds: float, telling: bool) -> None:
    """Send the result of a function to ``pipe`` as ("done", result) or ("failed", error), and end the process."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.dup2(2, 1)  # what module code prints goes to standard error
        limit_memory(memory)
        limit_time(seconds)
        for library in ("torch", "transformers"):  # what a shape function or a config refuses is no news here
            logging.getLogger(library).setLevel(logging.CRITICAL)
        try:
            answer = ("done", function(lambda kind, value: pipe.send((kind, value))) if telling else function())
        except SymflopsError as error:
            answer = ("failed", error)
        except Exception as error:
            answer = ("failed", SymflopsError(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"))
        pipe.send(answer)
        code = 0
    finally:
        os._exit(code)


def limit_time(seconds: float) -> None:
    """Limit the processor time of this process, if the system supports it."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        most = math.ceil(time.process_time() + seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (most if hard < 0 else min(most, hard), hard))


def limit_memory(most: int) -> None:
    """Limit the data of this process to ``most`` bytes beyond what it has, if the system supports it.

    A larger tensor, such as a mask of a long sequence on the CPU, raises in the module that allocates it. Under glibc, freed
    tensors are returned to the system at once: by default it keeps up to 32 MB of each for later ones, which need not fit
    (``mallopt(3)``, ``M_MMAP_THRESHOLD``). Under Linux the process ends with its parent.
    """
    with suppress(ImportError, AttributeError, TypeError, ValueError, OSError, IndexError):
        import ctypes
        import resource

        library = ctypes.CDLL(None)
        for name, arguments in (("mallopt", (M_MMAP_THRESHOLD, MAPPED)), ("prctl", (PR_SET_PDEATHSIG, signal.SIGKILL))):
            with suppress(AttributeError):
                getattr(library, name)(*arguments)
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most += pages * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))
