"""Drafts in a process of its own, which is ended when it hangs or takes too much memory: what it had found by then stays."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any

from symflops.diagnostics.errors import SymflopsError
from symflops.draft.draft import draft
from symflops.draft.limits import sparing
from symflops.draft.study import Draft
from symflops.draft.trace.subject import Subject

GRACE = 1.5
STARTING = 60.0
MEMORY = 4 << 30  # bytes that end the process, and that a module in it is refused
REFUSED = 3 << 30
LOOK = 0.5


def drafted_apart(
    subject: Subject,
    timeout: float,
    tell: Callable[[str], None],
    published: Sequence[Subject] = (),
    variants: Mapping[str, Subject] = MappingProxyType({}),
    most: int = MEMORY,
) -> Draft:
    """Draft in a process of its own; ``most`` are the bytes of memory that it may have, where the system tells.

    A draft that is given up has what was known by then, perhaps no text.

    Raises:
        SymflopsError: what drafting raises, or nothing at all was found in time.
    """
    here, there = get_context("spawn").Pipe(duplex=False)
    process = get_context("spawn").Process(
        target=work, args=(there, str(Path.cwd()), subject, timeout, tuple(published), dict(variants))
    )
    process.start()
    there.close()
    last: Draft | None = None
    ends = time.monotonic() + GRACE * timeout * (1 + len(variants)) + STARTING
    why = "the time was up, and it did not end by itself"
    try:
        while time.monotonic() < ends:
            if memory_of(process.pid) > most:
                why = f"it took more than {most >> 30} GB of memory"
                break
            if not here.poll(LOOK):
                continue
            try:
                kind, value = here.recv()
            except EOFError:
                process.join()
                why = f"its process ended with code {process.exitcode}"
                break
            if kind == "tell":
                tell(value)
            elif kind == "failed":
                raise failure(*value)
            else:
                last = value
                if kind == "done":
                    return last
    finally:
        process.kill()
        process.join()
    if last is None:
        raise SymflopsError(f"{subject.reference} cannot be drafted: {why}, before anything was found")
    last.given_up = why
    return last


def failure(text: str, code: int) -> SymflopsError:
    """An error of the other process."""
    error = SymflopsError(text)
    error.exit_code = code
    return error


def work(
    pipe: Any, folder: str, subject: Subject, timeout: float, published: Sequence[Subject], variants: Mapping[str, Subject]
) -> None:
    """Draft, and send progress, what is known, and the end; what a module prints goes to standard error."""
    os.dup2(2, 1)
    sparing(REFUSED)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found = draft(
            subject,
            timeout,
            lambda text: pipe.send(("tell", text)),
            published,
            variants,
            lambda known: pipe.send(("known", known)),
        )
        pipe.send(("done", found))
    except SymflopsError as error:
        pipe.send(("failed", (str(error), error.exit_code)))
    except (KeyboardInterrupt, BrokenPipeError):
        return


def memory_of(process: int | None) -> int:
    """The bytes of memory that a process has now; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError, AttributeError):
        return 0
