"""Goldens of the guide through half-finished specs: what ``symflops verify`` prints about those in ``guides/``.

    python -m tests.verify.guide                # writes every expected.txt anew; read the diff before it is committed
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from symflops.cli.main import main

FOLDER = Path(__file__).parent / "guides"
SPECS = sorted(path.stem for path in FOLDER.glob("*.yaml") if "." not in path.stem)
VERSIONS = re.compile(r"\(torch [^)]*\)")


def shown(folder: Path, name: str) -> tuple[int, str, str]:
    """The exit code of ``symflops verify`` on a spec, and what it prints on both streams, without versions."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["verify", f"{name}.yaml"])
    return code, VERSIONS.sub("(versions)", out.getvalue()), err.getvalue()


if __name__ == "__main__":
    for name in SPECS:
        _, out, err = shown(FOLDER, name)
        (FOLDER / f"{name}.expected.txt").write_text(f"{out}---\n{err}", "utf-8")
