"""Runs a function in a process of its own, with limits on its time and memory; what it changes ends with it."""

from __future__ import annotations

import logging
import os
import pickle
import select
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from symflops.support.errors import SymflopsError

MEMORY = 4 << 30
"""Bytes of data that the process may allocate."""


def in_process(function: Callable[[], Any], seconds: float, what: str) -> Any:
    """``function()``, computed by a copy of this process.

    Args:
        function: Takes nothing and returns a value that can be pickled.
        seconds: After this time the process is killed.
        what: What the process does, for messages.

    Raises:
        SymflopsError: the function raised it; or the process raised something else, took too long, or ended.
    """
    if not hasattr(os, "fork"):
        raise SymflopsError(f"{what} needs a system with fork, such as Linux or macOS")
    here, there = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads: the copy starts none
        child = os.fork()
    if child == 0:
        os.close(here)
        _answer(function, there)
    os.close(there)
    try:
        fine, value = _read(here, seconds)
    except (EOFError, pickle.UnpicklingError, TimeoutError) as error:
        with suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        reason = (
            f"took more than {seconds:.0f} s"
            if isinstance(error, TimeoutError)
            else f"needs more than {MEMORY >> 30} GB, or crashed"
        )
        raise SymflopsError(f"{what} {reason}") from None
    finally:
        os.close(here)
        os.waitpid(child, 0)
    if not fine:
        raise value
    return value


def _answer(function: Callable[[], Any], pipe: int) -> None:
    """Write (True, result) or (False, error) to ``pipe``, and end the process."""
    with suppress(OSError):
        os.setpgid(0, 0)
    code = 1
    try:
        os.dup2(2, 1)  # what module code prints goes to standard error
        _limit_memory()
        logging.getLogger("torch").setLevel(logging.CRITICAL)  # what a shape function refuses is no news here
        try:
            answer = (True, function())
        except SymflopsError as error:
            answer = (False, error)
        except Exception as error:
            answer = (False, SymflopsError(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"))
        data = pickle.dumps(answer)
        with os.fdopen(pipe, "wb") as file:
            file.write(data)
        code = 0
    finally:
        os._exit(code)


def _limit_memory() -> None:
    """Limit this process to ``MEMORY`` bytes beyond what it has, if the system supports it."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (2 * MEMORY if hard < 0 else min(2 * MEMORY, hard), hard))


def _read(pipe: int, seconds: float) -> tuple[bool, Any]:
    """The answer of a process.

    Raises:
        TimeoutError: it does not come in time.
        EOFError: the process ended without one.
    """
    until, parts = time.monotonic() + seconds, []
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(pipe, 1 << 20)
        if not part:
            break
        parts.append(part)
    if not parts:
        raise EOFError
    found: tuple[bool, Any] = pickle.loads(b"".join(parts))
    return found
