"""The shipped specs and their live cases, read once per process; graphs and derivations of a spec are kept with it.

A test that changes a spec, or the package while it derives, takes ``symflops.api.load`` instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from symflops import api
from symflops.api import Model
from symflops.ir.program import Program
from symflops.read.spec_files import SpecFile, find_spec, roots, shipped, specs_in
from symflops.verify import cases
from symflops.verify.cases import LiveCase
from tests.mechanisms import ranked
from tests.sampling import runs

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


def some(names: Sequence[str] = tuple(NAMES), rest: str = "thorough") -> list[Any]:
    """``names`` for a parametrised test: by default those that together use every word of the language, the others with the mark ``rest``."""
    order, needed = ranked(frozenset(names))
    chosen = order[:needed]
    others = [pytest.param(name, marks=getattr(pytest.mark, rest)) for name in names if name not in chosen] if runs(rest) else []
    return [*(name for name in names if name in chosen), *others]


@cache
def typical(name: str, *conventions: str) -> Program:
    """The program of a shipped spec under full training; without conventions, under all regimes and conventions of a module."""
    return load(name).typical(["full"], conventions) if conventions else load(name).typical()


@cache
def cases_of(file: SpecFile) -> tuple[LiveCase, ...]:
    """The live cases of a shipped spec."""
    return cases.cases_of(file)
