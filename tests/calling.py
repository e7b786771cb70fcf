"""Commands of symflops in this process: no interpreter starts, and a test that reads what was printed costs what the work costs."""

from __future__ import annotations

import contextlib
import io
import shlex
from pathlib import Path

import pytest

from symflops.cli.main import main

SHELL = set("|&;<>()$`\\\n*?[#~%")
"""Characters that mean something to a shell outside of quotes."""


def words_of(line: str) -> list[str] | None:
    """The words of a line that calls symflops and needs no shell; None for any other."""
    lexer = shlex.shlex(line, posix=False, punctuation_chars=True)
    lexer.whitespace_split = True
    parts = list(lexer)
    plain = all(part[:1] in "'\"" or not SHELL & set(part) for part in parts)
    return shlex.split(line, comments=True)[1:] if plain and parts[:1] == ["symflops"] else None


def call(words: list[str], folder: Path, **environment: str) -> tuple[int, str]:
    """The exit code of a command that runs in ``folder``, and what it printed on both streams, in order."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        patch.chdir(folder)
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            code = main(words)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
    return code, printed.getvalue()
