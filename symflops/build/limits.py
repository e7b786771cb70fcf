"""Limits on the size of a structure."""

from __future__ import annotations

from symflops.build.surroundings import Surroundings
from symflops.support.findings import Diagnostic, SpecError

MAX_UNROLLED = 512
MAX_OPERATORS = 6_000
"""Four times the largest published structure (checked by a test); a structure of this size is derived within seconds."""


class OperatorLimit:
    """Counts the operators of a graph; no entry is added to a graph with more than ``MAX_OPERATORS``."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.operators = 0
        self.exceeded: Diagnostic | None = None

    def grow(self, operators: int = 1) -> None:
        """Add ``operators`` to the count; call this before adding them to the graph.

        Raises:
            SpecError: the count exceeds ``MAX_OPERATORS``.
        """
        self.operators += operators
        if self.operators > MAX_OPERATORS:
            message = f"the structure has more than {MAX_OPERATORS:,} operators"
            self.exceeded = self.exceeded or self.surroundings.too_large(message)
            raise SpecError([self.exceeded])
