"""A seeded fault must not outlive its test in what the package caches."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


def forget() -> None:
    """Clear every cache of a function of the package."""
    for module in [module for name, module in sys.modules.items() if name.startswith("symflops.")]:
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    forget()
    yield
    forget()
