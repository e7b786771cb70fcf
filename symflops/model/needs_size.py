"""The answer of a stage that cannot go on while a size is a symbol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

from symflops.algebra.unknown_size import UnknownSizeError
from symflops.diagnostics.findings import Diagnostic

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NeedsSize:
    """The structure of the model depends on a size that is still a symbol.

    Attributes:
        size: The size to fix before the stage runs again; empty if no single size would settle it.
        diagnostic: What to report if nobody knows that size.
    """

    size: str
    diagnostic: Diagnostic


def or_needs_size(stage: Callable[P, T]) -> Callable[P, T | NeedsSize]:
    """Let ``stage`` answer with :class:`NeedsSize` where the algebra inside it meets an unknown size."""

    @wraps(stage)
    def answer(*args: P.args, **kwargs: P.kwargs) -> T | NeedsSize:
        try:
            return stage(*args, **kwargs)
        except UnknownSizeError as error:
            return NeedsSize(error.size, error.diagnostic)

    return answer
