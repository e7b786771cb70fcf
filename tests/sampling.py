"""How much of an exhaustive test runs by default: a fixed sample. ``SYMFLOPS_NIGHTLY=1`` runs all of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

NIGHTLY = os.environ.get("SYMFLOPS_NIGHTLY") == "1"


def amount(default: int, nightly: int) -> int:
    """How many draws, or cases, a test takes."""
    return nightly if NIGHTLY else default


def sampled(cases: Sequence[Any], every: int) -> list[Any]:
    """The cases of a parametrised test; all but one of ``every`` are marked as nightly."""
    return [case if place % every == 0 else pytest.param(*case if isinstance(case, tuple) else (case,), marks=pytest.mark.nightly) for place, case in enumerate(cases)]
