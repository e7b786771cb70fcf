"""Atomic writes, which write a whole file or nothing; folder locks; digests of texts and of the package itself."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from symflops.support.reading import read_bytes, read_text

PACKAGE = Path(__file__).parent.parent
DATA = ("*.py", "*.jinja", "*.yaml", "*.json")


def digest(text: str | bytes) -> str:
    """The sha256 of ``text`` in hexadecimal."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


@cache
def package_digest() -> str:
    """Digest of the code, templates and data of symflops, without specs and generated modules."""
    total = hashlib.sha256()
    for pattern in DATA:
        for path in sorted(PACKAGE.rglob(pattern)):
            if not {"generated", "specs"} & set(path.relative_to(PACKAGE).parts[:1]):
                total.update(str(path.relative_to(PACKAGE)).encode() + path.read_bytes())
    return total.hexdigest()


@cache
def sympy_release() -> str:
    """The text of the file ``release.py`` of the installed sympy, or empty; sympy is not imported."""
    found = find_spec("sympy")
    path = Path(found.origin).with_name("release.py") if found and found.origin else None
    return read_text(path) if path and path.is_file() else ""


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
