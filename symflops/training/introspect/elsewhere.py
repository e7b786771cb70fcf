"""Runs work on real classes in a subprocess, which imports their libraries and nothing of the current folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from symflops.library.catalog import PACKAGE
from symflops.support.errors import SymflopsError

LIMIT = 600
"""Timeout of a subprocess in seconds."""
START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from symflops.{} import main; main()"
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DIFFUSERS_OFFLINE": "1"}


class ProofError(SymflopsError):
    """The real class cannot be built, or its parameters differ from the spec."""


def built_elsewhere(request: str, module: str = "verify.proof") -> str:
    """Build a class in a subprocess, which runs ``module`` on the JSON text ``request``; return the JSON text that it prints.

    Raises:
        ProofError: the subprocess fails or takes too long.
    """
    words = [sys.executable, "-I", "-c", START.format(module), str(Path(PACKAGE).parent)]
    try:
        done = subprocess.run(
            words, input=request.encode(), capture_output=True, timeout=LIMIT, env={**os.environ, **OFFLINE}, check=False
        )
    except subprocess.TimeoutExpired:
        raise ProofError(f"building the class takes more than {LIMIT} seconds") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise ProofError(said[-1] if said else "the class cannot be built")
    return done.stdout.decode()


def main(compare: Callable[..., dict[str, Any]]) -> None:
    """Read the keyword arguments of ``compare`` from standard input, and print the dict that it returns, both as JSON."""
    import warnings

    warnings.simplefilter("ignore")
    given = json.loads(sys.stdin.read())
    try:
        found = compare(**given)
    except Exception as error:
        words = " ".join(str(error).split())
        print(words if isinstance(error, SymflopsError) else f"{type(error).__name__}: {words}", file=sys.stderr)
        raise SystemExit(1) from None
    sys.__stdout__.write(json.dumps(found))  # type: ignore[union-attr]
