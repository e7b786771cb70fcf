"""The shipped specs and their live cases, read once per process; graphs and derivations of a spec are kept with it.

A test that changes a spec, or the package while it derives, takes ``symflops.api.load`` instead.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from symflops import api
from symflops.api import Model
from symflops.catalog.library import SpecFile, find_spec, roots, shipped, specs_in
from symflops.model.program import Program
from symflops.witness import cases
from symflops.witness.cases import LiveCase

ROOT = shipped("specs")
PAPERS = "papers"
"""The group of specs that describe no class of a library; ``tests/papers`` compares them with witnesses."""
FILES = {file.name: file for file in specs_in(ROOT) if file.group != PAPERS}
NAMES = sorted(FILES)


def load(spec: str | Path | SpecFile) -> Model:
    """What ``symflops.api.load`` gives; a shipped spec is read once."""
    if isinstance(spec, str) and spec in FILES and roots()[0] == ROOT.resolve():
        spec = FILES[spec]
    file = spec if isinstance(spec, SpecFile) else find_spec(spec)
    return _load(file) if file.path.is_relative_to(ROOT) else api.load(file)


_load = cache(api.load)


@cache
def typical(name: str, *conventions: str) -> Program:
    """The program of a shipped spec under full training; without conventions, under all regimes and conventions of a module."""
    return load(name).typical(["full"], conventions) if conventions else load(name).typical()


@cache
def cases_of(file: SpecFile) -> tuple[LiveCase, ...]:
    """The live cases of a shipped spec."""
    return cases.cases_of(file)
