"""How much of an exhaustive test runs: a fixed sample by default, more in ``.ci/run``, all of it with ``SYMFLOPS_NIGHTLY=1``.

Cases that do not run are left out before pytest makes items of them, so they cost nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest
from _pytest.mark.expression import Expression
from hypothesis import settings

from tests.mechanisms import spread

NIGHTLY = os.environ.get("SYMFLOPS_NIGHTLY") == "1"
MARKS = {"thorough", "nightly", "system", "elsewhere", "drawn"}
"""Marks that say where a test runs; ``pyproject.toml`` explains them."""
chosen = [""]
"""The expression of ``-m``, which ``tests/conftest.py`` writes here before it collects."""


def runs(*marks: str) -> bool:
    """Whether ``-m`` selects a test with these marks and no other."""
    return selects(chosen[0], marks)


@cache
def selects(expression: str, marks: tuple[str, ...]) -> bool:
    """Whether an expression of ``-m`` holds for a test with these marks; an empty one does for each."""
    return not expression or Expression.compile(expression).evaluate(lambda name, **_: name in marks)


def amount(default: int, nightly: int, in_ci: int = 0) -> int:
    """How many draws, or cases, a test takes; ``in_ci`` where ``.ci/run`` runs a test again that is marked as ``drawn``."""
    if NIGHTLY:
        return nightly
    return in_ci if in_ci and runs("drawn") and not runs() else default


def draws(default: int, in_ci: int, nightly: int, **options: Any) -> Callable[[Any], Any]:
    """Settings of a property test that draws this many examples: by default, where ``.ci/run`` runs it again, at night."""
    chosen = settings(max_examples=amount(default, nightly, in_ci), deadline=None, **options)
    return lambda test: pytest.mark.drawn(chosen(test))


def sampled(cases: Iterable[Any], every: int, in_ci: int = 0) -> list[Any]:
    """Cases of a parametrised test: one of ``every`` by default, one of ``in_ci`` more in ``.ci/run`` (``thorough``), the rest at night.

    Cases about specs are chosen by the words of the language that they use (``tests/mechanisms.py``), others at equal distances.
    """
    cases = list(cases)
    found, default = [], set(spread(cases, -(-len(cases) // every)))
    more = set(spread(cases, -(-len(cases) // in_ci))) if in_ci else set()
    for place, case in enumerate(cases):
        mark = "" if place in default else "thorough" if place in more else "nightly"
        if mark and runs(mark):
            found.append(pytest.param(*case if isinstance(case, tuple) else (case,), marks=getattr(pytest.mark, mark)))
        elif not mark:
            found.append(case)
    return found
