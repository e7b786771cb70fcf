"""A seeded fault must not outlive its test in what the package remembers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from symflops.algebra import polynomial
from symflops.derive import derive
from symflops.model import path, patterns


def forget() -> None:
    polynomial._known.cache_clear()
    polynomial.text_of.cache_clear()
    patterns._compiled.cache_clear()
    patterns._leading.cache_clear()
    path.running_texts.cache_clear()
    derive._reduced.cache_clear()


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    forget()
    yield
    forget()
