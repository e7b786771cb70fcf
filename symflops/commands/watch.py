"""Waits until a spec, or a file that it may read, has changed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from symflops.catalog.library import SpecFile

State = dict[str, tuple[int, int]]
SECONDS = 0.5


def changes(files: Iterable[SpecFile]) -> Iterator[None]:
    """One item now, and one after each change of a YAML or JSON file beside ``files``, or among the blocks there."""
    files, last = list(files), None
    while True:
        now = state(files)
        if now != last:
            last = now
            yield
        time.sleep(SECONDS)


def state(files: Iterable[SpecFile]) -> State:
    """The size and the time of change of each file that a spec may read."""
    folders = {folder for file in files for base in (file.path.parent, file.root) for folder in (base, base / "blocks")}
    found: State = {}
    for path in (path for folder in sorted(folders) for kind in ("yaml", "json") for path in folder.glob(f"*.{kind}")):
        try:
            told = path.stat()
        except OSError:  # it is written anew this moment
            continue
        found[str(path)] = (told.st_size, told.st_mtime_ns)
    return found
