"""The user's cache folder: where it is, whether it can be trusted, and how large it may grow."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

MOST_BYTES, MOST_SECONDS = 64 * 2**20, 90 * 86_400
"""What entries may take in all, and how long one is kept after it was written."""
WRITABLE, STICKY = 0o022, 0o1000


def folder() -> Path:
    """The cache folder of symflops: below ``XDG_CACHE_HOME`` where it is set, else below that of the platform.

    Raises:
        OSError: there is no home folder.
    """
    said = os.environ.get("XDG_CACHE_HOME", "")
    if said and Path(said).is_absolute():
        return Path(said) / "symflops"
    try:
        home = Path.home()
    except RuntimeError:
        raise OSError("there is no home folder") from None
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else home / "AppData" / "Local") / "symflops" / "Cache"
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "symflops"


def own(path: Path) -> bool:
    """Whether a file or folder belongs to this user, and nobody else can write it."""
    if os.name != "posix":
        return True
    found = path.lstat()
    return found.st_uid == os.geteuid() and not found.st_mode & WRITABLE


def trusted(path: Path) -> bool:
    """Whether an entry, or a folder of the cache, and all folders of the cache around it are this user's own.

    Raises:
        OSError: there is no such file.
    """
    root = folder()
    if not all(own(one) for one in (path, *path.parents) if one.is_relative_to(root)):
        return False
    around = root.parent.stat().st_mode
    return os.name != "posix" or not around & WRITABLE or bool(around & STICKY)


def prepare(path: Path) -> None:
    """Make a folder of the cache, and those around it, for this user alone.

    Raises:
        OSError: it cannot be made, or somebody else can write there.
    """
    root = folder()
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for one in reversed([path, *path.parents]):
        if one.is_relative_to(root):
            one.mkdir(mode=0o700, exist_ok=True)
    if not trusted(path):
        raise OSError(f"others can write to {root}")


def entries() -> Iterator[Path]:
    """All entries, of every version and spec."""
    yield from sorted(folder().rglob("*.json"))


def prune() -> None:
    """Remove entries that are too old, then the oldest ones until the rest is small enough."""
    found = []
    for path in entries():
        stat = path.stat()
        found.append((stat.st_mtime, stat.st_size, path))
    total = 0
    for written, size, path in sorted(found, reverse=True):
        total += size
        if total > MOST_BYTES or time.time() - written > MOST_SECONDS:
            path.unlink(missing_ok=True)


def clear() -> int:
    """Remove all entries; returns how many."""
    found = list(entries())
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)
