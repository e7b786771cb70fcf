"""Cache of derived programs, in the user's cache folder.

An entry is a stored program with a header: the digests of the program, its sources and the package. If an entry is damaged or
a digest has changed, it is written again. A hit imports neither sympy nor YAML.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from symflops import __version__
from symflops.catalog.cache_folder import folder, prepare, prune, trusted
from symflops.runtime.stored import has
from symflops.system.digests import PACKAGE, digest, package_digest
from symflops.system.files import write


class Entries:
    """The entries of one spec under a regime and a convention, one per structure.

    ``root`` holds the spec's library; ``kind`` is the class that the config names.
    """

    def __init__(self, root: str, spec: str, regime: str, convention: str, kind: str = "") -> None:
        self.root, self.spec, self.regime, self.convention = Path(root), spec, regime, convention
        self.name = f"{spec}-{digest(json.dumps([str(self.root), spec, regime, convention, kind]))[:16]}"

    @property
    def folder(self) -> Path:
        """Where they are.

        Raises:
            OSError: there is no home folder.
        """
        return folder() / __version__ / self.name

    def find(self, sizes: Mapping[str, Any]) -> dict[str, Any] | None:
        """The up-to-date program for the structure of ``sizes``, or None."""
        try:
            for path in sorted(self.folder.glob("*.json")):
                program = self.read(path, sizes)
                if program is not None:
                    return program
        except OSError:
            return None
        return None

    def keep(self, program: str, structure: Mapping[str, str], sources: Mapping[str, str]) -> Path:
        """Write an entry: the text of a program, its structure, and the digests of its sources by label.

        Raises:
            OSError: the folder cannot be written.
        """
        header = {"package": package_digest(), "program": digest(program), "structure": structure, "sources": sources}
        path = self.folder / f"{digest(json.dumps(structure, sort_keys=True))[:16]}.json"
        prepare(path.parent)
        write(path, f"{json.dumps(header, sort_keys=True)}\n{program}")
        prune()
        return path

    def read(self, path: Path, sizes: Mapping[str, Any]) -> dict[str, Any] | None:
        """The program of an entry, None if it is not this user's own, damaged, outdated or of another structure."""
        try:
            if not trusted(path):
                return None
            head, _, program = path.read_text("utf-8").partition("\n")
            header = json.loads(head)
            if header["program"] != digest(program) or header["package"] != package_digest():
                return None
            fits = has(sizes, header["structure"]) and all(self.current(*item) for item in header["sources"].items())
            found: dict[str, Any] | None = json.loads(program) if fits else None
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None
        return found

    def current(self, label: str, known: str) -> bool:
        """Whether a source still has the digest ``known``; the spec's own library comes before the shipped one."""
        for root in (self.root, PACKAGE, PACKAGE.parent):
            if (root / label).is_file():
                return digest((root / label).read_bytes()) == known
        return False


def cached(
    entries: Entries, config: Mapping[str, Any], sizes: Mapping[str, Any], tell: Callable[[str], None]
) -> dict[str, Any]:
    """The program of a config with known ``sizes``: the entry of its structure, or one that is derived and written now.

    Raises:
        SymflopsError: the config does not fit, or the regime or convention is unknown.
    """
    found = entries.find(sizes)
    if found is not None:
        return found
    from symflops.api import load, program_in
    from symflops.compiler import Goal
    from symflops.emit.python.module import fixed_sizes
    from symflops.frontend.variants import DERIVED
    from symflops.model.serialise import document_of, text_of

    compiled = load(entries.spec).required(Goal.PROGRAM, [entries.regime], [entries.convention], config, structure=DERIVED)
    program = program_in(compiled)
    document = document_of(program)
    try:
        path = entries.keep(text_of(document), fixed_sizes(program), dict(program.sources))
        tell(f"derived on the spot, kept in {path}")
    except OSError as error:
        tell(f"derived on the spot, and not kept ({error.strerror or error})")
    return document
