"""The shipped specs and their live cases, read once per process; graphs and derivations of a spec are kept with it.

A test that changes a spec, or the package while it derives, takes ``symflops.api.load`` instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from symflops import api
from symflops.api import Model
from symflops.catalog.library import SpecFile, find_spec, roots, shipped, specs_in
from symflops.model.program import Program
from symflops.witness import cases
from symflops.witness.cases import LiveCase
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


LANGUAGE = frozenset(re.findall(r'"([a-z_]+)"', (ROOT / "schema.json").read_text("utf-8")))
TEXTS = {path.stem: path.read_text("utf-8") for path in ROOT.glob("*/*.yaml") if "." not in path.stem}


@cache
def words_of(name: str) -> frozenset[str]:
    """Words of the language that a spec uses, itself or in its blocks and bases: keys, and kinds of operators, masks and types."""
    found = set()
    for key, value in re.findall(r"\b([a-z_]{2,}): *([a-z_]\w*)?", re.sub(r"#.*", "", TEXTS[name])):
        found |= {key, f"{key}: {value}"} if key in ("op", "mask", "type") and value in LANGUAGE else {key}
        if key in ("block", "extends") and value in TEXTS and value != name:
            found |= words_of(value)
    return frozenset(word for word in found if word.partition(":")[0] in LANGUAGE)


@cache
def differing(names: Sequence[str] = tuple(NAMES)) -> tuple[str, ...]:
    """The specs that a test of one mechanism takes by default: together they use every word of the language that ``names`` use.

    Chosen one after another: the spec with the most words that are still missing, of several the shortest.
    """
    missing, found = set().union(*map(words_of, names)), []
    while missing:
        found.append(max(names, key=lambda name: (len(words_of(name) & missing), -len(TEXTS[name]))))
        missing -= words_of(found[-1])
    return tuple(found)


def some(names: Sequence[str] = tuple(NAMES), rest: str = "thorough") -> list[Any]:
    """``names`` for a parametrised test: those that differ by default, the others with the mark ``rest``."""
    chosen = differing(tuple(names))
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
