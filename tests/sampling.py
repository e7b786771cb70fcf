"""How much of an exhaustive test runs: a fixed sample by default, more in ``.ci/run``, all of it with ``SYMFLOPS_NIGHTLY=1``.

Cases that do not run are left out before pytest makes items of them, so they cost nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest
from _pytest.mark.expression import Expression

NIGHTLY = os.environ.get("SYMFLOPS_NIGHTLY") == "1"
MARKS = {"thorough", "nightly", "system", "elsewhere"}
"""Marks of tests that the README's command leaves out; ``pyproject.toml`` explains them."""
chosen = [""]
"""The expression of ``-m``, which ``tests/conftest.py`` writes here before it collects."""


def runs(*marks: str) -> bool:
    """Whether ``-m`` selects a test with these marks and no other."""
    return not chosen[0] or Expression.compile(chosen[0]).evaluate(lambda name, **_: name in marks)


def amount(default: int, nightly: int) -> int:
    """How many draws, or cases, a test takes."""
    return nightly if NIGHTLY else default


def sampled(cases: Sequence[Any], every: int, in_ci: int = 0) -> list[Any]:
    """Cases of a parametrised test: one of ``every`` by default, one of ``in_ci`` more in ``.ci/run`` (``thorough``), the rest at night."""
    found = []
    for place, case in enumerate(cases):
        mark = "" if place % every == 0 else "thorough" if in_ci and place % in_ci == 0 else "nightly"
        if mark and runs(mark):
            found.append(pytest.param(*case if isinstance(case, tuple) else (case,), marks=getattr(pytest.mark, mark)))
        elif not mark:
            found.append(case)
    return found
