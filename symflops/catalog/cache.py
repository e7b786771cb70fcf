"""Estimators that are derived on the spot, and kept for the next time in the user's cache folder.

An entry is a generated module. Its first lines say what it was made with, so that one that is damaged, or older than the
spec or the package, is not read but written anew. Neither sympy nor YAML is imported where an entry serves.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from symflops import __version__
from symflops.catalog.loading import fitting, has, load_module
from symflops.system.digests import PACKAGE, digest, package_digest
from symflops.system.files import write

if TYPE_CHECKING:
    from symflops.model.program import Program

SEALED, MADE, STRUCTURE, SOURCE = "# sealed ", "# package ", "# structure ", "# sha256 "


def folder() -> Path:
    """The cache folder of symflops: ``XDG_CACHE_HOME`` where it is set, else that of the platform."""
    said = os.environ.get("XDG_CACHE_HOME", "")
    if said and Path(said).is_absolute():
        return Path(said) / "symflops"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "symflops" / "Cache"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "symflops"


class Shelf:
    """The entries of one spec under a regime and a convention, one per structure; ``root`` is where the spec's library is."""

    def __init__(self, root: str, spec: str, regime: str, convention: str) -> None:
        self.root = Path(root)
        which = digest(json.dumps([str(self.root), spec, regime, convention]))
        self.folder = folder() / __version__ / f"{spec}-{which[:16]}"

    def find(self, sizes: object) -> Path | None:
        """The module of a structure that ``sizes`` have, where a whole and current one is kept."""
        try:
            for path in sorted(self.folder.glob("*.py")):
                if self.fits(path, sizes):
                    return path
        except OSError:
            return None
        return None

    def keep(self, text: str, structure: Mapping[str, str]) -> Path:
        """Write a module of a structure.

        Raises:
            OSError: the folder cannot be written.
        """
        told = json.dumps(dict(structure), sort_keys=True)
        body = f"{MADE}{package_digest()}\n{STRUCTURE}{told}\n{text}"
        path = self.folder / f"{digest(told)[:16]}.py"
        write(path, f"{SEALED}{digest(body)}\n{body}")
        return path

    def fits(self, path: Path, sizes: object) -> bool:
        """Whether an entry is whole, current, and of the structure of ``sizes``."""
        try:
            seal, _, body = path.read_text("utf-8").partition("\n")
            made, structure, rest = body.split("\n", 2)
            if seal != SEALED + digest(body) or not has(sizes, json.loads(structure.removeprefix(STRUCTURE))):
                return False
        except (OSError, ValueError):
            return False
        sources = [line.removeprefix(SOURCE).split("  ", 1) for line in rest.split('"""', 1)[0].splitlines() if SOURCE in line]
        return all(self.current(*source) for source in sources) and made == MADE + package_digest()

    def current(self, known: str, label: str) -> bool:
        """Whether a source still has the digest with which the entry was made; the spec's library hides the shipped one."""
        for root in (self.root, PACKAGE, PACKAGE.parent):
            if (root / label).is_file():
                return digest((root / label).read_bytes()) == known
        return False


def derived(
    root: str, spec: str, config: Mapping[str, Any], sizes: object, asked: tuple[str, str], tell: Callable[[str], None]
) -> tuple[Any, Any]:
    """A module and an estimator of one config with known ``sizes``, under the regime and convention that are ``asked`` for.

    Raises:
        SymflopsError: the config does not fit, or there is no such regime or convention.
    """
    shelf = Shelf(root, spec, *asked)
    path = shelf.find(sizes)
    if path:
        module = load_module(str(path), f"symflops.derived.{spec}")
    else:
        from symflops.api import load

        program = load(spec).program([asked[0]], [asked[1]], config)
        if not printable(program):
            return interpreted(program, config, tell)
        module = made(shelf, program, spec, tell)
    regime, convention = module.REGIMES[0], module.CONVENTIONS[0]
    return module, fitting(lambda: module.Estimator(module.Sizes.from_config(config), regime=regime, convention=convention))


def printable(program: Program) -> bool:
    """Whether a module can say all of ``program``: it counts FLOPs, all of them on the same lengths."""
    sides = any(line.side for regime in program.regimes for line in regime.lines)
    return not sides and all(unit == "flops" for _, unit in program.units)


def interpreted(program: Program, config: Mapping[str, Any], tell: Callable[[str], None]) -> tuple[Any, Any]:
    """What stands for a module, and the estimator of a program that no module can say."""
    from symflops.runtime.interpreted import InterpretedEstimator

    tell("derived on the spot, and not kept: the convention counts in a unit, or on lengths, of its own")
    estimator = InterpretedEstimator(program, config, regime=program.regimes[0].name, convention=program.conventions[0])
    return SimpleNamespace(NAME=program.name), estimator


def made(shelf: Shelf, program: Program, spec: str, tell: Callable[[str], None]) -> Any:
    """The module of a program, printed and kept."""
    from symflops.emit.emit import emit
    from symflops.emit.python.module import fixed_sizes

    text = emit(replace(program, variant="derived" if program.fixed else ""), __version__, (), ["py"])["py"]
    try:
        path = shelf.keep(text, fixed_sizes(program))
    except OSError as error:
        tell(f"derived on the spot, and not kept ({error.strerror or error})")
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "derived.py"
            write(path, text)
            return load_module(str(path), f"symflops.derived.{spec}")
    tell(f"derived on the spot, kept in {path}")
    return load_module(str(path), f"symflops.derived.{spec}")
