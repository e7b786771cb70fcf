"""The stored programs of a library: what ``symflops generate`` wrote, if it is of the spec as it is now."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from symflops import __version__
from symflops.catalog.library import SpecFile
from symflops.model.format import FormatError
from symflops.model.program import Program
from symflops.model.serialise import program_of
from symflops.system.reading import read_own


def folder_of(file: SpecFile) -> Path | None:
    """The folder of the generated files of a spec; None if this version of symflops wrote none."""
    folder = file.root.parent / "generated"
    return folder / file.group if file.group and _version(folder) == __version__ else None


@cache
def _version(folder: Path) -> str:
    found = read_own(folder / "manifest.json", {"version": str})
    return str(found.get("version", ""))


def stored_program(file: SpecFile, variant: str, regime: str, conventions: Sequence[str]) -> Program | None:
    """The stored program of a spec or of one of its variants, with these conventions.

    None if there is none, if the spec, a block or a base has changed since, or if it has another first regime.
    """
    folder = folder_of(file)
    found = read_own(folder / f"{file.name}{f'_{variant}' if variant else ''}.json", {"format": int}) if folder else {}
    try:
        program = program_of(found).counting(conventions) if found else None
    except FormatError:
        return None
    if program is None or program.regimes[0].name != regime or set(program.conventions) != set(conventions):
        return None
    return program if file.has(dict(program.sources)) else None
