"""Cache of derived programs and of the headers of local specs, in the user's cache folder.

An entry is data with a header: the digests of the data, of its sources and of the package, and sympy's version. An entry is
rewritten if it is damaged or one of these has changed. A hit imports neither sympy nor YAML.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from symflops import __version__
from symflops.evaluate.sizes import sizes_of
from symflops.evaluate.stored import Stored, has
from symflops.read.spec_files import SpecFile
from symflops.support.errors import SymflopsError
from symflops.support.files import digest, package_digest, sympy_release, write
from symflops.support.reading import read_text

MOST_BYTES, MOST_SECONDS = 64 * 2**20, 90 * 86_400
"""The maximum total size of the entries, and the maximum age of an entry."""
WRITABLE, STICKY = 0o022, 0o1000


def place(name: str) -> Path:
    """Return the path of the file or folder ``name`` in the cache of this version of the package.

    Raises:
        OSError: there is no home folder.
    """
    return folder() / __version__ / name


def keep(path: Path, text: str, **header: Any) -> None:
    """Write the entry ``text`` to ``path`` with the fields ``header`` before it, and prune the cache.

    Raises:
        OSError: the folder cannot be written.
    """
    prepare(path.parent)
    write(path, f"{json.dumps(header | seal(text), sort_keys=True)}\n{text}")
    prune()


def kept(path: Path) -> tuple[dict[str, Any], str] | None:
    """Read an entry as (header, text); None if untrusted, damaged, or of another symflops or sympy."""
    try:
        if not trusted(path):
            return None
        head, _, text = read_text(path).partition("\n")
        header = json.loads(head)
        sealed = all(header[key] == value for key, value in seal(text).items())
    except (OSError, SymflopsError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return (header, text) if sealed else None


def seal(text: str) -> dict[str, str]:
    """Return the fields of every header: digests of the package and of ``text``, and sympy's version."""
    return {"package": package_digest(), "sympy": sympy_release(), "text": digest(text)}


class Entries:
    """The cached programs of a spec under one regime and convention, one per structure.

    ``kind`` is the class that the configs name, if any.
    """

    def __init__(self, file: SpecFile, regime: str, convention: str, kind: str = "") -> None:
        self.file, self.regime, self.convention = file, regime, convention
        self.name = f"{file.name}-{digest(json.dumps([str(file.path), regime, convention, kind]))[:16]}"

    def find(self, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """Look up the cached program for the structure of a config; None on a miss.

        Raises:
            ConfigError: the config does not fit the model.
        """
        try:
            found = [self.read(path) for path in sorted(place(self.name).glob("*.json"))]
        except OSError:
            return None
        sizes: dict[str, Any] | None = None
        for structure, program in filter(None, found):
            sizes = sizes_of(Stored(program), config) if sizes is None else sizes  # the same for each structure
            if has(sizes, structure):
                return program
        return None

    def keep(self, program: str, structure: Mapping[str, str], sources: Mapping[str, str]) -> Path:
        """Write an entry: the text of a program, its structure, and the digests of its sources by label.

        Raises:
            OSError: the folder cannot be written.
        """
        path = place(self.name) / f"{digest(json.dumps(structure, sort_keys=True))[:16]}.json"
        keep(path, program, structure=structure, sources=sources, facts=self.file.facts())
        return path

    def read(self, path: Path) -> tuple[dict[str, str], dict[str, Any]] | None:
        """Read an entry as (structure, program); None if it is untrusted or outdated."""
        found = kept(path)
        if found is None or found[0]["facts"] != self.file.facts() or not self.file.has(found[0]["sources"]):
            return None
        return found[0]["structure"], json.loads(found[1])


def cached(entries: Entries, config: Mapping[str, Any], tell: Callable[[str], object]) -> dict[str, Any]:
    """Return the cached program of a config; on a miss, derive and cache it, and report so with ``tell``.

    Raises:
        SymflopsError: the spec is not valid, the config does not fit, or the regime or convention is unknown.
    """
    found = entries.find(config)
    if found is not None:
        return found
    from symflops.api import load, program_in
    from symflops.compiler import Goal
    from symflops.ir.serialise import document_of, text_of
    from symflops.read.variants import structure_name

    model = load(entries.file)
    with model.about_config(config):
        program = program_in(model.compiled(Goal.PROGRAM, [entries.regime], [entries.convention], config))
    if program.fixed:
        program = replace(program, variant=structure_name(model.spec, program.fixed))
    document = document_of(program)
    structure = {letter: repr(value) for letter, value in program.fixed}
    try:
        path = entries.keep(text_of(document), structure, dict(program.sources))
        tell(f"derived on the spot, kept in {path}")
    except OSError as error:
        tell(f"derived on the spot, and not kept ({error.strerror or error})")
    return document


def folder() -> Path:
    """The cache folder of symflops: below ``XDG_CACHE_HOME`` if set, else below the platform's.

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
    """Whether this user owns a file or folder and nobody else can write it; always True outside POSIX."""
    if os.name != "posix":
        return True
    found = path.lstat()
    return found.st_uid == os.geteuid() and not found.st_mode & WRITABLE


def trusted(path: Path) -> bool:
    """Whether this user alone controls a path in the cache and all cache folders above it.

    Raises:
        OSError: there is no such file.
    """
    root = folder()
    if not all(own(one) for one in (path, *path.parents) if one.is_relative_to(root)):
        return False
    around = root.parent.stat().st_mode
    return os.name != "posix" or not around & WRITABLE or bool(around & STICKY)


def prepare(path: Path) -> None:
    """Create a cache folder and its parents with access for this user alone.

    Raises:
        OSError: it cannot be created, or somebody else can write there.
    """
    root = folder()
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for one in reversed([path, *path.parents]):
        if one.is_relative_to(root):
            one.mkdir(mode=0o700, exist_ok=True)
    if not trusted(path):
        raise OSError(f"others can write to {root}")


def entries() -> Iterator[Path]:
    """Iterate over all entries, of every version and spec."""
    yield from sorted(folder().rglob("*.json"))


def prune() -> None:
    """Remove entries older than ``MOST_SECONDS``, and the oldest ones while all exceed ``MOST_BYTES``."""
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
    """Remove all derived programs from the user's cache; return how many there were."""
    found = list(entries())
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)
