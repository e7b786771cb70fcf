"""What symflops prints for a model: tables, closed forms and the output of commands."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
from pathlib import Path
from unittest.mock import patch

from operators import escaped

from symflops.api import convention_of, load
from symflops.cli.main import main
from symflops.library.records.identities import all_comparisons, is_identity

COLUMNS = "100"
ROOT = Path(__file__).resolve().parents[2]
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


def closed_form(spec: str, kind: str) -> str:
    """The closed form of one pass of full training, useful work, with its definitions and what its letters stand for."""
    page = fragment(spec, "symflops")
    forms = [equation(page, rf"\mathrm{{{kind}}} ="), *([equation(page, "A_{1} =")] if "\nwhere\n" in page else [])]
    first, *clauses = re.split(r";\s+", next(line for line in page.splitlines() if line.startswith("Here ")).removesuffix("."))
    text = "\n".join(forms)
    letters = [part for part in re.split(r",\s+|\s+and\s+(?=\$)", first) if occurs(symbol(part), text)]
    kept = [clause for clause in clauses if occurs(symbol(clause), text)]
    blocks = [f"```math\n\\begin{{aligned}}\n{form}\n\\end{{aligned}}\n```" for form in forms]
    return "\n\nwhere\n\n".join(blocks) + f"\n\n{'; '.join([', '.join(letters), *kept])}."


def fragment(spec: str, convention: str) -> str:
    """The closed forms of full training that paste into Markdown, and the sentence about their symbols."""
    return printed("render", spec, "--format", "markdown", "--fragment", "--regime", "full", "--convention", convention)


def equation(page: str, start: str) -> str:
    """The rows of the equation of a page that begins with ``start``."""
    form = next(one for one in EQUATION.findall(page) if start in one)
    return re.sub(r"\\(?:begin|end)\{aligned\}\n?| \\tag\{\d+\}", "", form).strip()


def symbol(clause: str) -> str:
    """What a clause explains: a bracket, or its first formula without what that equals."""
    found = re.search(r"\$([^$=]*)", clause)
    return "[" if "a bracket" in clause or not found else found[1].strip()


def occurs(name: str, text: str) -> bool:
    """Whether a symbol is in a formula."""
    if name == "[":
        return name in text
    if "(a)" in name:
        return ")^{+}" in text
    return bool(re.search(rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z_])", text))


def shell(*command: str) -> str:
    """A command with what it prints."""
    line = " ".join(word if re.fullmatch(r"[\w./=:,%-]+", word) else f"'{word}'" for word in command)
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


def packing() -> str:
    """The table of ``benchmarks/packing.py``."""
    import runpy

    return str(runpy.run_path(str(Path(__file__).resolve().parents[2] / "benchmarks" / "packing.py"))["table"]())


def identities() -> str:
    """The comparisons of specs with their classes for all sizes: which are identities, and why the others are not."""
    rows = [(name, one) for name, some in sorted(all_comparisons(ROOT / "specs").items()) for one in some]
    proven = [f"`{name}`" for name, one in rows if is_identity(one)]
    others = [f"| `{name}` | {one['grade']} | {escaped(one['why'][:160])} |" for name, one in rows if not is_identity(one)]
    head = f"Identities, {len(proven)} of {len(rows)}: {', '.join(proven)}."
    return "\n".join([head, "", "| Spec | Grade | Why |", "|:--|:--|:--|", *others])
