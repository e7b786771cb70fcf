"""The fenced blocks of a documentation page, and running those that say what a shell prints."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.calling import call, words_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROOT = DOCS.parent
FENCE = re.compile(r"(?:^`(?P<caption>[\w./]+)`:\n\n)?^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the file that its caption names, its text, and its line in the page."""

    language: str
    caption: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page; a file is named on a line of its own above its block."""
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        yield Block(found["language"], found["caption"] or "", found["body"], text.count("\n", 0, found.start("body")))


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def run(command: str, folder: Path) -> tuple[int, str]:
    """One line of a shell in ``folder``: its status and what it printed, in order."""
    words = words_of(command)
    if words is not None:
        return call(words, folder, COLUMNS="100")
    tools = folder / ".tools"
    if not tools.exists():
        tools.mkdir()
        for name, words in (("symflops", f'"{sys.executable}" -m symflops.cli.main'), ("python", f'"{sys.executable}"')):
            (tools / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n', "utf-8")
            (tools / name).chmod(0o755)
    paths = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "COLUMNS": "100"}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env={**os.environ, **paths}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.returncode, done.stdout


def same(shown: str, real: str) -> bool:
    """Whether a page shows what was printed; ``...`` stands for anything."""
    shown, real = ("".join(f"{line.rstrip()}\n" for line in text.strip().splitlines()) for text in (shown, real))
    return doctest.OutputChecker().check_output(shown, real, doctest.ELLIPSIS)
