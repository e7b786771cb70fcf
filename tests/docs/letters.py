"""Runs a command of symflops and prints its files in the order in which they first see a letter: ``letters.py H render llama ...``."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from types import FrameType

import symflops
from symflops.cli.main import main

PACKAGE = Path(symflops.__file__).parent


def visits(letter: str, arguments: list[str]) -> list[str]:
    """The files of the package that are called with the letter, or return it, in the order of first visits."""
    word = re.compile(rf"\b{letter}\b")
    seen: dict[str, None] = {}

    def watch(frame: FrameType, event: str, result: object) -> None:
        path = frame.f_code.co_filename
        if event not in ("call", "return") or not path.startswith(str(PACKAGE)) or path in seen:
            return
        values = frame.f_locals.values() if event == "call" else (result,)
        if any(word.search(written(value)) for value in values):
            seen[path] = None

    sys.setprofile(watch)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            main(arguments)
    finally:
        sys.setprofile(None)
    return [Path(path).relative_to(PACKAGE).as_posix() for path in seen]


def written(value: object) -> str:
    """A value as text; nothing for an object that is not finished."""
    try:
        return repr(value)
    except Exception:
        return ""


if __name__ == "__main__":
    print("\n".join(visits(sys.argv[1], sys.argv[2:])))
