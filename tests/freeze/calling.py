"""Commands called in this process, and what they print as text that is the same on every machine."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.freeze.cases import ROOT

FINDING = re.compile(r"(?:^|.*: )?(?:error|warning|note)\[([a-z-]+)\]: (.*)")


@dataclass(frozen=True)
class Called:
    """What one command did: its exit code and both of its outputs."""

    code: int
    out: str
    err: str


def call(*words: str) -> Called:
    """Run ``symflops`` with these words."""
    from symflops.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Called(code, out.getvalue(), err.getvalue())


def first_line(error: object) -> str:
    """The first line of an error: the kind and the message of a finding without its place, any other text without the root."""
    text = str(error).strip().partition("\n")[0].replace(f"{ROOT}/", "")
    finding = FINDING.fullmatch(text)
    return f"{finding[1]}: {finding[2]}" if finding else text


def digest(value: Any) -> str:
    """Twelve characters that stand for a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


@contextlib.contextmanager
def working_at(folder: Path, cache: Path) -> Iterator[None]:
    """Run in ``folder``, with estimators that are derived on the spot kept below ``cache``."""
    import os

    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(cache)
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        if before is None:
            del os.environ["XDG_CACHE_HOME"]
        else:
            os.environ["XDG_CACHE_HOME"] = before
