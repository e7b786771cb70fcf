"""Atomic writes: a file is written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from symflops.support.reading import read_bytes

LOCK = ".lock"


def holds(path: Path, data: bytes) -> bool:
    """Whether there is a file with this content; one of another size is not read."""
    return path.is_file() and path.stat().st_size == len(data) and read_bytes(path, len(data)) == data


def write(path: Path, text: str | bytes) -> bool:
    """Write ``text`` to ``path`` unless the file has it already; a reader sees the old file or the new one, never a part.

    Returns:
        Whether anything was written.

    Raises:
        OSError: the folder cannot be written, or has no room; with ``path`` as the name of the file.
    """
    data = text.encode("utf-8") if isinstance(text, str) else text
    if holds(path, data):
        return False
    try:
        replace(path, data)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    return True


def replace(path: Path, data: bytes) -> None:
    """Write a file beside ``path``, then put it in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of ``folder`` against other processes; a process that ends, however it does, lets go of it.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)  # a link is followed to nowhere
    with os.fdopen(os.open(folder / LOCK, flags, 0o644), "r+b") as file:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
