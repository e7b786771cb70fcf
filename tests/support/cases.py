"""The goldens of findings: a folder for each kind, with the smallest spec that has it and what ``symflops check`` prints.

Beside ``spec.yaml`` there may be a ``regime.yaml`` or ``convention.yaml``, which the command gets, and an ``inexact.yaml``. A
spec that is large on purpose is made here.

    python -m tests.support.cases            # writes every expected.txt anew; read the diff before it is committed
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

from symflops.cli.main import main

FOLDER = Path(__file__).parent
LARGE = {"file-too-large": "name: small\n" + "# " + "a" * 97 + "\n" + ("#" * 99 + "\n") * 10_000}
CASES = sorted({path.parent.name for path in FOLDER.glob("*/spec.yaml")} | LARGE.keys())


def shown(case: str) -> tuple[int, str]:
    """The exit code of the command on a case, run in its folder, and what it prints."""
    if case in LARGE:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "spec.yaml").write_text(LARGE[case], "utf-8")
            return checked(Path(folder))
    return checked(FOLDER / case)


def checked(folder: Path, *words: str) -> tuple[int, str]:
    """``symflops check`` on the spec in ``folder``."""
    pages = [word for kind in ("regime", "convention") if (folder / f"{kind}.yaml").is_file() for word in (f"--{kind}", f"{kind}.yaml")]
    with contextlib.chdir(folder), contextlib.redirect_stderr(io.StringIO()) as printed:
        code = main(["check", "spec.yaml", *pages, *words])
    return code, printed.getvalue()


if __name__ == "__main__":
    for case in CASES:
        (FOLDER / case).mkdir(exist_ok=True)
        (FOLDER / case / "expected.txt").write_text(shown(case)[1], "utf-8")
