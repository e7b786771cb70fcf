"""Generated modules as files that stand alone, printed from the stored programs."""

from __future__ import annotations

import json
from pathlib import Path

from symflops.api import CONVENTIONS
from symflops.emit.python.module import render
from symflops.model.serialise import program_of

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "generated").glob("*/*.py"))


def standalone(module: Path) -> str:
    """The text of a generated module that needs no symflops."""
    program = program_of(json.loads(module.with_suffix(".json").read_bytes()))
    return render(program.counting(CONVENTIONS), "0", standalone=True)
