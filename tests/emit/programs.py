"""Programs of shipped specs, compiled once for all tests of targets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from symflops.build.build import build
from symflops.derive.derive import derive
from symflops.emit.emit import PAGES, page_of
from symflops.emit.page.sections import document
from symflops.formula.formula import evaluate
from symflops.ir.convention import Convention
from symflops.ir.program import Program
from symflops.ir.regime import Regime
from symflops.ir.verification import Verification
from symflops.lower.lower import lower
from symflops.read.read import read
from symflops.support.findings import Source

ROOT = Path(__file__).parents[2]
SPECS = ("specs/diffusion/qwen_image.yaml", "specs/language/llama.yaml")
CONVENTIONS = (Convention("symflops"), Convention("torch", pairs="all", unseen=False))


def source(path: str) -> Source:
    """A file of the repository."""
    return Source(path, (ROOT / path).read_text())


def block(name: str) -> Source | None:
    """A shipped block."""
    path = f"specs/blocks/{name}.yaml"
    return source(path) if (ROOT / path).exists() else None


@cache
def program(path: str) -> Program:
    """The program of the spec at ``path``: full training, the last projection alone, and no training."""
    graph = build(read(source(path), block))
    last = {"specs/diffusion/qwen_image.yaml": "proj_out.*", "specs/language/llama.yaml": "lm_head.*"}.get(path, "*")
    regimes = [Regime("full"), Regime("head", train=(last,)), Regime("forward", train=())]
    return lower([derive(graph, regime) for regime in regimes], CONVENTIONS)


def sizes_of(program: Program, data: st.DataObject) -> dict[str, Any]:
    """Random sizes, derived ones computed."""
    values: dict[str, Any] = {}
    for field in program.fields:
        values[field.letter] = data.draw(st.booleans() if field.kind == "flag" else st.integers(0, 40), label=field.letter)
    for definition in program.definitions:
        values[definition.letter] = evaluate(definition.formula, values)
    return values


def page_text(program: Program, version: str, verified: Sequence[Verification] = (), ending: str = "md") -> str:
    """The page of all regimes of a program."""
    return PAGES[ending](document(page_of(program, verified, [regime.name for regime in program.regimes])), version)


latex_page = partial(page_text, ending="tex")
