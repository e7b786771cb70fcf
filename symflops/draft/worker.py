"""Drafts in a subprocess; kills it if it hangs or takes too much memory, but keeps its findings."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any

from symflops.draft.draft import draft
from symflops.draft.limits import limit_memory
from symflops.draft.study import Draft
from symflops.draft.trace.subject import Subject
from symflops.support.errors import SymflopsError

GRACE = 3.0  # times the time limit, before the process is killed
START_SECONDS = 60.0
MEMORY = 4 << 30  # bytes that end the process
REFUSED = 3 << 30  # bytes of data that the process may allocate
POLL_SECONDS = 0.5


def draft_in_process(
    subject: Subject,
    timeout: float,
    tell: Callable[[str], None],
    published: Sequence[Subject] = (),
    variants: Mapping[str, Subject] = MappingProxyType({}),
    most: int = MEMORY,
) -> Draft:
    """Draft in a subprocess, with the arguments of :func:`symflops.draft.draft.draft`.

    ``most`` limits the subprocess's memory in bytes, if the system reports it.

    Returns:
        The draft. One that is given up has the findings so far, perhaps no text.

    Raises:
        SymflopsError: Drafting raised it, or there were no findings in time.
    """
    context = get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(there, str(Path.cwd()), subject, timeout, tuple(published), dict(variants)))
    process.start()
    there.close()
    ends = time.monotonic() + GRACE * timeout * (1 + len(variants)) + START_SECONDS
    try:
        last, why = listen(here, process, ends, most, tell)
    finally:
        process.kill()
        process.join()
    if last is None:
        raise SymflopsError(f"{subject.reference} cannot be drafted: {why}, before anything was found")
    last.given_up = why or last.given_up
    return last


def listen(pipe: Any, process: Any, ends: float, most: int, tell: Callable[[str], None]) -> tuple[Draft | None, str]:
    """Receive messages of the drafting subprocess until it finishes, dies, or is out of time or memory.

    Args:
        pipe: The end of the pipe to read from.
        process: The subprocess.
        ends: When time is up, on the monotonic clock.
        most: The memory limit in bytes.
        tell: Receives progress messages.

    Returns:
        The last draft that it sent, None if it sent none; why it was given up, empty if it finished.

    Raises:
        SymflopsError: Drafting raised it in the subprocess.
    """
    last: Draft | None = None
    while time.monotonic() < ends:
        if memory_of(process.pid) > most:
            return last, f"it took more than {most >> 30} GB of memory"
        if not pipe.poll(POLL_SECONDS):
            continue
        try:
            kind, value = pipe.recv()
        except EOFError:
            process.join()
            return last, f"its process ended with code {process.exitcode}"
        if kind == "tell":
            tell(value)
        elif kind == "failed":
            error = SymflopsError(value[0])
            error.exit_code = value[1]
            raise error
        elif kind == "done":
            return value, ""
        else:
            last = value
    return last, "the time was up, and it did not end by itself"


def work(
    pipe: Any, folder: str, subject: Subject, timeout: float, published: Sequence[Subject], variants: Mapping[str, Subject]
) -> None:
    """Main function of the subprocess: draft, and send pairs (kind of message, value) through ``pipe``.

    What the module prints goes to standard error; ``folder`` is added to the import path.
    """
    os.dup2(2, 1)
    limit_memory(REFUSED)
    if folder not in sys.path:
        sys.path.insert(0, folder)

    def send(kind: str) -> Callable[[Any], None]:
        return lambda value: pipe.send((kind, value))

    try:
        send("done")(draft(subject, timeout, send("tell"), published, variants, send("known")))
    except SymflopsError as error:
        send("failed")((str(error), error.exit_code))
    except (KeyboardInterrupt, BrokenPipeError):
        return


def memory_of(process: int | None) -> int:
    """Resident memory of a process in bytes; 0 if the system does not report it."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError, AttributeError):
        return 0
