"""What symflops prints for a model: tables, closed forms and the output of commands."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
from unittest.mock import patch

from operators import escaped

from symflops.api import convention_of, load
from symflops.cli.main import main

COLUMNS = "100"
EQUATION = re.compile(r"^\$\$\n(.*?)\n\$\$$", re.MULTILINE | re.DOTALL)


def who_says_what(spec: str, conventions: str, batch: str) -> str:
    """One model and one batch under several conventions: FLOPs of a step, and the ratio to useful work."""
    model = load(spec)
    totals = {}
    for name in {"symflops": None} | dict.fromkeys(conventions.split(",")):
        estimator = model.estimator({}, "full", name)
        totals[name] = estimator.total(estimator.moments(**json.loads(batch)))
    rows = [
        f"| `{name}` | {total:,} | {total / totals['symflops']:.3f} | {escaped(convention_of(name).doc)} |"
        for name, total in sorted(totals.items(), key=lambda item: item[1])
    ]
    return "\n".join(["| Convention | FLOPs of a step | Ratio | What it counts |", "|:--|--:|--:|:--|", *rows])


def closed_form(spec: str, kind: str, convention: str = "symflops") -> str:
    """The closed form of one pass of full training, as the spec's page has it."""
    page = printed("render", spec, "--format", "markdown", "--regime", "full", "--convention", convention)
    found = next(one for one in EQUATION.findall(page) if rf"\mathrm{{{kind}}} =" in one)
    return "```math\n" + re.sub(r" \\tag\{\d+\}", "", found) + "\n```"


def shell(*command: str) -> str:
    """A command with what it prints."""
    line = " ".join(word if re.fullmatch(r"[\w./=*:,-]+", word) else f"'{word}'" for word in command)
    return f"```console\n$ {line}\n{printed(*command[1:]).rstrip()}\n```"


def printed(*arguments: str) -> str:
    """What a command of symflops prints to standard output.

    Raises:
        RuntimeError: it fails.
    """
    out = io.StringIO()
    with contextlib.redirect_stdout(out), patch.dict(os.environ, {"COLUMNS": COLUMNS, "NO_COLOR": "1"}):
        status = main(list(arguments))
    if status:
        raise RuntimeError(f"exit code {status}: symflops {shlex.join(arguments)}")
    return out.getvalue()
