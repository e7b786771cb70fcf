"""Atomic writes, which write a whole file or nothing, and folder locks."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from symflops.support.reading import read_bytes

LOCK = ".lock"


def holds(path: Path, data: bytes) -> bool:
    """Whether ``path`` is a file whose content is exactly ``data``."""
    return path.is_file() and path.stat().st_size == len(data) and read_bytes(path, len(data)) == data


def write(path: Path, text: str | bytes) -> bool:
    """Write ``text`` to ``path``, unless the file already has this content; readers never see half of it.

    Returns:
        True if the file was written, False if it already had this content.

    Raises:
        OSError: the folder cannot be written, or the disk is full; the error names ``path``.
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
    """Write ``data`` to a temporary file in the same folder, then rename it to ``path``."""
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
    """Context manager that waits for an exclusive lock on ``folder`` between processes, and holds it.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)  # do not follow a symbolic link
    with os.fdopen(os.open(folder / LOCK, flags, 0o644), "r+b") as file:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
